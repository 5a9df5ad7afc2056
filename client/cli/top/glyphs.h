/* glyphs.h - how many columns of a terminal a character takes. */
#ifndef SLUICE_CLIENT_CLI_TOP_GLYPHS_H
#define SLUICE_CLIENT_CLI_TOP_GLYPHS_H

#include "common/base/slice.h"

/* The character that `text` (not empty) starts with, U+FFFD where it is none; *ret_len: its bytes, 1 or more. */
uint32_t glyph_next(struct slice text, size_t *ret_len);
/* 0 of what joins the character before it, 2 of wide ones (of East Asia, pictures), else 1. */
unsigned glyph_width(uint32_t character);

#endif
