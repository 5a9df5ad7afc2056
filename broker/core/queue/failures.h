/*
 * core/queue/failures.h - what follows from a job's failures.
 *
 * Each kind of failure has a budget of its own (core/state/settings.def): infra outcomes, task outcomes, and workers
 * that died while the job ran alone. Within it a job is tried again after a back-off; beyond it the job is set aside,
 * and what it belongs to ends with its history. A job that workers were handed and did not hold has as many tries as
 * infra outcomes; each further one is an infra outcome.
 */
#ifndef SLUICE_BROKER_CORE_QUEUE_FAILURES_H
#define SLUICE_BROKER_CORE_QUEUE_FAILURES_H

#include "broker/core/queue/history.h"

/* Again after a back-off, or the rollout's end. */
void job_fail(struct core *core, struct job *job, const struct failure *failure);
/* The same without using up its budget: something else is known to be at fault. */
void job_fail_uncounted(struct core *core, struct job *job, const struct failure *failure);
/* The worker does not have it (any more), and said nothing: to the front of its queue. */
void job_go_missing(struct core *core, struct job *job);
/* Its worker gave it back, by nobody's fault: the same, and only its total time bounds it. */
void job_return(struct core *core, struct job *job);
/* Its engine serves another tokenizer or chat template than its policy: taken away, it begins again,
 * by nobody's fault. */
void job_evict(struct core *core, struct job *job);
/* What it sampled is too old for its task: it begins again, by nobody's fault. */
void job_refresh(struct core *core, struct job *job);
/* Its worker was lost with it in hand; `alone`: with nothing else. */
void job_lose_worker(struct core *core, struct job *job, struct slice worker, bool alone);

#endif
