/*
 * core/workers/drain.h - worker.drain.
 */
#ifndef SLUICE_BROKER_CORE_WORKERS_DRAIN_H
#define SLUICE_BROKER_CORE_WORKERS_DRAIN_H

struct call;
struct core;
struct worker;

/* lane.drain to it, as it was told. */
void send_drain(struct core *core, const struct worker *worker);

void handle_worker_drain(struct core *core, const struct call *call);

#endif
