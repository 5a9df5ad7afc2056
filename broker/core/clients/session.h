/*
 * core/clients/session.h - session.get: where the loop of a rollout speaks to it, as soon as that is known.
 */
#ifndef SLUICE_BROKER_CORE_CLIENTS_SESSION_H
#define SLUICE_BROKER_CORE_CLIENTS_SESSION_H

struct call;
struct core;

void handle_session_get(struct core *core, const struct call *call);
/* Those who have waited long enough, or for what has come. */
void sessions_tick(struct core *core);

#endif
