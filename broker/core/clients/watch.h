/*
 * core/clients/watch.h - rollout.watch: somebody looks at a rollout while it works (core/watches/watches.h).
 */
#ifndef SLUICE_BROKER_CORE_CLIENTS_WATCH_H
#define SLUICE_BROKER_CORE_CLIENTS_WATCH_H

struct call;
struct core;

void handle_rollout_watch(struct core *core, const struct call *call);

#endif
