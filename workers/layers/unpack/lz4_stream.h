/*
 * layers/unpack/lz4_stream.h - a layer's bytes: one LZ4 frame around a tar. Blocking; for offload.h.
 */
#ifndef SLUICE_WORKERS_LAYERS_UNPACK_LZ4_STREAM_H
#define SLUICE_WORKERS_LAYERS_UNPACK_LZ4_STREAM_H

#include <stdatomic.h>

#include "common/base/buffer.h"
#include "common/digest/digest.h"
#include "common/base/fail.h"

/*
 * Compresses what can be read from `tar`, until its end; `size` says how much that was. Up to `inline_max` bytes of
 * frame end up in `out`; beyond that all of them go to a new file, whose path is printed over `path` (a template
 * for mkostemp) and whose descriptor is `fd`, else -1. `digest` is the name of them all. On failure nothing is left.
 */
struct lz4_pack {
    int tar;
    size_t inline_max;
    char *path;
    uint64_t size;
    struct buffer out;
    int fd;
    char digest[DIGEST_SIZE];
    struct digest *digesting; /* lz4_pack's own */
};
int lz4_pack(struct lz4_pack *pack, const atomic_bool *stop, struct fail *fail);
/* Frees the bytes, closes the file and, if it is still at `path`, removes it. */
void lz4_discard(struct lz4_pack *pack);

/* Reads a frame from a file or from memory, a piece at a time. */
struct lz4_reader;
/* fd -1: from `bytes`. Both stay the caller's. NULL: no memory. */
struct lz4_reader *lz4_open(int fd, struct slice bytes, uint64_t size_max);
void lz4_close(struct lz4_reader **reader);
/*
 * The next piece, good until the next call; empty at the frame's end. -EBADMSG: not one whole
 * frame; -EFBIG: more than size_max in all.
 */
int lz4_read(struct lz4_reader *reader, struct slice *ret, struct fail *fail);
/*
 * The name of all its bytes, those before what was read and those after, which are read for it;
 * to be asked once, when nothing more is to be read.
 */
int lz4_digest(struct lz4_reader *reader, char ret[DIGEST_SIZE], struct fail *fail);

#endif
