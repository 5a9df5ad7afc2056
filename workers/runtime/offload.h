/*
 * offload.h - blocking work of a fiber (hashing, compressing, unpacking, fsync) on a thread of its
 * own, so that the loop goes on and the worker's beat with it. The thread lives for that one
 * piece of work; there are never more of them than fibers in such a call.
 */
#ifndef SLUICE_WORKERS_RUNTIME_OFFLOAD_H
#define SLUICE_WORKERS_RUNTIME_OFFLOAD_H

#include <stdatomic.h>

#include "common/base/fail.h"

/*
 * Returns what `work` returned, and not before: `work` may use the caller's stack. When the fiber
 * is cancelled or its deadline passes, *stop becomes true, `work` should return soon (anything
 * negative), and -ECANCELED or -ETIMEDOUT is returned instead of what it said; work that ended
 * well all the same counts. Outside a fiber it simply runs.
 */
int offload_run(int (*work)(void *arg, const atomic_bool *stop), void *arg, struct fail *fail);

/* In two steps, of a fiber that has something else to do meanwhile; what was begun must be ended. */
struct offload;
int offload_begin(int (*work)(void *arg, const atomic_bool *stop), void *arg, struct offload **ret, struct fail *fail);
int offload_end(struct offload **offload, struct fail *fail);

#endif
