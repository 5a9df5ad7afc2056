#include "workers/layer_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/digest.h"
#include "workers/held_dir.h"
#include "workers/layer_tar.h"
#include "workers/offload.h"
#include "workers/tree.h"

enum { HOLD_TRIES = 16 };

/* ---- holding ------------------------------------------------------------------------------ */

void layer_dir_release(struct layer_dir *dir)
{
    if (!dir->path)
        return;
    close(dir->lock);
    free(dir->path);
    *dir = (struct layer_dir){0};
}

static int discard_work(void *arg, const atomic_bool *stop)
{
    const struct layer_dir *dir = arg;
    (void)stop;
    held_dir_remove(dir->lock, dir->path);
    return 0;
}

void layer_dir_discard(struct layer_dir *dir)
{
    if (dir->path)
        offload_run(discard_work, dir, NULL);
    layer_dir_release(dir);
}

int layer_dir_make(const char *cache, struct layer_dir *ret, struct fail *fail)
{
    struct fail unasked;
    fail = fail ? fail : &unasked;
    AUTO_FREE char *path = held_dir_make(cache, "own", fail);
    if (!path)
        return fail->code;
    int lock = held_dir_hold(path);
    if (lock < 0)
        return fail_set(fail, -EBUSY, "cannot lock %s", path);
    *ret = (struct layer_dir){.path = take_ptr(&path), .lock = lock};
    return 0;
}

/* ---- sweeping ----------------------------------------------------------------------------- */

static bool is_idle(int fd, int64_t now_s)
{
    struct stat it;
    return fstat(fd, &it) == 0 && now_s - it.st_mtime >= LAYER_IDLE_S;
}

/* <64 hex digits>, or anything with ".tmp." in it. */
static void sweep_unpacked(const char *path, const char *name, int64_t now_s)
{
    bool is_layer = strlen(name) == 64 && strspn(name, "0123456789abcdef") == 64;
    if (!is_layer && !strstr(name, HELD_DIR_TMP))
        return;
    AUTO_CLOSE int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir >= 0 && is_idle(dir, now_s))
        held_dir_remove(dir, path);
}

static void sweep_packing(const char *path, const char *name, int64_t now_s)
{
    if (strncmp(name, LAYER_PACKING, strlen(LAYER_PACKING)) != 0)
        return;
    AUTO_CLOSE int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file >= 0 && is_idle(file, now_s))
        unlink(path);
}

static void sweep_dir(const char *dir, int64_t now_s,
                      void (*sweep)(const char *path, const char *name, int64_t now_s))
{
    DIR *stream = opendir(dir);
    const struct dirent *entry;
    while (stream && (entry = readdir(stream))) {
        AUTO_FREE char *path = NULL;
        if (asprintf(&path, "%s/%s", dir, entry->d_name) >= 0)
            sweep(path, entry->d_name, now_s);
        else
            path = NULL;
    }
    if (stream)
        closedir(stream);
}

void layer_dir_sweep(const struct layers *layers, int64_t now_s)
{
    sweep_dir(layers->cache, now_s, sweep_unpacked);
    sweep_dir(layers->cache, now_s, sweep_packing);
    sweep_dir(layers->store, now_s, sweep_packing);
}

static void sweep_now_and_then(const struct layers *layers)
{
    static _Atomic int64_t last_s;
    int64_t now_s = clock_wall_ms() / 1000, before_s = last_s;
    if (now_s - before_s >= LAYER_SWEEP_S &&
        atomic_compare_exchange_strong(&last_s, &before_s, now_s))
        layer_dir_sweep(layers, now_s);
}

/* ---- unpacking ---------------------------------------------------------------------------- */

struct unpack {
    const struct layers *layers;
    const char *digest, *hex;
    struct slice inlined;
    const char *path;
    int lock;
    struct fail *fail;
};

/* The layer's bytes in the store. */
static int open_stored(const struct unpack *unpack)
{
    AUTO_FREE char *path = NULL;
    if (asprintf(&path, "%s/%.2s/%s.tar.lz4", unpack->layers->store, unpack->hex, unpack->hex) <
        0) {
        path = NULL;
        return fail_set(unpack->fail, -ENOMEM, "out of memory");
    }
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return tree_refuse(unpack->fail, "open the layer", path);
    return file;
}

/* `file` is left at its start. */
static int verify(const struct unpack *unpack, int file)
{
    char found[DIGEST_SIZE];
    bool good = file < 0 ? digest_of(unpack->inlined, found) : digest_of_file(file, found);
    if (!good || (file >= 0 && lseek(file, 0, SEEK_SET) < 0))
        return fail_set(unpack->fail, -EIO, "cannot read the layer %s", unpack->digest);
    if (strcmp(found, unpack->digest) != 0)
        return fail_set(unpack->fail, -EBADMSG, "the layer %s is damaged: it is %s", unpack->digest,
                        found);
    return 0;
}

static int unpack_into(const struct unpack *unpack, int file, const char *path,
                       const atomic_bool *stop)
{
    AUTO_CLOSE int root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return tree_refuse(unpack->fail, "open", path);
    struct frame_reader *tar = frame_open(file, unpack->inlined, LAYER_BYTES_MAX);
    if (!tar)
        return fail_set(unpack->fail, -ENOMEM, "out of memory");
    int code = layer_tar_unpack(root, tar, stop, unpack->fail);
    frame_close(&tar);
    return code;
}

/* Unpacks beside and renames; 0 also when another was faster. */
static int unpack_once(const struct unpack *unpack, int file, const atomic_bool *stop)
{
    AUTO_FREE char *fresh = held_dir_make(unpack->layers->cache, unpack->hex, unpack->fail);
    if (!fresh)
        return unpack->fail->code;
    int code = unpack_into(unpack, file, fresh, stop);
    if (code == 0 && rename(fresh, unpack->path) == 0)
        return 0;
    if (code == 0 && errno != ENOTEMPTY && errno != EEXIST)
        code = tree_refuse(unpack->fail, "make", unpack->path);
    tree_remove(fresh);
    return code;
}

static int unpack_work(void *arg, const atomic_bool *stop)
{
    struct unpack *unpack = arg;
    sweep_now_and_then(unpack->layers);
    for (int tries = 0; tries < HOLD_TRIES; tries++) {
        AUTO_CLOSE int file = unpack->inlined.len ? -1 : open_stored(unpack);
        if (file < 0 && !unpack->inlined.len)
            return file;
        int code = verify(unpack, file);
        if (code == 0)
            code = unpack_once(unpack, file, stop);
        if (code < 0)
            return code;
        if ((unpack->lock = held_dir_hold(unpack->path)) >= 0)
            return 0;
    }
    return fail_set(unpack->fail, -EBUSY, "%s is removed as often as it is made", unpack->path);
}

int layer_dir_hold(const struct layers *layers, const char *digest, struct slice inlined,
                   struct layer_dir *ret, struct fail *fail)
{
    struct fail unasked;
    if (!digest_is_valid(digest))
        return fail_set(fail, -EINVAL, "\"%.80s\" is not a digest", digest);
    const char *hex = digest + strlen("sha256:");
    AUTO_FREE char *path = NULL;
    if (asprintf(&path, "%s/%s", layers->cache, hex) < 0) {
        path = NULL;
        return fail_set(fail, -ENOMEM, "out of memory");
    }
    struct unpack unpack = {.layers = layers,
                            .digest = digest,
                            .hex = hex,
                            .inlined = inlined,
                            .path = path,
                            .fail = fail ? fail : &unasked};
    unpack.lock = held_dir_hold(path);
    int code = unpack.lock >= 0 ? 0 : offload_run(unpack_work, &unpack, fail);
    if (code < 0)
        return code;
    *ret = (struct layer_dir){.path = take_ptr(&path), .lock = unpack.lock};
    return 0;
}
