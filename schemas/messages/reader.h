/*
 * reader.h - MessagePack read one object at a time, never as a tree. What a value
 * may be is known from where it stands, so a container is entered only by asking
 * for its count, and nothing a peer sends makes it allocate or recurse. (msgpack-c's own
 * reader allocates 8 KiB for each object it is asked for.)
 *
 * Each call moves `at` past what it read; false: the next object is another type or
 * is cut short. Strings and bodies point into the bytes.
 */
#ifndef SLUICE_SCHEMAS_MESSAGES_READER_H
#define SLUICE_SCHEMAS_MESSAGES_READER_H

#include <msgpack.h>

#include "common/base/buffer.h"
#include "common/base/slice.h"

struct reader {
    struct slice bytes;
    size_t at;
};

static inline size_t reader_left(const struct reader *reader) { return reader->bytes.len - reader->at; }

/* Anything but an array or a map. */
bool reader_scalar(struct reader *reader, msgpack_object *ret);
bool reader_str(struct reader *reader, struct slice *ret);
bool reader_bin(struct reader *reader, struct slice *ret);
bool reader_uint(struct reader *reader, uint64_t *ret);
bool reader_real(struct reader *reader, double *ret);
/* The header of a container; its elements (two for each pair of a map) follow. */
bool reader_array(struct reader *reader, uint32_t *ret_count);
bool reader_map(struct reader *reader, uint32_t *ret_pairs);

/* Writing needs less: a packer that appends to a buffer, whose `failed` tells. */
void packer_init(msgpack_packer *packer, struct buffer *out);
void packer_str(msgpack_packer *packer, struct slice s);
void packer_bin(msgpack_packer *packer, struct slice body);

#endif
