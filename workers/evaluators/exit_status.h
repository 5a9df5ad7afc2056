/*
 * exit_status.h - what the exit status of an evaluator means, where the task names no reward file: a reward, or that
 * the evaluator is broken. A status alone cannot tell a script that failed the agent from one that failed itself, so
 * what it wrote to its standard error last is looked at, too.
 */
#ifndef SLUICE_WORKERS_EVALUATORS_EXIT_STATUS_H
#define SLUICE_WORKERS_EVALUATORS_EXIT_STATUS_H

#include "schemas/task/task.h"
#include "schemas/trajectory/verdict.h"

/* `status` is 0 to 255; `errors` the end of its standard error. *ret->why says how it is broken, or is "". */
void exit_status_judge(const struct task *task, int status, const char *errors, struct verdict *ret);

#endif
