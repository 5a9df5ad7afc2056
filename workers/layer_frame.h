/*
 * layer_frame.h - a layer's bytes: one LZ4 frame around a tar. Blocking; for offload.h.
 */
#ifndef SLUICE_WORKERS_LAYER_FRAME_H
#define SLUICE_WORKERS_LAYER_FRAME_H

#include <stdatomic.h>

#include "common/buffer.h"
#include "common/digest.h"
#include "common/fail.h"

/*
 * Compresses `size` bytes of `tar` from its start. Up to `inline_max` bytes of frame end up in
 * *ret; beyond that all of them go to a new file, whose path is printed over `path` (a template
 * for mkostemp) and whose descriptor is *ret_fd, else -1. On failure no file is left.
 */
struct frame_pack {
    int tar;
    uint64_t size;
    size_t inline_max;
    char *path;
    struct buffer out;
    int fd;
};
int frame_pack(struct frame_pack *pack, const atomic_bool *stop, struct fail *fail);

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
