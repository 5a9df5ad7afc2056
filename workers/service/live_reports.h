/*
 * service/live_reports.h - what jobs that are watched do, told to the broker (rollout.live): ten times a second while
 * there is such a job, and not at all else. It makes way for all else: while a result waits to be sent, or
 * LIVE_FLIGHT_BYTES of it are on their way, nothing is made; what was not told yet is in the record.
 */
#ifndef SLUICE_WORKERS_SERVICE_LIVE_REPORTS_H
#define SLUICE_WORKERS_SERVICE_LIVE_REPORTS_H

#include "schemas/messages/message.h"

struct running_job;
struct worker;

enum { LIVE_PERIOD_MS = 100, LIVE_FLIGHT_BYTES = 256 << 10, LIVE_LAST_BYTES = 1 << 20 };

/* Somebody watches. */
void worker_watch_job(struct worker *worker, const struct msg_lane_watch *watch);
/* The job has ended: all that was not told, before its result is. */
void worker_tell_last(struct worker *worker, struct running_job *ended);

#endif
