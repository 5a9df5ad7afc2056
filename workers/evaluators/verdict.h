/*
 * verdict.h - what the exit status of an evaluator means, where the task names no reward file: a verdict, or that the
 * evaluator is broken. A status alone cannot tell a script that failed the agent from one that failed itself, so what it
 * wrote to its standard error last is looked at, too.
 */
#ifndef SLUICE_WORKERS_EVALUATORS_VERDICT_H
#define SLUICE_WORKERS_EVALUATORS_VERDICT_H

#include <stdbool.h>

#include "schemas/task/task.h"

struct verdict {
    bool is_broken;
    double reward;
    char why[320]; /* it is broken, in words; else "" */
};

/* `status` is 0 to 255; `errors` the end of its standard error. */
void verdict_read(const struct task *task, int status, const char *errors, struct verdict *ret);

#endif
