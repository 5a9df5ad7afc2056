/*
 * slice.h - a borrowed run of bytes. Whoever made the bytes owns them; a slice
 * is good for as long as they are. A slice is not NUL-terminated.
 */
#ifndef SLUICE_COMMON_BASE_SLICE_H
#define SLUICE_COMMON_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct slice {
    const uint8_t *data;
    size_t len;
};

static inline struct slice slice_of(const void *data, size_t len) { return (struct slice){data, len}; }

static inline struct slice slice_from_str(const char *s)
{
    return (struct slice){(const uint8_t *)s, s ? strlen(s) : 0};
}

static inline bool slice_equal(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static inline bool slice_is(struct slice a, const char *s) { return slice_equal(a, slice_from_str(s)); }

/* For printf: printf("%.*s", SLICE_ARG(s)). */
#define SLICE_ARG(s) (int)(s).len, (const char *)((s).data ? (s).data : (const uint8_t *)"")

#endif
