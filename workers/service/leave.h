/* leave.h - how a worker comes to its end: signals, draining, a cache that went. */
#ifndef SLUICE_WORKERS_SERVICE_LEAVE_H
#define SLUICE_WORKERS_SERVICE_LEAVE_H

#include "workers/service/worker_inside.h"

/* Blocks SIGTERM, SIGINT and SIGCHLD (before any thread is made) and watches them. */
int worker_take_signals(struct worker *worker, struct fail *fail);

/* Gives all back and leaves as soon as it can, for a new worker to begin where the cache is not what it was. */
void worker_watch_cache(struct worker *worker);
/* Takes no new job, and leaves after the grace at the latest. */
void worker_drain(struct worker *worker, int64_t grace_ms, const char *why);
/* Call whenever a job or a result went: stops the loop once a leaving worker has nothing left. */
void worker_stop_when_idle(struct worker *worker);

#endif
