/*
 * coding.h - a request's body as it was before its Content-Encoding: gzip or deflate, as clients send them. Bounded,
 * also while it grows. Pure.
 */
#ifndef SLUICE_COMMON_HTTP_CODING_H
#define SLUICE_COMMON_HTTP_CODING_H

#include "common/base/buffer.h"
#include "common/base/fail.h"

enum coding { CODING_NONE, CODING_GZIP, CODING_DEFLATE, CODING_OTHER };

/* As a header has it; NULL: there is none. Several in a row are CODING_OTHER. */
enum coding coding_of(const char *header);

/* In place of the body. -EINVAL: it is not so encoded; -E2BIG: it has more than `max` bytes; -ENOMEM. */
int coding_undo(enum coding coding, struct buffer *body, size_t max, struct fail *fail);

#endif
