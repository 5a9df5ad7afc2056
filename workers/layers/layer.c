#include "workers/layers/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/digest/digest.h"
#include "workers/layers/dir.h"
#include "workers/layers/unpack/lz4_stream.h"
#include "workers/runtime/offload.h"
#include "workers/files/dirtree.h"
#include "workers/sandbox/init/services/pack.h"
#include "workers/sandbox/requests.h"

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
        return dirtree_refuse(fail, "sync", path);
    return 0;
}

static int make_bucket(const char *bucket, bool *is_new, struct fail *fail)
{
    *is_new = mkdir(bucket, 0777) == 0;
    return *is_new || errno == EEXIST ? 0 : dirtree_refuse(fail, "make", bucket);
}

/* A new bucket first: a journal that takes the file to the disk takes the bucket's name with it. */
static int sync_before_name(const char *store, const char *bucket, const char *from, int fd, struct fail *fail)
{
    bool is_new;
    int code = make_bucket(bucket, &is_new, fail);
    if (code == 0 && (fchmod(fd, 0444) < 0 || fsync(fd) < 0))
        code = dirtree_refuse(fail, "sync", from);
    return code == 0 && is_new ? sync_dir(store, fail) : code;
}

/*
 * Whether a whole layer of this digest is there already. It is touched first, so that the broker,
 * which deletes what nobody needs, sees that somebody does (docs/contributing/layers.md).
 */
static bool is_shelved(const char *path, const char *digest)
{
    struct stat found, named;
    char there[DIGEST_SIZE];
    AUTO_CLOSE int file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    return file >= 0 && futimens(file, NULL) == 0 && digest_of_file(file, there) && strcmp(there, digest) == 0 &&
           fstat(file, &found) == 0 && lstat(path, &named) == 0 && found.st_ino == named.st_ino &&
           found.st_dev == named.st_dev;
}

/* The file at `from`, complete and open as fd, becomes the layer `digest`. */
static int shelve(const char *store, const char *from, int fd, const char *digest, struct fail *fail)
{
    const char *hex = digest + strlen("sha256:");
    AUTO_FREE char *bucket = NULL;
    AUTO_FREE char *path = NULL;
    if (asprintf(&bucket, "%s/%.2s", store, hex) < 0 || asprintf(&path, "%s/%.2s/%s.tar.lz4", store, hex, hex) < 0)
        return fail_memory(fail);
    if (is_shelved(path, digest)) {
        unlink(from);
        return sync_dir(bucket, fail); /* whoever made it may not have got so far */
    }
    int code = sync_before_name(store, bucket, from, fd, fail);
    if (code < 0)
        return code;
    if (rename(from, path) < 0)
        return dirtree_refuse(fail, "make", path);
    return sync_dir(bucket, fail);
}

/* ---- packing ------------------------------------------------------------------------------ */

struct squeeze {
    struct lz4_pack *pack;
    struct fail fail;
};

static int squeeze_work(void *arg, const atomic_bool *stop)
{
    struct squeeze *squeeze = arg;
    int code = lz4_pack(squeeze->pack, stop, &squeeze->fail);
    shutdown(squeeze->pack->tar, SHUT_RDWR); /* who packs is not left waiting */
    return code;
}

/* Of the store, where it is its disk that is full. */
static enum fault fault_of_frame(int code)
{
    return code == -ENOSPC || code == -EDQUOT || code == -EROFS ? FAULT_STORE : layer_fault(code);
}

/* Who writes a tar to `fd`, and says how long it is. */
struct packer {
    int (*pack)(void *arg, int fd, uint64_t *ret_bytes, struct fail *fail);
    void *arg;
};

/* It packs while what it has packed becomes a frame. Both fail when one does: that one says why. */
static int pack_and_squeeze(const struct packer *packer, struct lz4_pack *pack, enum fault *fault, struct fail *fail)
{
    int ends[2];
    uint64_t bytes = 0;
    struct offload *offload;
    struct squeeze squeeze = {.pack = pack};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return fail_set(fail, -errno, "socketpair: %s", strerror(errno));
    AUTO_CLOSE int tar = ends[0];
    AUTO_CLOSE int its_end = ends[1];
    pack->tar = tar;
    int code = offload_begin(squeeze_work, &squeeze, &offload, fail);
    if (code < 0)
        return code;
    struct fail packing = {0};
    int packed = packer->pack(packer->arg, its_end, &bytes, &packing);
    if (packed < 0)
        shutdown(tar, SHUT_RDWR);
    cleanup_close(&its_end);
    its_end = -1;
    code = offload_end(&offload, &squeeze.fail);
    if (code < 0) {
        *fault = fault_of_frame(code);
        return fail_set(fail, code, "%s", squeeze.fail.text);
    }
    if (packed == 0 && pack->size == bytes)
        return 0;
    lz4_discard(pack);
    return packed < 0 ? fail_set(fail, packed, "%s", packing.text)
                      : fail_set(fail, -EIO, "of %llu packed bytes %llu came", (unsigned long long)bytes,
                                 (unsigned long long)pack->size);
}

struct seal {
    const struct layers *layers;
    const struct lz4_pack *pack;
    struct fail *fail;
};

static int seal_work(void *arg, const atomic_bool *stop)
{
    const struct seal *seal = arg;
    (void)stop;
    return shelve(seal->layers->store, seal->pack->path, seal->pack->fd, seal->pack->digest, seal->fail);
}

/* The frame becomes the layer, inline or in the store; without files there is none. */
static int seal(const struct layers *layers, struct lz4_pack *pack, struct layer *ret, struct fail *fail)
{
    int code = 0;
    if (pack->fd >= 0)
        code = offload_run(seal_work, &(struct seal){layers, pack, fail}, fail);
    if (code == 0 && pack->size > 0) {
        memcpy(ret->digest, pack->digest, sizeof(ret->digest));
        ret->inlined = pack->out;
        pack->out = (struct buffer){0};
    }
    lz4_discard(pack);
    return code;
}

static int pack_by(const struct layers *layers, const struct packer *packer, struct layer *ret, struct fail *fail)
{
    struct layer layer = {0};
    AUTO_FREE char *path = NULL;
    ret->fault = FAULT_NODE;
    if (asprintf(&path, "%s/" LAYER_PACKING "XXXXXX", layers->store) < 0) {
        path = NULL;
        return fail_memory(fail);
    }
    struct lz4_pack pack = {.inline_max = layers->keeps_all ? 0 : LAYER_INLINE_MAX, .path = path, .fd = -1};
    int code = pack_and_squeeze(packer, &pack, &ret->fault, fail);
    if (code < 0)
        return code;
    code = seal(layers, &pack, &layer, fail);
    if (code < 0)
        ret->fault = fault_of_frame(code);
    else
        *ret = layer;
    return code;
}

static int pack_sandbox(void *arg, int fd, uint64_t *ret_bytes, struct fail *fail)
{
    return sandbox_pack(arg, fd, ret_bytes, fail);
}

int layer_pack(const struct layers *layers, struct sandbox *sandbox, struct layer *ret, struct fail *fail)
{
    return pack_by(layers, &(struct packer){pack_sandbox, sandbox}, ret, fail);
}

static int snapshot_sandbox(void *arg, int fd, uint64_t *ret_bytes, struct fail *fail)
{
    return sandbox_snapshot(arg, fd, ret_bytes, fail);
}

int layer_snapshot(const struct layers *layers, struct sandbox *sandbox, struct layer *ret, struct fail *fail)
{
    return pack_by(layers, &(struct packer){snapshot_sandbox, sandbox}, ret, fail);
}

struct tree {
    int root, fd;
    uint64_t bytes;
    struct fail *fail;
};

static int tree_work(void *arg, const atomic_bool *stop)
{
    struct tree *tree = arg;
    AUTO_FREE struct touched *ignored = calloc(1, sizeof(*ignored));
    return ignored ? pack_upper(tree->root, tree->fd, PACK_TREE, stop, &tree->bytes, ignored, tree->fail)
                   : fail_memory(tree->fail);
}

static int pack_tree(void *arg, int fd, uint64_t *ret_bytes, struct fail *fail)
{
    struct tree tree = {.root = *(const int *)arg, .fd = fd, .fail = fail};
    int code = offload_run(tree_work, &tree, fail);
    *ret_bytes = tree.bytes;
    return code;
}

int layer_pack_tree(const struct layers *layers, int root, struct layer *ret, struct fail *fail)
{
    return pack_by(layers, &(struct packer){pack_tree, &root}, ret, fail);
}

/* ---- unpacking ---------------------------------------------------------------------------- */

int layer_unpack(const struct layers *layers, const char *digest, struct slice inlined, char **ret_path,
                 struct fail *fail)
{
    struct layer_dir dir;
    int code = layer_dir_hold(layers, digest, inlined, &dir, fail);
    if (code < 0)
        return code;
    *ret_path = take_ptr(&dir.path);
    close(dir.lock);
    return 0;
}
