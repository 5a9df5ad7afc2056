/*
 * harness_dirs.h - the directories of this node that hold harnesses (programs.h), each once for all rollouts: what the
 * worker's operator names (--harness NAME=DIR), and what is installed where `sluice harness install` puts it:
 *
 *     ${SLUICE_CACHE:-${XDG_CACHE_HOME:-~/.cache}/sluice}/harness/NAME/current -> VERSION
 *
 * A sandbox sees one, that of its task's harness, read-only at /opt/harness/NAME. Each is held by a shared lock (flock
 * of the directory) while the worker lives, so that `sluice harness remove` knows that it is in use.
 */
#ifndef SLUICE_WORKERS_AGENTS_HARNESSES_HARNESS_DIRS_H
#define SLUICE_WORKERS_AGENTS_HARNESSES_HARNESS_DIRS_H

#include "common/base/fail.h"
#include "workers/agents/harnesses/programs.h"

struct image_list;

struct harness_dir {
    const char *name; /* the program's */
    char *path;       /* real: a newer version that is installed meanwhile is the next worker's */
    int fd;           /* that holds it; -1: where it lies nothing can be held */
};

/* Zero it first. It owns the paths. */
struct harness_dirs {
    struct harness_dir each[PROGRAMS_MAX];
    size_t count;
};

/* NAME=DIR. -EINVAL: not that, no harness's name or one that was given, or no directory that has its program and that
 * tasks may see (`own` knows the worker's own paths). */
int harness_dirs_add(struct harness_dirs *dirs, const struct image_list *own, const char *text, struct fail *fail);
/* Those that are installed and were not given. */
void harness_dirs_find(struct harness_dirs *dirs, const struct image_list *own);
void harness_dirs_finish(struct harness_dirs *dirs);

/* NULL: it has none. `dirs` may be NULL. */
const struct harness_dir *harness_dirs_get(const struct harness_dirs *dirs, const char *name);

#endif
