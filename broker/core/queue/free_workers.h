/*
 * core/queue/free_workers.h - the workers that may be given jobs.
 */
#ifndef SLUICE_BROKER_CORE_QUEUE_FREE_WORKERS_H
#define SLUICE_BROKER_CORE_QUEUE_FREE_WORKERS_H

#include <stdbool.h>
#include <stdint.h>

struct core;
struct worker;

bool worker_may_take(const struct core *core, const struct worker *worker);
/* Its key among them: those that offer something come last, so that what needs nothing leaves them room. */
int64_t worker_rank(const struct worker *worker);
/* Puts it among those that may be given jobs, or takes it out, as it is now. */
void worker_refresh(struct core *core, struct worker *worker);

#endif
