/*
 * copy.h - a file or a tree of the worker's, handed in by its descriptor, is copied to a path inside: what a task
 * brings. Files replace files and links; a directory's content goes into the directory that is there, also through a
 * link, which is resolved inside, or into a new one. Modes and times are kept; what is mounted on a directory of the
 * tree is left out. The tree holds files, directories and symbolic links alone, at most COPY_DEPTH_MAX levels: the
 * worker made it.
 */
#ifndef SLUICE_WORKERS_SANDBOX_INIT_SERVICES_COPY_H
#define SLUICE_WORKERS_SANDBOX_INIT_SERVICES_COPY_H

#include <sys/types.h>

#include "common/base/fail.h"

enum { COPY_DEPTH_MAX = 160 };

/* `from` is open for reading; `path` is absolute, as those inside name it; `mode`, where it is not 0, is that of all
 * that is made. 0 or negative errno. */
int copy_in(int from, const char *path, mode_t mode, struct fail *fail);

#endif
