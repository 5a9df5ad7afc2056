/*
 * dirtree_take.h - of a layer that others made, some places alone, moved into a tree of our own: the directories above
 * them are made anew, so that no mode, mark or link on the way comes with them. Blocking.
 *
 * A place is a file or a directory; one that is a link, a FIFO or a whiteout, is not there, or has such a thing on its
 * way, is left where it is. What lies in a directory stays as the layer has it, but for what is excluded, of which
 * nothing is taken, not even that it is gone; links that are absolute, or that go up beyond the place, or up again
 * behind a name: these, and what is neither file, directory nor link, are whiteouts afterwards. So nothing that is
 * taken can lead to anything but what is taken, and what lies at these places below.
 */
#ifndef SLUICE_WORKERS_FILES_DIRTREE_TAKE_H
#define SLUICE_WORKERS_FILES_DIRTREE_TAKE_H

#include <stddef.h>

#include "common/base/fail.h"

struct dirtree_place {
    char *path; /* clean (dirtree.h), and not the root */
    const char *const
        *exclude; /* of a directory: names, or paths in it, with * and ?, as tar excludes them; borrowed */
    size_t exclude_count;
};

/* Of places within one another the outer is taken, and the inner one too where that leaves it out. 0 or negative
 * errno. */
int dirtree_take(int from, int into, const struct dirtree_place *places, size_t count, struct fail *fail);

#endif
