/*
 * output.h - what a command wrote, kept within a bound: the beginning, the end, and a line in
 * between saying how many bytes were left out.
 */
#ifndef SLUICE_WORKERS_SANDBOX_OUTPUT_H
#define SLUICE_WORKERS_SANDBOX_OUTPUT_H

#include "common/base/buffer.h"

struct output {
    struct buffer head; /* the first head_max bytes */
    uint8_t *tail;      /* a ring of the last tail_max, made when the head is full */
    size_t head_max, tail_max, tail_at, tail_len;
    uint64_t total;
    bool failed; /* out of memory */
};

void output_init(struct output *output, size_t max);
void output_append(struct output *output, const void *data, size_t len);
/* A regular file from its beginning; what was left out is not read. */
void output_append_file(struct output *output, int fd, uint64_t size);
/* The same of its bytes [from, to). */
void output_append_part(struct output *output, int fd, uint64_t from, uint64_t to);
/* The text, NUL-terminated, *len bytes, the caller's; NULL when out of memory. Empties it. */
char *output_take(struct output *output, size_t *len);
void output_finish(struct output *output);

#endif
