/*
 * core/workers/workers.h - the workers.
 */
#ifndef SLUICE_BROKER_CORE_WORKERS_WORKERS_H
#define SLUICE_BROKER_CORE_WORKERS_WORKERS_H

#include "broker/core/state/worker.h"

struct call;
struct core;

void worker_destroy(struct core *core, struct worker *worker);
/* Its lane's connection broke: it is lost, or had drained and has left: false. NULL, or hung: nothing is done. */
bool worker_lane_broke(struct core *core, struct worker *worker);
/* Its lane does not lead there, and why; empty: now it does. */
void worker_lane_waits(struct core *core, struct worker *worker, struct slice why);
void workers_tick(struct core *core);

void handle_worker_beat(struct core *core, const struct call *call);

#endif
