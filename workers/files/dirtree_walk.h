/*
 * dirtree_walk.h - into directories that others made, one name at a time: no symlink is followed, and a directory that
 * keeps us out, or does not let us write, is given our rights for as long as we are in it. Blocking.
 */
#ifndef SLUICE_WORKERS_FILES_DIRTREE_WALK_H
#define SLUICE_WORKERS_FILES_DIRTREE_WALK_H

#include <sys/types.h>

/* A directory of ours; -ENOTDIR: it is none. *ret_mode is to be given back. Else negative errno. */
int dirtree_enter(int parent, const char *name, mode_t *ret_mode);
/* Gives its mode back, and closes it. */
void dirtree_leave(int dir, mode_t mode);
/* Calls `visit`, which may remove it, for each entry of the directory, until one is negative;
 * `dir` stays the caller's. */
int dirtree_each(int dir, int (*visit)(int dir, const char *name, void *arg), void *arg);
/* Removes whatever has that name; 0 where nothing has. */
int dirtree_remove_entry(int parent, const char *name);
/* Moves `name`, of `root`, to a clean path below it, in place of what is there; directories on the way are made (mode
 * 0755) where missing. 0, -ENOENT: there is no such name, -ENOTDIR: what is no directory is in the way, or negative
 * errno. */
int dirtree_put(int root, const char *name, const char *to);

#endif
