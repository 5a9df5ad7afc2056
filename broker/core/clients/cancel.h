/*
 * core/clients/cancel.h - rollout.cancel.
 */
#ifndef SLUICE_BROKER_CORE_CLIENTS_CANCEL_H
#define SLUICE_BROKER_CORE_CLIENTS_CANCEL_H

struct call;
struct core;

void sweeps_tick(struct core *core);
void sweeps_finish(struct core *core);

void handle_rollout_cancel(struct core *core, const struct call *call);

#endif
