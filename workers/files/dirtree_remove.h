/* dirtree_remove.h - directory trees that others made are removed, whatever they did to keep them. */
#ifndef SLUICE_WORKERS_FILES_DIRTREE_REMOVE_H
#define SLUICE_WORKERS_FILES_DIRTREE_REMOVE_H

/*
 * Removes a directory with all in it, whatever its modes and however deep it is, with some
 * twenty descriptors and as little stack. Nobody else may be changing it.
 */
int dirtree_remove(const char *path);
/* The same below an open directory; `name` is a directory's, no symlink's. */
int dirtree_remove_at(int parent, const char *name);

#endif
