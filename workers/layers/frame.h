/*
 * layers/frame.h - a layer's bytes: one LZ4 frame around a tar. Blocking; for offload.h.
 */
#ifndef SLUICE_WORKERS_LAYERS_FRAME_H
#define SLUICE_WORKERS_LAYERS_FRAME_H

#include <stdatomic.h>

#include "common/base/buffer.h"
#include "common/digest/digest.h"
#include "common/base/fail.h"

/*
 * Compresses what can be read from `tar`, until its end; `size` says how much that was. Up to `inline_max` bytes of
 * frame end up in `out`; beyond that all of them go to a new file, whose path is printed over `path` (a template
 * for mkostemp) and whose descriptor is `fd`, else -1. `digest` is the name of them all. On failure nothing is left.
 */
struct frame_pack {
    int tar;
    size_t inline_max;
    char *path;
    uint64_t size;
    struct buffer out;
    int fd;
    char digest[DIGEST_SIZE];
    struct digest *digesting; /* frame_pack's own */
};
int frame_pack(struct frame_pack *pack, const atomic_bool *stop, struct fail *fail);
/* Frees the bytes, closes the file and, if it is still at `path`, removes it. */
void frame_discard(struct frame_pack *pack);

/* Reads a frame from a file or from memory, a piece at a time. */
struct frame_reader;
/* fd -1: from `bytes`. Both stay the caller's. NULL: no memory. */
struct frame_reader *frame_open(int fd, struct slice bytes, uint64_t size_max);
void frame_close(struct frame_reader **reader);
/*
 * The next piece, good until the next call; empty at the frame's end. -EBADMSG: not one whole
 * frame; -EFBIG: more than size_max in all.
 */
int frame_read(struct frame_reader *reader, struct slice *ret, struct fail *fail);
/*
 * The name of all its bytes, those before what was read and those after, which are read for it;
 * to be asked once, when nothing more is to be read.
 */
int frame_digest(struct frame_reader *reader, char ret[DIGEST_SIZE], struct fail *fail);

#endif
