/*
 * task_summary.h - what scheduling needs to know of a submitted task, read from its JSON,
 * and the number that tells one content of a group from another. The I/O side asks for
 * both at a submit; the ledger keeps them beside the task (ledger.def), and reads them
 * from it again where it does not.
 */
#ifndef SLUICE_BROKER_TASK_SUMMARY_H
#define SLUICE_BROKER_TASK_SUMMARY_H

#include "broker/core/core.h"
#include "schemas/task/task.h"

enum { NEED_MAX = HANDLER_NAME_MAX + 10 }; /* "evaluator:" and a name */

/* What slices there are in `task` point into it: a summary stays where it was filled in. */
struct task_summary {
    struct core_task task;
    char id[129], image[4097], policy[65], judge[65];
    char run_needs[TASK_NEEDS_MAX * (NEED_MAX + 1)], eval_needs[NEED_MAX + 1];
};

/* False with a refusal that names the field ("task.limits.run_s"), ret->task all zero. */
bool task_summary_read(struct slice json, struct task_summary *ret, struct refusal *no);

/* Of a task that an older broker took and this one cannot read: workers will refuse it by name. */
void task_summary_default(struct task_summary *ret);

/* Stable: it is stored. */
uint64_t task_summary_hash(struct slice stream, uint64_t samples, struct slice task);

#endif
