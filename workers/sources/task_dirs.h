/*
 * sources/task_dirs.h - the directories of this node that tasks may take files from (--task-dir), and how a source is
 * opened: beneath one of them, so that no symbolic link on the way leads out; and never what is, holds or lies in what
 * is the host's or the worker's own (images/list.h), whatever was listed.
 */
#ifndef SLUICE_WORKERS_SOURCES_TASK_DIRS_H
#define SLUICE_WORKERS_SOURCES_TASK_DIRS_H

#include <stddef.h>

#include "common/base/fail.h"
#include "workers/images/list.h"

enum { TASK_DIRS_MAX = 64 };

struct task_dir {
    char *named, *real; /* as the operator wrote it, and what that is; both absolute and clean */
};

/* Zero it first. It owns the paths. */
struct task_dirs {
    struct task_dir each[TASK_DIRS_MAX];
    size_t count;
    const struct image_list *own; /* borrowed: knows the worker's own paths */
};

/* -EINVAL: it is not a directory, or none that may be listed. */
int task_dirs_add(struct task_dirs *dirs, const char *path, struct fail *fail);
void task_dirs_finish(struct task_dirs *dirs);

/*
 * What is at `source`, an absolute path of this node: a descriptor (O_PATH), the caller's. -EINVAL: it is not there, or
 * not among what tasks may name; else it is, perhaps, and cannot be opened. `dirs` may be NULL: nothing may be named.
 * Blocking: for offload.h.
 */
int task_dirs_open(const struct task_dirs *dirs, const char *source, struct fail *fail);

#endif
