/* kinds.h - the rows of the table of task kinds (kinds.c): one kind, one file. */
#ifndef SLUICE_WORKERS_STAGES_KINDS_H
#define SLUICE_WORKERS_STAGES_KINDS_H

#include "workers/jobs/job.h"

extern const struct task_kind kind_sandbox; /* sandbox_kind.c */
extern const struct task_kind kind_noop;    /* noop.c */

const struct task_kind *task_kind_find(const char *name); /* NULL: no such kind */

#endif
