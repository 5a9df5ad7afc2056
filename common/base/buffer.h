/*
 * buffer.h - bytes that grow. The owner calls buffer_finish. Growth never
 * fails quietly: out of memory sets `failed`, and later appends do nothing, so
 * a run of appends needs one check at its end.
 */
#ifndef SLUICE_COMMON_BASE_BUFFER_H
#define SLUICE_COMMON_BASE_BUFFER_H

#include "common/base/slice.h"

struct buffer {
    uint8_t *data;
    size_t len, capacity;
    bool failed;
};

bool buffer_append(struct buffer *buffer, const void *data, size_t len);
bool buffer_append_str(struct buffer *buffer, const char *text);
bool buffer_printf(struct buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The text as one word of bash, whatever is in it. */
bool buffer_append_quoted(struct buffer *buffer, const char *text);
/* Room for `len` more bytes at data + len, or NULL. */
uint8_t *buffer_reserve(struct buffer *buffer, size_t len);
void buffer_clear(struct buffer *buffer);
void buffer_finish(struct buffer *buffer);
/* The bytes as a NUL-terminated string the caller frees, or NULL; empties the buffer. */
char *buffer_take_str(struct buffer *buffer);

static inline struct slice buffer_peek(const struct buffer *buffer) { return slice_of(buffer->data, buffer->len); }

#endif
