/*
 * scoring.h - what the replies of a judge come to: a verdict. Pure.
 *
 * Of each criterion the values of all readable replies become one, by eval.judge.combine; where better is low it is
 * turned round. One that most of them answered by n/a is left out. Each is a part of the verdict with its share of the
 * weights, so that the reward is the sum of weight times value: the mean by weight. There is no reward where fewer than
 * half of the replies could be read, or no criterion with a weight is left.
 */
#ifndef SLUICE_WORKERS_EVALUATORS_JUDGE_SCORING_H
#define SLUICE_WORKERS_EVALUATORS_JUDGE_SCORING_H

#include "schemas/trajectory/verdict.h"
#include "workers/evaluators/judge/prompt.h"

/* Values as judge_reply_read tells them, of the replies that were readable. */
struct judge_votes {
    double values[TASK_CRITERIA_MAX][TASK_JUDGE_SAMPLES_MAX];
    size_t count;      /* of replies; at most TASK_JUDGE_SAMPLES_MAX */
    size_t unreadable; /* and of those that were not */
};

/* Into `ret`, which is all zero: parts, reward and why. False: there is no reward, and why says what was lacking. */
bool judge_score(const struct task_judge *judge, const struct judge_votes *votes, struct verdict *ret);

#endif
