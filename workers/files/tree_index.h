/*
 * tree_index.h - whether a tree of the cache is still what was unpacked. It lies in <holder>/root, and beside it, in
 * <holder>/index, what it looked like when it was done:
 *
 * - of each directory, when it was changed (ctime): the kernel says so whenever an entry is made, removed, renamed or
 *   replaced, also when somebody sets the directory's times back afterwards, as systemd-tmpfiles does;
 * - of all else the size and the time of the last writing (mtime), where there are no more than TREE_INDEX_FILES of
 *   them. A ctime would tell of links and of rights that a sandbox of ours takes for a moment, which change nothing.
 *
 * Left out is what lies in directories that their owner may not read and enter, which is not to be seen from here; and
 * those themselves, as who copies a layer opens them for a moment. Blocking: a look costs about a microsecond an entry.
 */
#ifndef SLUICE_WORKERS_FILES_TREE_INDEX_H
#define SLUICE_WORKERS_FILES_TREE_INDEX_H

#include <stdbool.h>

#include "common/base/fail.h"

#define TREE_INDEX_ROOT "root"
enum {
    TREE_INDEX_FILES = 256,
    TREE_INDEX_LOOK_MS = 2000 /* what a disk has not shown by then is taken to be there: slow is not gone */
};

/* Of <holder>/root as it is now; nothing may change in it from here on. 0 or negative errno. */
int tree_index_write(const char *holder, struct fail *fail);
bool tree_index_is_there(const char *holder);
/* 0, or -ESTALE and what is not as it was, or why that cannot be known. */
int tree_index_look(const char *holder, struct fail *fail);
/* The holder of a root's path; the caller frees it. NULL: out of memory. */
char *tree_index_holder(const char *root);

#endif
