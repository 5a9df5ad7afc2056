/*
 * layers/cache.h - how long unpacked layers stay on this node, and how much of its disk they take.
 *
 * Each <cache>/<hex>/ (layers/dir.h) says in an attribute what it takes; their sum is in <cache>/.usage, kept
 * by all the workers that share the cache, each under the file's lock. When it passes the limit
 * the least recently used go, down to a little below it: never one that is held. What nobody asked
 * for in LAYER_IDLE_S goes as well, and what killed workers left half done, in the store too.
 * Blocking; for offload.h.
 */
#ifndef SLUICE_WORKERS_LAYERS_CACHE_H
#define SLUICE_WORKERS_LAYERS_CACHE_H

#include "workers/layers/layer.h"

enum { LAYER_IDLE_S = 3600, LAYER_SWEEP_S = 300 };

/*
 * The limit where none is given: a fifth of the disk, at most 32 GiB. Also sees to it that new
 * directories are spread over the disk: on ext4 a file made where others were just deleted costs
 * ten times as much.
 */
uint64_t layer_cache_prepare(const char *cache);

/*
 * Notes that the directory open as `dir`, not yet under its name, takes so much and was unpacked since
 * the machine started. 0 or negative errno.
 */
int layer_cache_add(const struct layers *layers, int dir, uint64_t bytes);
/*
 * Nothing syncs what is unpacked: of what was before a power failure there may be a part. True also where
 * the file system keeps no attributes, and false where there is nothing.
 */
bool layer_cache_is_of_this_boot(const char *path);
/* As locked_dir_remove, and it is counted no more. */
bool layer_cache_remove(const struct layers *layers, int dir, const char *path);
/* What is noted; for tests and people. */
uint64_t layer_cache_bytes(const struct layers *layers);

/* Down to the limit, when it is passed. One process of the node at a time; others pass by. */
void layer_cache_trim(const struct layers *layers);
/* The same whatever the count says, and sets the count right. */
void layer_cache_recount(const struct layers *layers);
/* The disk is full: half of what is there goes. False when nothing did. */
bool layer_cache_make_room(const struct layers *layers);

#endif
