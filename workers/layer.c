#include "workers/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/cleanup.h"
#include "common/digest.h"
#include "workers/layer_dir.h"
#include "workers/layer_frame.h"
#include "workers/offload.h"
#include "workers/tree.h"

void layer_finish(struct layer *layer)
{
    buffer_finish(&layer->inlined);
    layer->digest[0] = '\0';
}

enum fault layer_fault(int code)
{
    static const int of_node[] = {ENOSPC, EDQUOT, EROFS, ENOMEM, EMFILE, ENFILE, EAGAIN};
    for (size_t i = 0; i < sizeof(of_node) / sizeof(of_node[0]); i++)
        if (code == -of_node[i])
            return FAULT_NODE;
    return FAULT_STORE;
}

/* ---- the store: written beside, synced, renamed -------------------------------------------- */

static int sync_dir(const char *path, struct fail *fail)
{
    AUTO_CLOSE int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || fsync(dir) < 0)
        return tree_refuse(fail, "sync", path);
    return 0;
}

static int make_shelf(const char *store, const char *shelf, struct fail *fail)
{
    if (mkdir(shelf, 0777) == 0)
        return sync_dir(store, fail);
    return errno == EEXIST ? 0 : tree_refuse(fail, "make", shelf);
}

/*
 * Whether a whole layer of this digest is there already. It is touched first, so that the broker,
 * which deletes what nobody needs, sees that somebody does (docs/layers.md).
 */
static bool is_shelved(const char *path, const char *digest)
{
    struct stat found, named;
    char there[DIGEST_SIZE];
    AUTO_CLOSE int file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    return file >= 0 && futimens(file, NULL) == 0 && digest_of_file(file, there) &&
           strcmp(there, digest) == 0 && fstat(file, &found) == 0 && lstat(path, &named) == 0 &&
           found.st_ino == named.st_ino && found.st_dev == named.st_dev;
}

/* The file at `from`, complete and open as fd, becomes the layer `digest`. */
static int shelve(const char *store, const char *from, int fd, const char *digest,
                  struct fail *fail)
{
    const char *hex = digest + strlen("sha256:");
    AUTO_FREE char *shelf = NULL;
    AUTO_FREE char *path = NULL;
    if (asprintf(&shelf, "%s/%.2s", store, hex) < 0 ||
        asprintf(&path, "%s/%.2s/%s.tar.lz4", store, hex, hex) < 0)
        return fail_set(fail, -ENOMEM, "out of memory");
    if (is_shelved(path, digest)) {
        unlink(from);
        return sync_dir(shelf, fail); /* whoever made it may not have got so far */
    }
    if (fchmod(fd, 0444) < 0 || fsync(fd) < 0)
        return tree_refuse(fail, "sync", from);
    int code = make_shelf(store, shelf, fail);
    if (code < 0)
        return code;
    if (rename(from, path) < 0)
        return tree_refuse(fail, "make", path);
    return sync_dir(shelf, fail);
}

/* ---- packing ------------------------------------------------------------------------------ */

struct seal {
    const struct layers *layers;
    int tar;
    uint64_t size;
    struct layer *layer;
    struct fail *fail;
};

static int seal_stored(const struct seal *seal, const struct frame_pack *pack)
{
    bool good = lseek(pack->fd, 0, SEEK_SET) == 0 && digest_of_file(pack->fd, seal->layer->digest);
    int code =
        good ? shelve(seal->layers->store, pack->path, pack->fd, seal->layer->digest, seal->fail)
             : fail_set(seal->fail, -EIO, "cannot read %s", pack->path);
    if (code < 0)
        unlink(pack->path);
    return code;
}

/* The tar becomes a frame, inline or in the store. */
static int seal_work(void *arg, const atomic_bool *stop)
{
    struct seal *seal = arg;
    AUTO_FREE char *path = NULL;
    if (asprintf(&path, "%s/" LAYER_PACKING "XXXXXX", seal->layers->store) < 0) {
        path = NULL;
        return fail_set(seal->fail, -ENOMEM, "out of memory");
    }
    struct frame_pack pack = {
        .tar = seal->tar, .size = seal->size, .inline_max = LAYER_INLINE_MAX, .path = path};
    int code = frame_pack(&pack, stop, seal->fail);
    if (code == 0 && pack.fd >= 0) {
        code = seal_stored(seal, &pack);
        close(pack.fd);
    } else if (code == 0) {
        if (digest_of(buffer_peek(&pack.out), seal->layer->digest))
            seal->layer->inlined = pack.out;
        else
            code = fail_set(seal->fail, -ENOMEM, "out of memory");
        if (code == 0)
            return 0;
    }
    buffer_finish(&pack.out);
    return code;
}

/* A file without a name, on the disk of the cache. */
static int open_nameless(const char *cache, struct fail *fail)
{
    AUTO_FREE char *path = NULL;
    if (asprintf(&path, "%s/" LAYER_PACKING "XXXXXX", cache) < 0) {
        path = NULL;
        return fail_set(fail, -ENOMEM, "out of memory");
    }
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return tree_refuse(fail, "make", path);
    unlink(path);
    return fd;
}

int layer_pack(const struct layers *layers, struct sandbox *sandbox, struct layer *ret,
               struct fail *fail)
{
    struct layer layer = {0};
    ret->fault = FAULT_NODE;
    AUTO_CLOSE int tar = open_nameless(layers->cache, fail);
    if (tar < 0)
        return tar;
    struct seal seal = {.layers = layers, .tar = tar, .layer = &layer, .fail = fail};
    int code = sandbox_pack(sandbox, tar, &seal.size, fail);
    if (code < 0)
        return code;
    if (seal.size > 0)
        code = offload_run(seal_work, &seal, fail);
    if (code < 0) {
        bool is_full = code == -ENOSPC || code == -EDQUOT || code == -EROFS; /* the store's disk */
        ret->fault = is_full ? FAULT_STORE : layer_fault(code);
        layer_finish(&layer);
        return code;
    }
    *ret = layer;
    return 0;
}

/* ---- unpacking ---------------------------------------------------------------------------- */

int layer_unpack(const struct layers *layers, const char *digest, struct slice inlined,
                 char **ret_path, struct fail *fail)
{
    struct layer_dir dir;
    int code = layer_dir_hold(layers, digest, inlined, &dir, fail);
    if (code < 0)
        return code;
    *ret_path = take_ptr(&dir.path);
    close(dir.lock);
    return 0;
}
