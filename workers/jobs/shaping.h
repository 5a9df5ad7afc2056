/*
 * shaping.h - what a task's `shaping` makes of an evaluation (docs/tasks.md): the overlong penalty and the overlong
 * filtering of DAPO (arXiv 2503.14476). The evaluator's own reward is kept beside the shaped one.
 */
#ifndef SLUICE_WORKERS_JOBS_SHAPING_H
#define SLUICE_WORKERS_JOBS_SHAPING_H

#include "workers/jobs/job.h"

/*
 * What is added to the reward of a rollout that sampled so many tokens: 0 up to max_tokens - buffer_tokens, then
 * falling by a straight line to -penalty at max_tokens, and -penalty beyond.
 */
double shaping_penalty(const struct task_shaping *shaping, uint64_t sampled_tokens);

/*
 * After the eval stage, whatever evaluated. Without a reward there is none afterwards either. Where the job does not
 * say how long the run was, nothing exact can be said: outcome infra.
 */
void shaping_apply(struct job *job);

#endif
