/*
 * steps_verdict.h - what the verdicts of a task's steps come to. Of each part by name it has the mean over the steps
 * that were evaluated, where a step that lacks it counts as 0 (steps_reward mean), or the last step's (final), and
 * the reward likewise: an evaluator that names no part names "reward". With `step.NAME` each step's reward is a part
 * of weight 0, as far as there is room; a step's own parts and metrics are metrics NAME.OF, and its tests have its
 * name in front. No reward: there is no step.
 */
#ifndef SLUICE_WORKERS_STAGES_STEPS_STEPS_VERDICT_H
#define SLUICE_WORKERS_STAGES_STEPS_STEPS_VERDICT_H

#include "schemas/task/task.h"
#include "schemas/trajectory/verdict.h"

struct steps_verdict {
    const struct task *task; /* the whole */
    struct verdict each[TASK_STEPS_MAX];
    size_t count;
};

/* The next step's, which has a reward, is taken. */
void steps_verdict_add(struct steps_verdict *steps, struct verdict *verdict);
/* Whether the last one added is enough for the next step to begin; else why not, in words. */
bool steps_verdict_suffices(const struct steps_verdict *steps, char *why, size_t size);
/* All together. False: out of memory. */
bool steps_verdict_join(const struct steps_verdict *steps, struct verdict *ret);
void steps_verdict_finish(struct steps_verdict *steps);

#endif
