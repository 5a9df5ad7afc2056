/* item.h - one entry of a layer is made. */
#ifndef SLUICE_WORKERS_LAYERS_UNPACK_ITEM_H
#define SLUICE_WORKERS_LAYERS_UNPACK_ITEM_H

#include "workers/layers/unpack/unpack.h"

/* An entry with its name, in its parent. */
struct item {
    struct archive_entry *entry;
    const char *path, *leaf;
    int parent;
    struct timespec times[2];
};

int layer_item_make(struct unpack *unpack, const struct item *item);

#endif
