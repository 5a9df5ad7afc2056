#include "workers/layers/dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/digest/digest.h"
#include "workers/files/dirtree_keep.h"
#include "common/files/dirtree_remove.h"
#include "workers/files/dirtree_take.h"
#include "workers/files/locked_dir.h"
#include "workers/layers/cache.h"
#include "workers/layers/sweep.h"
#include "workers/layers/unpack/tar.h"
#include "workers/runtime/offload.h"
#include "workers/files/dirtree.h"
#include "workers/files/tree_index.h"

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

/* Its holder's parent is the cache. */
static int discard_work(void *arg, const atomic_bool *stop)
{
    const struct layer_dir *dir = arg;
    AUTO_FREE char *holder = tree_index_holder(dir->path);
    AUTO_FREE char *cache = holder ? dirtree_parent(holder) : NULL;
    (void)stop;
    if (cache)
        layer_cache_remove(&(struct layers){.cache = cache}, dir->lock, holder);
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
    AUTO_FREE char *holder = locked_dir_make(cache, "own", fail);
    if (!holder)
        return fail->code;
    AUTO_CLOSE int lock = locked_dir_hold(holder);
    if (lock < 0)
        return fail_set(fail, -EBUSY, "cannot lock %s", holder);
    AUTO_FREE char *root = dirtree_join(holder, TREE_INDEX_ROOT);
    if (!root)
        return fail_memory(fail);
    if (mkdir(root, 0700) < 0)
        return dirtree_refuse(fail, "make", root);
    *ret = (struct layer_dir){.path = take_ptr(&root), .lock = take_fd(&lock)};
    return 0;
}

int layer_dir_seal(const struct layer_dir *dir, struct fail *fail)
{
    AUTO_FREE char *holder = tree_index_holder(dir->path);
    return holder ? tree_index_write(holder, fail) : fail_memory(fail);
}

int layer_dir_look(const struct layer_dir *dir, struct fail *fail)
{
    AUTO_FREE char *holder = tree_index_holder(dir->path);
    if (!holder)
        return fail_memory(fail);
    if (!locked_dir_is_at(dir->lock, holder))
        return fail_set(fail, -ENODEV, "the layer %s is not there any more, or is another one", holder);
    int code = tree_index_look(holder, fail);
    if (code < 0) {
        fail_wrap(fail, "a layer was changed");
        locked_dir_set_aside(dir->lock, holder);
    }
    return code;
}

/* ---- unpacking ---------------------------------------------------------------------------- */

struct unpack {
    const struct layers *layers;
    const char *digest, *hex;
    struct layer_part part;
    struct slice inlined;
    const char *path; /* of the holder */
    int lock;
    struct fail *fail;
};

/* The layer's bytes in the store. */
static int open_stored(const struct unpack *unpack)
{
    AUTO_FREE char *path = NULL;
    if (asprintf(&path, "%s/%.2s/%s.tar.lz4", unpack->layers->store, unpack->hex, unpack->hex) < 0) {
        path = NULL;
        return fail_memory(unpack->fail);
    }
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return dirtree_refuse(unpack->fail, "open the layer", path);
    return file;
}

/*
 * Whether what was unpacked is what was asked for; `code` is how the unpacking ended. A layer of
 * the right name that could not be unpacked was made so.
 */
static int verify(const struct unpack *unpack, struct lz4_reader *tar, int code)
{
    char found[DIGEST_SIZE];
    if (code < 0 && code != -EBADMSG && code != -EFBIG)
        return code;
    struct fail unread = {0};
    if (lz4_digest(tar, found, &unread) < 0)
        return fail_set(unpack->fail, unread.code, "%s", unread.text);
    if (strcmp(found, unpack->digest) != 0)
        return fail_set(unpack->fail, -EBADMSG, "the layer %s is damaged: it is %s", unpack->digest, found);
    return code;
}

static const char *const system_names[] = {
#define SYSTEM_NAME(name) name,
#include "workers/sandbox/container/system_names.def"
#undef SYSTEM_NAME
};

/* After all of it was unpacked: what lies elsewhere may be a link to what goes. */
static int drop_system_names(const struct unpack *unpack, int root)
{
    for (size_t i = 0; i < sizeof(system_names) / sizeof(system_names[0]); i++) {
        if (unlinkat(root, system_names[i], 0) == 0 || errno == ENOENT)
            continue;
        int code = errno == EISDIR ? dirtree_remove_at(root, system_names[i]) : -errno;
        if (code < 0)
            return fail_set(unpack->fail, code, "cannot take %s out of the layer %s: %s", system_names[i],
                            unpack->digest, strerror(-code));
    }
    return 0;
}

#define WHOLE "whole" /* the name of what the places are taken from, until they are */

static int leave_places(const struct unpack *unpack, int holder)
{
    if (renameat(holder, TREE_INDEX_ROOT, holder, WHOLE) < 0 || mkdirat(holder, TREE_INDEX_ROOT, 0700) < 0)
        return dirtree_refuse(unpack->fail, "make the root of", unpack->digest);
    AUTO_CLOSE int from = openat(holder, WHOLE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO_CLOSE int into = openat(holder, TREE_INDEX_ROOT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (from < 0 || into < 0)
        return dirtree_refuse(unpack->fail, "open the root of", unpack->digest);
    int code = dirtree_take(from, into, unpack->part.places, unpack->part.place_count, unpack->fail);
    if (code == 0 && (code = dirtree_remove_at(holder, WHOLE)) < 0)
        return fail_set(unpack->fail, code, "cannot take places out of the layer %s: %s", unpack->digest,
                        strerror(-code));
    return code;
}

static int leave_part(const struct unpack *unpack, int holder, int root)
{
    int code = unpack->part.is_plain ? drop_system_names(unpack, root) : 0;
    if (code == 0 && unpack->part.below)
        code = dirtree_keep(root, unpack->part.below, ".git", unpack->fail);
    return code == 0 && unpack->part.places ? leave_places(unpack, holder) : code;
}

static int unpack_into(const struct unpack *unpack, int file, const char *path, const atomic_bool *stop)
{
    AUTO_CLOSE int holder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO_CLOSE int root = holder < 0 || mkdirat(holder, TREE_INDEX_ROOT, 0700) < 0
                              ? -1
                              : openat(holder, TREE_INDEX_ROOT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return dirtree_refuse(unpack->fail, "make the root of", path);
    struct lz4_reader *tar = lz4_open(file, unpack->inlined, LAYER_BYTES_MAX);
    if (!tar)
        return fail_memory(unpack->fail);
    uint64_t bytes = 0;
    int code = verify(unpack, tar, layer_tar_unpack(root, tar, stop, &bytes, unpack->fail));
    lz4_close(&tar);
    if (code == 0)
        code = leave_part(unpack, holder, root);
    if (code == 0)
        code = tree_index_write(path, unpack->fail);
    if (code < 0)
        return code;
    code = layer_cache_add(unpack->layers, holder, bytes);
    return code < 0 ? fail_set(unpack->fail, code, "cannot mark %s: %s", path, strerror(-code)) : 0;
}

/* Unpacks beside and renames; 0 also when another was faster. */
static int unpack_once(const struct unpack *unpack, int file, const atomic_bool *stop)
{
    AUTO_FREE char *fresh = locked_dir_make(unpack->layers->cache, unpack->hex, unpack->fail);
    if (!fresh)
        return unpack->fail->code;
    int code = unpack_into(unpack, file, fresh, stop);
    if (code == 0 && rename(fresh, unpack->path) == 0)
        return 0;
    if (code == 0 && errno != ENOTEMPTY && errno != EEXIST)
        code = dirtree_refuse(unpack->fail, "make", unpack->path);
    AUTO_CLOSE int dir = open(fresh, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || !layer_cache_remove(unpack->layers, dir, fresh))
        dirtree_remove(fresh);
    return code;
}

static bool is_full(int code) { return code == -ENOSPC || code == -EDQUOT; }

/* A full disk is given one chance: half of what is kept there goes. */
static int unpack_anew(const struct unpack *unpack, const atomic_bool *stop)
{
    int code = 0;
    for (int tries = 0; tries < 2; tries++) {
        AUTO_CLOSE int file = unpack->inlined.len ? -1 : open_stored(unpack);
        if (file < 0 && !unpack->inlined.len)
            return file;
        code = unpack_once(unpack, file, stop);
        if (!is_full(code))
            return code;
        if (!layer_cache_make_room(unpack->layers))
            break;
    }
    return fail_set(unpack->fail, code, "no room for the layer %s in the cache %s: %s", unpack->digest,
                    unpack->layers->cache, strerror(-code));
}

/* Asked before it is locked: who removes it needs it alone. */
static int hold_unpacked(const char *path) { return layer_cache_is_of_this_boot(path) ? locked_dir_hold(path) : -1; }

/* What may be there in part goes, so that the whole one finds its place. */
static void make_way(const struct unpack *unpack)
{
    AUTO_CLOSE int dir = open(unpack->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir >= 0 && !layer_cache_is_of_this_boot(unpack->path))
        layer_cache_remove(unpack->layers, dir, unpack->path);
}

static int unpack_work(void *arg, const atomic_bool *stop)
{
    struct unpack *unpack = arg;
    layer_cache_sweep_now_and_then(unpack->layers);
    for (int tries = 0; tries < HOLD_TRIES; tries++) {
        make_way(unpack);
        int code = unpack_anew(unpack, stop);
        if (code < 0)
            return code;
        unpack->lock = hold_unpacked(unpack->path);
        layer_cache_trim(unpack->layers);
        if (unpack->lock >= 0)
            return 0;
    }
    return fail_set(unpack->fail, -EBUSY, "%s is removed as often as it is made", unpack->path);
}

static int hold(struct unpack *unpack, const char *kept_as, struct layer_dir *ret)
{
    AUTO_FREE char *path = dirtree_join(unpack->layers->cache, kept_as);
    if (!path)
        return fail_memory(unpack->fail);
    unpack->path = path;
    unpack->lock = hold_unpacked(path);
    int code = unpack->lock >= 0 ? 0 : offload_run(unpack_work, unpack, unpack->fail);
    if (code < 0)
        return code;
    char *root = dirtree_join(path, TREE_INDEX_ROOT);
    if (!root) {
        close(unpack->lock);
        return fail_memory(unpack->fail);
    }
    *ret = (struct layer_dir){.path = root, .lock = unpack->lock};
    return 0;
}

static bool is_whole(const struct layer_part *part) { return !part->is_plain && !part->below && !part->places; }

static void name_text(struct buffer *name, const char *text) { buffer_append(name, text, strlen(text) + 1); }

/* Its digest is a name like the others', which no layer has. */
static bool name_part(const struct layer_part *part, const char *digest, char ret[DIGEST_SIZE])
{
    AUTO_BUFFER name = {0};
    name_text(&name, part->is_plain ? "plain" : "");
    name_text(&name, part->below ? part->below : "");
    for (size_t i = 0; i < part->place_count; i++) {
        name_text(&name, part->places[i].path);
        for (size_t k = 0; k < part->places[i].exclude_count; k++)
            name_text(&name, part->places[i].exclude[k]);
        name_text(&name, "");
    }
    name_text(&name, part->places ? "places" : "");
    name_text(&name, digest);
    return !name.failed && digest_of(buffer_peek(&name), ret);
}

int layer_dir_hold_part(const struct layers *layers, const char *digest, struct slice inlined,
                        const struct layer_part *part, struct layer_dir *ret, struct fail *fail)
{
    struct fail unasked;
    char name[DIGEST_SIZE];
    struct unpack unpack = {
        .layers = layers, .digest = digest, .inlined = inlined, .part = *part, .fail = fail ? fail : &unasked};
    if (!digest_is_valid(digest))
        return fail_set(fail, -EINVAL, "\"%.80s\" is not a digest", digest);
    unpack.hex = digest + strlen("sha256:");
    if (is_whole(part))
        return hold(&unpack, unpack.hex, ret);
    return name_part(part, digest, name) ? hold(&unpack, name + strlen("sha256:"), ret) : fail_memory(unpack.fail);
}

int layer_dir_hold(const struct layers *layers, const char *digest, struct slice inlined, struct layer_dir *ret,
                   struct fail *fail)
{
    return layer_dir_hold_part(layers, digest, inlined, &(struct layer_part){.place_count = 0}, ret, fail);
}
