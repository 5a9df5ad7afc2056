/*
 * layer.h - layers on disk: tar (OCI whiteouts) in an LZ4 frame, named by the sha256 of
 * those bytes ("sha256:<hex>"), immutable. Small ones travel in messages; larger ones lie
 * in the store, a directory all nodes see: <store>/<hex[0..2]>/<hex>.tar.lz4, written by
 * rename. Unpacked copies are kept per node in <cache>/<hex>/ and used as overlay lowers;
 * whiteouts there are what overlayfs expects of this user.
 */
#ifndef SLUICE_WORKERS_LAYERS_LAYER_H
#define SLUICE_WORKERS_LAYERS_LAYER_H

#include "common/base/buffer.h"
#include "common/base/fail.h"
#include "schemas/messages/message.h"
#include "workers/sandbox/sandbox.h"

enum { LAYER_INLINE_MAX = 65536 };
#define LAYER_UNKNOWN "unknown" /* in place of a digest: what a run left could not be kept */

struct layers {
    const char *store, *cache; /* existing directories */
    uint64_t cache_bytes;      /* what unpacked layers may take (layers/cache.h); 0: no limit */
    bool keeps_all;            /* small ones go to the store, too, and none is inline */
};

struct layer {
    char digest[80];       /* "" : nothing was written, no layer */
    struct buffer inlined; /* its bytes when at most LAYER_INLINE_MAX, else empty */
    enum fault fault;      /* after a failure: whose it is, the node's or the store's */
};

void layer_finish(struct layer *layer);

/* Whose fault a failure of the store's or the cache's files is: a full disk or no memory is the
 * node's. */
enum fault layer_fault(int code);

/* Packs what the sandbox wrote. In a fiber. Of *ret only the fault is written on failure. */
int layer_pack(const struct layers *layers, struct sandbox *sandbox, struct layer *ret, struct fail *fail);
/* The same of one whose processes go on behind it (sandbox_snapshot). */
int layer_snapshot(const struct layers *layers, struct sandbox *sandbox, struct layer *ret, struct fail *fail);
/* The same of a tree as dirtree.h has them, which nobody changes meanwhile. */
int layer_pack_tree(const struct layers *layers, int root, struct layer *ret, struct fail *fail);
/*
 * The directory of an unpacked layer (verified against its digest, made if this node has it
 * not yet; two at once are safe). `inlined` may be empty: then it is read from the store.
 * *ret_path is the caller's to free. -ENOENT: not in the store; -EBADMSG: damaged.
 */
int layer_unpack(const struct layers *layers, const char *digest, struct slice inlined, char **ret_path,
                 struct fail *fail);

#endif
