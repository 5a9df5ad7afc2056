/* stage_files.h - a task's files are written into an open sandbox: texts, and what sources hold (workers/sources). */
#ifndef SLUICE_WORKERS_STAGES_SANDBOX_STAGE_FILES_H
#define SLUICE_WORKERS_STAGES_SANDBOX_STAGE_FILES_H

#include <stdatomic.h>

#include "workers/stages/sandbox/stage_sandbox.h"

/* In order. False: one could not be, and the job has ended, by the task's fault where it is one of the file. In a
 * fiber. */
bool stage_put_files(struct job *job, struct stage_sandbox *stage, const struct task_file *files, size_t count);
/* The same for an agent, which ends the job itself. -EINVAL: the file's fault; else negative errno. */
int stage_give_files(const struct job *job, struct stage_sandbox *stage, const struct task_file *files, size_t count,
                     struct fail *fail);

/*
 * Copies what `source` holds to `place`, a path below the open directory `root`, as source_copy has it. Blocking: on a
 * thread of an offload, whose `stop` that is.
 */
int stage_copy_source(const struct job *job, const char *source, int root, const char *place, const atomic_bool *stop,
                      bool *ret_is_file, struct fail *fail);

#endif
