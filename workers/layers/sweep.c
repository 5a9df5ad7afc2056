/* What has been idle for long goes, whether there is room for it or not. */
#include "workers/layers/sweep.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "workers/files/locked_dir.h"
#include "workers/layers/cache.h"
#include "workers/layers/dir.h"
#include "workers/files/dirtree.h"

static bool is_idle(int fd, int64_t now_s)
{
    struct stat it;
    return fstat(fd, &it) == 0 && now_s - it.st_mtime >= LAYER_IDLE_S;
}

/* <64 hex digits>, or anything with ".tmp." in it. */
static void sweep_unpacked(const struct layers *layers, const char *path, const char *name, int64_t now_s)
{
    bool is_layer = strlen(name) == 64 && strspn(name, "0123456789abcdef") == 64;
    if (!is_layer && !strstr(name, HELD_DIR_TMP))
        return;
    AUTO_CLOSE int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir >= 0 && (strstr(name, HELD_DIR_GONE) || is_idle(dir, now_s)))
        layer_cache_remove(layers, dir, path);
}

static void sweep_packing(const struct layers *layers, const char *path, const char *name, int64_t now_s)
{
    (void)layers;
    if (strncmp(name, LAYER_PACKING, strlen(LAYER_PACKING)) != 0)
        return;
    AUTO_CLOSE int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file >= 0 && is_idle(file, now_s))
        unlink(path);
}

static void sweep_dir(const struct layers *layers, const char *dir, int64_t now_s,
                      void (*sweep)(const struct layers *layers, const char *path, const char *name, int64_t now_s))
{
    DIR *stream = opendir(dir);
    const struct dirent *entry;
    while (stream && (entry = readdir(stream))) {
        AUTO_FREE char *path = dirtree_join(dir, entry->d_name);
        if (path)
            sweep(layers, path, entry->d_name, now_s);
    }
    if (stream)
        closedir(stream);
}

void layer_cache_sweep(const struct layers *layers, int64_t now_s)
{
    sweep_dir(layers, layers->cache, now_s, sweep_unpacked);
    sweep_dir(layers, layers->cache, now_s, sweep_packing);
    sweep_dir(layers, layers->store, now_s, sweep_packing);
    layer_cache_recount(layers);
}

void layer_cache_sweep_now_and_then(const struct layers *layers)
{
    static _Atomic int64_t last_s;
    int64_t now_s = clock_wall_ms() / 1000, before_s = last_s;
    if (now_s - before_s >= LAYER_SWEEP_S && atomic_compare_exchange_strong(&last_s, &before_s, now_s))
        layer_cache_sweep(layers, now_s);
}
