/*
 * core/workers/lost_workers.h - the workers lost of late, and why.
 */
#ifndef SLUICE_BROKER_CORE_WORKERS_LOST_WORKERS_H
#define SLUICE_BROKER_CORE_WORKERS_LOST_WORKERS_H

#include "broker/core/state/worker.h"

struct core;

/* Call it while the worker still has its jobs. One that had drained is no loss. */
void lost_worker_note(struct core *core, const struct worker *worker, enum loss_why why);
/* The n-th newest not older than lost_shown_ms, or NULL. */
const struct lost_worker *lost_worker_nth(const struct core *core, uint64_t n);
const char *loss_words(enum loss_why why);

#endif
