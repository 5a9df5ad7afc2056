/*
 * screen.h - what `sluice top` shows, before any terminal has seen it: rows of text, each cut to the width, with marks
 * where a style begins. Pure: no terminal, no clock. All text that comes in is made tame (common/base/sanitize.h), and
 * a mark is a control character, so no text of others can be one.
 */
#ifndef SLUICE_CLIENT_CLI_TOP_SCREEN_H
#define SLUICE_CLIENT_CLI_TOP_SCREEN_H

#include "common/base/buffer.h"

enum { SCREEN_COLUMNS_MAX = 1000, SCREEN_ROWS_MAX = 500 };

/* The bytes that begin a style in a row; each row begins plain. */
enum mark { MARK_PLAIN = 1, MARK_BOLD, MARK_DIM, MARK_GOOD, MARK_WARN, MARK_BAD, MARK_HEAD, MARK_CHOSEN, MARK_END };

struct screen {
    size_t columns, rows;
    bool is_utf8;        /* else every character beyond ASCII is a '?' */
    struct buffer *text; /* of each row */
    size_t row, column;  /* where the next character goes */
};

/* False when out of memory. Sizes beyond the bounds are brought within them. */
bool screen_init(struct screen *screen, size_t columns, size_t rows, bool is_utf8);
void screen_finish(struct screen *screen);

void screen_mark(struct screen *screen, enum mark mark);
/* Text at the end of the row; what does not fit is left out, and the last character says so. */
void screen_put(struct screen *screen, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Text in exactly `width` columns, at their left or right, cut where it is longer. */
void screen_cell(struct screen *screen, const char *text, size_t width, bool is_right);
/* Blanks up to this column. */
void screen_pad(struct screen *screen, size_t column);
/* The next row. What is written behind the last is nowhere. */
void screen_next(struct screen *screen);
/* Text over as many rows as it needs, at most `rows`, broken at blanks; each after the first begins at `indent`. */
void screen_wrap(struct screen *screen, const char *text, size_t indent, size_t rows);
size_t screen_left(const struct screen *screen); /* rows, the one begun among them */

/* Columns of a terminal that a text of UTF-8 takes. */
size_t screen_width(const char *text);
/* A row without its marks and the blanks at its end; the caller frees it. NULL: out of memory. */
char *screen_row(const struct screen *screen, size_t row);

#define AUTO_SCREEN __attribute__((cleanup(screen_finish))) struct screen

#endif
