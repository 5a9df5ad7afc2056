/*
 * layers/dir.h - unpacked layers on this node: <cache>/<hex>/root, held while somebody uses them, with an index of what
 * was unpacked beside it (tree_index.h).
 *
 * Holding is a shared flock on <cache>/<hex> (locked_dir.h), so that no sandbox ever loses a
 * lower directory under its feet, whichever processes of the node share the cache. What is not
 * held stays for the next until layers/cache.h wants the room.
 */
#ifndef SLUICE_WORKERS_LAYERS_DIR_H
#define SLUICE_WORKERS_LAYERS_DIR_H

#include "workers/layers/layer.h"

struct dirtree_place;

#define LAYER_PACKING ".packing." /* files that are still being written begin so */

struct layer_dir {
    char *path; /* of its root, to stand on; NULL: none */
    int lock;
};

/* What of a layer is wanted; all zero: all of it. */
struct layer_part {
    bool is_plain;     /* without what it says of the names at the top that system_names.def has */
    const char *below; /* this directory alone, an absolute path, without what is named .git in it (dirtree_keep.h) */
    const struct dirtree_place *places; /* these alone, perhaps none (dirtree_take.h); NULL: not so */
    size_t place_count;
};

/* As layer_unpack; layer_dir_release it. *ret is written only on success. In a fiber. */
int layer_dir_hold(const struct layers *layers, const char *digest, struct slice inlined, struct layer_dir *ret,
                   struct fail *fail);
/* A part of it, which is kept beside the whole, by what it is. */
int layer_dir_hold_part(const struct layers *layers, const char *digest, struct slice inlined,
                        const struct layer_part *part, struct layer_dir *ret, struct fail *fail);
/* NULL-safe: also for a zeroed one. */
void layer_dir_release(struct layer_dir *dir);
/* Releases, and removes the directory unless another holds it. In a fiber. */
void layer_dir_discard(struct layer_dir *dir);

/* Makes and holds an empty directory of our own; layer_dir_discard it. Blocking. */
int layer_dir_make(const char *cache, struct layer_dir *ret, struct fail *fail);
/* What was made by hand is done: from here on it must stay so. Blocking. */
int layer_dir_seal(const struct layer_dir *dir, struct fail *fail);
/*
 * 0 when it is what was unpacked, or sealed, in the place where it was: else -ENODEV or -ESTALE, and nobody will stand
 * on it again. Blocking.
 */
int layer_dir_look(const struct layer_dir *dir, struct fail *fail);
#endif
