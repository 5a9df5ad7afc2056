/*
 * dirtree_gather.h - what a stack of trees shows at a place, as one over the other they are layers, as files of its own
 * in a tree of ours: so that it can lie over a stack of which it knows nothing. Blocking.
 *
 * A place is a file or a directory; where the stack shows neither (nothing, a whiteout, a link, a FIFO), or has such a
 * thing on the way to it, nothing is put. A directory is opaque: what lies in it below its new place is not seen. Of
 * what it holds nothing is there of what is excluded, of links that lead out (dirtree_within.h), of FIFOs, sockets and
 * devices. Modes and times are kept, set-user-ID bits are not. What is hidden is not there, whichever name leads to it.
 */
#ifndef SLUICE_WORKERS_FILES_DIRTREE_GATHER_H
#define SLUICE_WORKERS_FILES_DIRTREE_GATHER_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "workers/files/dirtree_take.h"

enum { DIRTREE_GATHER_ENTRIES = 1 << 20 };
#define DIRTREE_GATHER_BYTES (UINT64_C(8) << 30)

struct dirtree_inode {
    dev_t dev;
    ino_t ino;
};

struct dirtree_stack {
    const char *const *roots; /* directories, the uppermost first */
    size_t count, linked;     /* the first so many are of one file system with `into`: files are linked, not copied */
    const struct dirtree_inode *hidden;
    size_t hidden_count;
    const atomic_bool *stop;
    uint64_t entries, bytes; /* put so far; bytes are those of copies */
};

/*
 * Puts what is at place->path, where there is anything, to `to`, a clean path, in place of what `into` has there. 0;
 * -EFBIG: more than DIRTREE_GATHER_ENTRIES or _BYTES in all; -ECANCELED; else negative errno.
 */
int dirtree_gather(struct dirtree_stack *stack, const struct dirtree_place *place, int into, const char *to,
                   struct fail *fail);

#endif
