/*
 * thread_pool.h - small files made by threads, while the layer they come from is read on.
 *
 * Making a file costs a disk's file system more than all that is read for it, and in different
 * directories it can be done at once. Files gather in batches of one directory; a layer of no more
 * than a batch is made by who reads it. A name that is taken is refused, so the order in which
 * files are made means nothing. Belongs to one thread; for offload.h.
 */
#ifndef SLUICE_WORKERS_LAYERS_UNPACK_THREAD_POOL_H
#define SLUICE_WORKERS_LAYERS_UNPACK_THREAD_POOL_H

#include <stdatomic.h>
#include <sys/stat.h>

#include "common/base/fail.h"
#include "common/base/slice.h"

enum { CREW_FILE_MAX = 128 * 1024 }; /* what is longer is for who reads it */

struct thread_pool;

struct pool_file {
    const char *dir; /* its directory's path: for sentences, and to tell directories apart */
    const char *leaf;
    int parent; /* borrowed until the file after it */
    struct slice content;
    mode_t mode;
    struct timespec times[2];
};

/* `umask` is this process's. NULL: no memory. */
struct thread_pool *pool_create(mode_t umask, const atomic_bool *stop);
/* Negative when this one or any before could not be made; -EBADMSG for a name that is taken. */
int pool_add(struct thread_pool *pool, const struct pool_file *file, struct fail *fail);
/* Waits until all are made. */
int pool_wait(struct thread_pool *pool, struct fail *fail);
/* What has not been made by now is not made. NULL-safe. */
void pool_destroy(struct thread_pool **pool);

#endif
