/*
 * utf8.h - text from engines and tools: repaired where it must be UTF-8, and told apart where
 * it ends in the middle of a character.
 */
#ifndef SLUICE_WORKERS_UTF8_H
#define SLUICE_WORKERS_UTF8_H

#include "common/buffer.h"

/* Appends `text`; each byte that is not part of valid UTF-8 (and NUL) becomes U+FFFD. */
bool utf8_repair(struct slice text, struct buffer *out);

/*
 * Whether the last character lacks bytes. As llama.cpp's validate_utf8 has it (only lead bytes
 * among the last four count), because its server reports no probability for a token after
 * which its text is so cut.
 */
bool utf8_is_cut(struct slice text);

#endif
