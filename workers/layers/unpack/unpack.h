/* unpack.h - what the files that unpack a layer share: the tree in the making, and how it is refused. */
#ifndef SLUICE_WORKERS_LAYERS_UNPACK_UNPACK_H
#define SLUICE_WORKERS_LAYERS_UNPACK_UNPACK_H

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

/* "the layer holds PATH: WHY", -EBADMSG. */
int layer_refuse(struct unpack *unpack, const char *path, const char *why);
/* Says what libarchive, or the frame beneath it, could not read. */
int layer_refuse_archive(struct unpack *unpack);

#endif
