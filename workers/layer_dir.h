/*
 * layer_dir.h - unpacked layers on this node: <cache>/<hex>/, held while somebody uses them.
 *
 * Holding is a shared flock on the directory itself; removing takes an exclusive one and renames
 * before it deletes, so that no sandbox ever loses a lower directory under its feet, whichever
 * processes of the node share the cache. A directory that nobody holds and nobody asked for in
 * LAYER_IDLE_S is swept, and what killed workers left half done, in the store too; the sweep
 * runs with an unpack, at most once in LAYER_SWEEP_S.
 */
#ifndef SLUICE_WORKERS_LAYER_DIR_H
#define SLUICE_WORKERS_LAYER_DIR_H

#include "workers/layer.h"

#define LAYER_PACKING ".packing." /* files that are still being written begin so */
enum { LAYER_IDLE_S = 3600, LAYER_SWEEP_S = 300 };

struct layer_dir {
    char *path; /* NULL: none */
    int lock;
};

/* As layer_unpack; layer_dir_release it. *ret is written only on success. In a fiber. */
int layer_dir_hold(const struct layers *layers, const char *digest, struct slice inlined,
                   struct layer_dir *ret, struct fail *fail);
/* NULL-safe: also for a zeroed one. */
void layer_dir_release(struct layer_dir *dir);
/* Releases, and removes the directory unless another holds it. In a fiber. */
void layer_dir_discard(struct layer_dir *dir);

/* Makes and holds an empty directory of our own; layer_dir_discard it. Blocking. */
int layer_dir_make(const char *cache, struct layer_dir *ret, struct fail *fail);
/* Removes what is idle, by `now_s` of the wall clock: unpacked layers, remains of the killed.
 * Blocking. */
void layer_dir_sweep(const struct layers *layers, int64_t now_s);

#endif
