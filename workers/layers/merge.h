/*
 * layers/merge.h - several layers become one, which over `below` shows the same as they did, one over the other: also
 * what is gone, and which directories hide all that is below. The same layers come to the same bytes. Files are not
 * copied for it: the cache's file system has to have hard links.
 *
 * `below` is the directory that they lie on. What is not in it needs no whiteout, and may have none: overlayfs lists
 * those of a directory that it merges with nothing. NULL: nothing is below.
 */
#ifndef SLUICE_WORKERS_LAYERS_MERGE_H
#define SLUICE_WORKERS_LAYERS_MERGE_H

#include "common/digest/digest.h"
#include "workers/layers/layer.h"

/*
 * `digests` lie in the store, lowest first. In a fiber; of *ret only the fault is written on failure. -EFBIG,
 * -ENAMETOOLONG: no one layer can hold it; else as layer_unpack and layer_pack.
 */
int layer_merge(const struct layers *layers, const char *below, const char (*digests)[DIGEST_SIZE], size_t count,
                struct layer *ret, struct fail *fail);

#endif
