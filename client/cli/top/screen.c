#include "client/cli/top/screen.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/cli/top/glyphs.h"
#include "common/base/cleanup.h"
#include "common/base/sanitize.h"

enum { COLUMNS_LEAST = 1, ROWS_LEAST = 1 };

static size_t within(size_t value, size_t least, size_t most)
{
    return value < least ? least : value > most ? most : value;
}

bool screen_init(struct screen *screen, size_t columns, size_t rows, bool is_utf8)
{
    *screen = (struct screen){.columns = within(columns, COLUMNS_LEAST, SCREEN_COLUMNS_MAX),
                              .rows = within(rows, ROWS_LEAST, SCREEN_ROWS_MAX),
                              .is_utf8 = is_utf8};
    screen->text = calloc(screen->rows, sizeof(*screen->text));
    return screen->text != NULL;
}

void screen_finish(struct screen *screen)
{
    for (size_t i = 0; screen->text && i < screen->rows; i++)
        buffer_finish(&screen->text[i]);
    free(screen->text);
    screen->text = NULL;
}

static struct buffer *row_of(struct screen *screen)
{
    return screen->row < screen->rows ? &screen->text[screen->row] : NULL;
}

void screen_mark(struct screen *screen, enum mark mark)
{
    const char byte = (char)mark;
    if (row_of(screen))
        buffer_append(row_of(screen), &byte, 1);
}

/* ---- text within columns --------------------------------------------------------------------- */

size_t screen_width(const char *text)
{
    struct slice left = slice_from_str(text);
    size_t width = 0;
    while (left.len > 0) {
        size_t len;
        width += glyph_width(glyph_next(left, &len));
        left = slice_of(left.data + len, left.len - len);
    }
    return width;
}

/* Bytes of the start of `text` that fit into `width` columns, which are *ret_used then. */
static size_t fitting(struct slice text, size_t width, size_t *ret_used)
{
    size_t at = 0;
    *ret_used = 0;
    while (at < text.len) {
        size_t len;
        const unsigned next = glyph_width(glyph_next(slice_of(text.data + at, text.len - at), &len));
        if (*ret_used + next > width)
            break;
        *ret_used += next;
        at += len;
    }
    return at;
}

/* As the terminal can show it: one '?' for each column of what is no ASCII where it has no more. */
static void append_shown(const struct screen *screen, struct buffer *row, struct slice text)
{
    for (size_t at = 0, len; at < text.len && !screen->is_utf8; at += len) {
        const uint32_t character = glyph_next(slice_of(text.data + at, text.len - at), &len);
        const unsigned width = glyph_width(character);
        buffer_append(row, character < 0x80 ? (const char *)&text.data[at] : "??", character < 0x80 ? 1 : width);
    }
    if (screen->is_utf8)
        buffer_append(row, text.data, text.len);
}

/* Tame text into at most `width` columns of the row; returns how many it took. */
static size_t put_within(struct screen *screen, struct slice text, size_t width)
{
    struct buffer *row = row_of(screen);
    size_t used, len = fitting(text, width, &used);
    if (!row || !width)
        return 0;
    const bool is_cut = len < text.len;
    if (is_cut)
        len = fitting(text, width - 1, &used);
    append_shown(screen, row, slice_of(text.data, len));
    if (is_cut)
        buffer_append_str(row, screen->is_utf8 ? "\u2026" : "~");
    return used + is_cut;
}

static size_t columns_left(const struct screen *screen)
{
    return screen->column < screen->columns ? screen->columns - screen->column : 0;
}

void screen_put(struct screen *screen, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    AUTO_FREE char *text = NULL;
    const int len = vasprintf(&text, format, args);
    va_end(args);
    if (len < 0) {
        text = NULL;
        return;
    }
    const size_t tame = sanitize(text, (size_t)len, false);
    screen->column += put_within(screen, slice_of(text, tame), columns_left(screen));
}

static void put_blanks(struct screen *screen, size_t count)
{
    if (!row_of(screen))
        return;
    for (; count > 0 && screen->column < screen->columns; count--, screen->column++)
        buffer_append(row_of(screen), " ", 1);
}

void screen_pad(struct screen *screen, size_t column)
{
    if (column > screen->column)
        put_blanks(screen, column - screen->column);
}

void screen_cell(struct screen *screen, const char *text, size_t width, bool is_right)
{
    AUTO_FREE char *tame = strdup(text);
    if (!tame)
        return;
    const size_t len = sanitize(tame, strlen(tame), false), room = columns_left(screen);
    tame[len] = '\0';
    const size_t most = width < room ? width : room, wanted = screen_width(tame), end = screen->column + most;
    if (is_right && wanted < most)
        put_blanks(screen, most - wanted);
    screen->column += put_within(screen, slice_of(tame, len), end - screen->column);
    screen_pad(screen, end);
}

void screen_next(struct screen *screen)
{
    screen->row += screen->row < screen->rows;
    screen->column = 0;
}

size_t screen_left(const struct screen *screen) { return screen->rows - screen->row; }

/* Bytes of the start of `text` that go onto one row of this width: up to a blank, if there is one. */
static size_t row_bytes(struct slice text, size_t width)
{
    size_t used;
    const size_t most = fitting(text, width, &used);
    if (most == text.len)
        return most;
    for (size_t at = most; at > most / 2; at--)
        if (text.data[at] == ' ')
            return at;
    return most ? most : 1;
}

void screen_wrap(struct screen *screen, const char *text, size_t indent, size_t rows)
{
    AUTO_FREE char *tame = strdup(text);
    if (!tame)
        return;
    struct slice left = slice_of(tame, sanitize(tame, strlen(tame), false));
    while (rows-- > 0 && left.len > 0 && screen_left(screen) > 0) {
        screen_pad(screen, indent);
        const size_t len = rows ? row_bytes(left, columns_left(screen)) : left.len;
        screen->column += put_within(screen, slice_of(left.data, len), columns_left(screen));
        left = slice_of(left.data + len, left.len - len);
        while (left.len > 0 && left.data[0] == ' ')
            left = slice_of(left.data + 1, left.len - 1);
        screen_next(screen);
    }
}

char *screen_row(const struct screen *screen, size_t row)
{
    AUTO_BUFFER plain = {0};
    const struct buffer *marked = &screen->text[row];
    for (size_t i = 0; i < marked->len; i++)
        if (marked->data[i] >= MARK_END)
            buffer_append(&plain, &marked->data[i], 1);
    while (plain.len > 0 && plain.data[plain.len - 1] == ' ')
        plain.len--;
    return buffer_take_str(&plain);
}
