/*
 * evaluator.h - ways to score a rollout (evaluators.h lists them): one evaluator, one file. It runs in the
 * eval job's fiber and ends the job, by a verdict (verdict.h: reward, its parts, metrics, tests) with evaluator_end,
 * or by a reward alone with evaluator_reward. A reward comes only from an evaluator that ran to its end; a broken one
 * is outcome task, a sandbox that failed is infra. What judges text alone is best written as a function from task
 * and text to a verdict, which knows no job.
 */
#ifndef SLUICE_WORKERS_EVALUATORS_EVALUATOR_H
#define SLUICE_WORKERS_EVALUATORS_EVALUATOR_H

#include "workers/jobs/job.h"

struct evaluator {
    void (*run)(struct job *job);
};

/* Whether what the agent left is not known, which ends the job: nothing of it can be scored. */
bool evaluator_lacks_files(struct job *job);
/*
 * Ends the job, taking the verdict, which is all zero then. With a reward it is ok; without, the evaluator is broken,
 * and the outcome is task. `why` becomes the detail.
 */
void evaluator_end(struct job *job, struct verdict *verdict);
/* Ends the job ok with a reward, and why in words. */
void evaluator_reward(struct job *job, double reward, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
