/*
 * evaluator.h - ways to score a rollout (evaluator.c): one evaluator, one file. It runs in the
 * eval job's fiber and ends the job. A reward (evaluator_reward) comes only from an evaluator that
 * ran to its end; a broken one is outcome task, a sandbox that failed is infra.
 */
#ifndef SLUICE_WORKERS_EVALUATORS_EVALUATOR_H
#define SLUICE_WORKERS_EVALUATORS_EVALUATOR_H

#include "workers/jobs/job.h"

struct evaluator {
    const char *name, *doc;
    void (*run)(struct job *job);
};

const struct evaluator *evaluator_find(const char *name); /* NULL: no such evaluator */

extern const struct evaluator evaluator_command; /* evaluators/command.c */
extern const struct evaluator evaluator_math;    /* evaluators/math/math.c */

/* Ends the job ok with a reward, and why in words. */
void evaluator_reward(struct job *job, double reward, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
