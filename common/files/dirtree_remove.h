/* dirtree_remove.h - directory trees that others made are removed, whatever they did to keep them. */
#ifndef SLUICE_COMMON_FILES_DIRTREE_REMOVE_H
#define SLUICE_COMMON_FILES_DIRTREE_REMOVE_H

enum { DIRTREE_REMOVE_DEPTH = 300 /* where directories cannot be moved; else there is no limit */ };

/*
 * Removes a directory with all in it, whatever its modes and however deep it is, with some
 * twenty descriptors and as little stack. Nobody else may be changing it.
 */
int dirtree_remove(const char *path);
/* The same below an open directory; `name` is a directory's, no symlink's. */
int dirtree_remove_at(int parent, const char *name);

#endif
