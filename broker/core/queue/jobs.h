/*
 * core/queue/jobs.h - the places of jobs: each is in exactly one, and only core/queue/jobs.c moves it.
 */
#ifndef SLUICE_BROKER_CORE_QUEUE_JOBS_H
#define SLUICE_BROKER_CORE_QUEUE_JOBS_H

#include "broker/core/state/job.h"

/* Taken out of its place: into none. Its lease, timer and engine's load go with it. */
void job_leave(struct core *core, struct job *job);
/* job_leave, and job.cancel to who has it. */
void job_withdraw(struct core *core, struct job *job);
/* Into the queue that fits it (QUEUED or ISOLATED), at its end or its front. */
void job_queue(struct core *core, struct job *job, bool front);
void job_block(struct core *core, struct job *job);
/* Until a worker that offers what it needs has a slot. */
void job_keep_back(struct core *core, struct job *job);
/* An init job until its group's sampler releases it. */
void job_hold(struct core *core, struct job *job);
void job_orphan(struct core *core, struct job *job);
/* Of a job that has gone through something: it was dispatched just now, or before. */
void job_lease(struct core *core, struct job *job, struct worker *worker, uint64_t token);
/* Makes it the job of another stage, in no place, with a clean slate. */
void job_begin_stage(struct job *job, enum stage stage);
/* Into its queue after so long. */
void job_delay(struct core *core, struct job *job, int64_t wait_ms);
/* Leased: its deadline is later by what is left of its engine's pause. */
void job_give_pause(struct core *core, struct job *job);

#endif
