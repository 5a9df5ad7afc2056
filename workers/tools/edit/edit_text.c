#include "workers/tools/edit/edit_text.h"

#include <stdio.h>

#include "common/base/text.h"

/* ---- lines -------------------------------------------------------------------------- */

static const uint8_t *end_of_line(struct slice text) { return text.len ? memchr(text.data, '\n', text.len) : NULL; }

/* Cuts the first line off, with its newline. */
static struct slice take_line(struct slice *rest)
{
    const uint8_t *end = end_of_line(*rest);
    struct slice line = slice_of(rest->data, end ? (size_t)(end - rest->data) + 1 : rest->len);
    *rest = slice_of(rest->data + line.len, rest->len - line.len);
    return line;
}

size_t edit_count_lines(struct slice text)
{
    size_t count = 0;
    for (; text.len > 0; count++)
        take_line(&text);
    return count;
}

size_t edit_line_start(struct slice text, size_t line)
{
    struct slice rest = text;
    while (--line > 0 && rest.len > 0)
        take_line(&rest);
    return text.len - rest.len;
}

size_t edit_line_at(struct slice text, size_t offset)
{
    size_t line = 1;
    struct slice rest = slice_of(text.data, offset);
    for (const uint8_t *end; (end = end_of_line(rest)); line++)
        rest = slice_of(end + 1, rest.len - (size_t)(end + 1 - rest.data));
    return line;
}

static struct slice without_end(struct slice line)
{
    if (line.len > 0 && line.data[line.len - 1] == '\n')
        line.len--;
    if (line.len > 0 && line.data[line.len - 1] == '\r')
        line.len--;
    return line;
}

struct slice edit_line(struct slice text, size_t line)
{
    size_t start = edit_line_start(text, line);
    struct slice rest = slice_of(text.data + start, text.len - start);
    return without_end(take_line(&rest));
}

/* ---- matches -------------------------------------------------------------------------- */

void edit_find(struct slice text, struct slice part, struct edit_matches *ret)
{
    size_t from = 0, counted = 0, line = 1;
    *ret = (struct edit_matches){0};
    while (ret->count < EDIT_MATCHES_MAX && from < text.len) {
        const uint8_t *hit = memmem(text.data + from, text.len - from, part.data, part.len);
        if (!hit)
            return;
        size_t at = (size_t)(hit - text.data);
        line += edit_line_at(slice_of(text.data + counted, text.len - counted), at - counted) - 1;
        counted = at;
        if (ret->count == 0)
            ret->first = at;
        ret->lines[ret->count++] = line;
        from = at + 1;
    }
}

/* Pairs of neighbouring bytes: how alike two lines are is how many of them they share. */
struct pairs {
    uint8_t seen[65536 / 8];
};

static unsigned pair_at(struct slice line, size_t i) { return (unsigned)line.data[i] << 8 | line.data[i + 1]; }

static double likeness(const struct pairs *wanted, size_t wanted_len, struct slice line)
{
    size_t shared = 0, longer = line.len > wanted_len ? line.len : wanted_len;
    for (size_t i = 0; i + 1 < line.len; i++) {
        const unsigned pair = pair_at(line, i);
        shared += wanted->seen[pair / 8] >> (pair % 8) & 1;
    }
    return longer < 2 ? 0 : (double)shared / (double)(longer - 1);
}

bool edit_find_nearest(struct slice text, struct slice part, size_t *ret_line)
{
    struct pairs pairs = {0};
    struct slice wanted = {0};
    while (part.len > 0 && wanted.len == 0)
        wanted = text_trim(take_line(&part));
    for (size_t i = 0; i + 1 < wanted.len; i++)
        pairs.seen[pair_at(wanted, i) / 8] |= (uint8_t)(1 << pair_at(wanted, i) % 8);
    double best = 0.5; /* less is no likeness */
    bool found = false;
    for (size_t line = 1; text.len > 0; line++) {
        struct slice it = text_trim(take_line(&text));
        double like = slice_equal(it, wanted) && wanted.len > 0 ? 2 : likeness(&pairs, wanted.len, it);
        if (like > best) {
            best = like;
            *ret_line = line;
            found = true;
        }
    }
    return found;
}

/* ---- showing -------------------------------------------------------------------------- */

void edit_show(struct output *out, struct slice text, size_t from, size_t to)
{
    size_t start = edit_line_start(text, from);
    struct slice rest = slice_of(text.data + start, text.len - start);
    for (size_t line = from; line <= to && rest.len > 0; line++) {
        char number[32];
        struct slice it = take_line(&rest);
        int len = snprintf(number, sizeof(number), "%6zu\t", line);
        output_append(out, number, (size_t)len);
        output_append(out, it.data, it.len);
        if (it.data[it.len - 1] != '\n')
            output_append(out, "\n", 1);
    }
}

/* ---- line ends ------------------------------------------------------------------------- */

bool edit_is_crlf(struct slice text)
{
    size_t ends = 0;
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] == '\n') {
            if (i == 0 || text.data[i - 1] != '\r')
                return false;
            ends++;
        }
    return ends > 0;
}

bool edit_drop_cr(struct slice text, struct buffer *out)
{
    while (text.len > 0) {
        struct slice line = take_line(&text);
        const bool has_cr = line.len >= 2 && memcmp(line.data + line.len - 2, "\r\n", 2) == 0;
        buffer_append(out, line.data, line.len - (has_cr ? 2 : 0));
        buffer_append(out, "\n", has_cr);
    }
    return !out->failed;
}

bool edit_add_cr(struct slice text, struct buffer *out)
{
    while (text.len > 0) {
        struct slice line = take_line(&text);
        const bool has_end = line.data[line.len - 1] == '\n';
        buffer_append(out, line.data, line.len - has_end);
        buffer_append(out, "\r\n", has_end ? 2 : 0);
    }
    return !out->failed;
}
