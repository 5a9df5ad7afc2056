/* layers/unpack/inside.h - what the files that unpack a layer share: the tree in the making. */
#ifndef SLUICE_WORKERS_LAYERS_UNPACK_INSIDE_H
#define SLUICE_WORKERS_LAYERS_UNPACK_INSIDE_H

#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>

#include "common/base/buffer.h"
#include "workers/layers/unpack/thread_pool.h"
#include "workers/layers/unpack/tar.h"

/* What is done last, when no more entries can come between; in this order. */
enum pending_kind { PENDING_OPAQUE, PENDING_WHITEOUT, PENDING_DIR };

struct pending {
    enum pending_kind kind;
    char *path;
    size_t order;
    mode_t mode;
    struct timespec times[2];
};

struct unpack {
    int root;
    mode_t umask; /* this process's */
    struct lz4_reader *tar;
    struct archive *archive;
    const atomic_bool *stop;
    struct fail *fail;
    struct fail tar_fail; /* why the frame could not be read */
    uint64_t bytes, entries;
    struct pending *pending;
    size_t pending_count, pending_capacity;
    struct thread_pool *pool; /* makes the small files */
    struct buffer content;    /* of the one in hand */
    char *parent_path;        /* of the directory that is open as `parent` */
    int parent;
};

/* An entry with its name, in its parent. */
struct item {
    struct archive_entry *entry;
    const char *path, *leaf;
    int parent;
    struct timespec times[2];
};

/* ---- layers/unpack/tar.c --------------------------------------------------------------------------- */

/* "the layer holds PATH: WHY", -EBADMSG. */
int layer_refuse(struct unpack *unpack, const char *path, const char *why);
/* Says what libarchive, or the frame beneath it, could not read. */
int layer_refuse_archive(struct unpack *unpack);

/* ---- layers/unpack/item.c -------------------------------------------------------------------------- */

int layer_item_make(struct unpack *unpack, const struct item *item);

/* ---- layers/unpack/pending.c ----------------------------------------------------------------------- */

/* `path` is copied. */
int layer_pending_add(struct unpack *unpack, struct pending pending, const char *path);
int layer_pending_apply(struct unpack *unpack);
void layer_pending_finish(struct unpack *unpack);

#endif
