/* cancel.h - a job that its worker ends itself: the result is made in its place. */
#ifndef SLUICE_WORKERS_SERVICE_CANCEL_H
#define SLUICE_WORKERS_SERVICE_CANCEL_H

#include "workers/service/worker_inside.h"

/*
 * Cancels a job and answers in its place. What cannot be told for want of memory the broker sees
 * missing in the beat.
 */
void worker_end_job(struct worker *worker, struct running_job *job, const struct job_result *result);

#endif
