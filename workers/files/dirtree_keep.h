/* dirtree_keep.h - of a directory tree that others made, one directory alone. Blocking. */
#ifndef SLUICE_WORKERS_FILES_DIRTREE_KEEP_H
#define SLUICE_WORKERS_FILES_DIRTREE_KEEP_H

#include "common/base/fail.h"

/*
 * Removes from the tree at `root` all that is not in the directory `path` (absolute, or relative to root), and in that
 * every entry named `without`, at any depth. Where `path` is no directory, or a symlink leads there, nothing is left.
 * 0 or negative errno.
 */
int dirtree_keep(int root, const char *path, const char *without, struct fail *fail);

#endif
