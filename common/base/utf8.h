/* utf8.h - text as this service takes it: UTF-8 without NUL, surrogates or overlong forms. */
#ifndef SLUICE_COMMON_BASE_UTF8_H
#define SLUICE_COMMON_BASE_UTF8_H

#include "common/base/buffer.h"

/* Bytes of the sequence that `s` (not empty) starts with; 0: it starts with none. */
size_t utf8_sequence(struct slice s);
/* The character of a sequence of so many bytes. */
uint32_t utf8_character(const uint8_t *sequence, size_t len);
bool utf8_is_valid(struct slice s);
/* Appends `s` with U+FFFD for each byte that is not part of a sequence. */
void utf8_append_repaired(struct buffer *out, struct slice s);

#endif
