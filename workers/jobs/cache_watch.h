/*
 * cache_watch.h - whether the cache is still the directory that this worker began with. All that its sandboxes stand on
 * is there, so that a cache that was removed, replaced or covered by another mount is noticed by comparing what its
 * names lead to now with descriptors that were opened at the start. Reading it is safe from any thread.
 */
#ifndef SLUICE_WORKERS_JOBS_CACHE_WATCH_H
#define SLUICE_WORKERS_JOBS_CACHE_WATCH_H

#include <stddef.h>

#include "common/base/fail.h"

enum { CACHE_WATCH_MAX = 2 };

struct cache_watch {
    size_t count;
    struct {
        char *path;
        int dir;
    } each[CACHE_WATCH_MAX];
};

/* The cache, and the mount point in it (NULL: none). Close it whatever came of it. */
int cache_watch_open(struct cache_watch *ret, const char *cache, const char *mount_point, struct fail *fail);
void cache_watch_close(struct cache_watch *watch);
/* 0, or -ENODEV and what became of it in a sentence. NULL-safe. */
int cache_watch_look(const struct cache_watch *watch, struct fail *fail);

#endif
