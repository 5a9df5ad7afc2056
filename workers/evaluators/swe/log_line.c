#include "workers/evaluators/swe/log_line.h"

/* ---- white space ----------------------------------------------------------------------------- */

/* Bytes of the white space that `s` begins with; 0: it begins with another character. */
static size_t space_at(struct slice s)
{
    const uint8_t *at = s.data;
    if (s.len == 0)
        return 0;
    if (at[0] < 0x80)
        return (at[0] >= '\t' && at[0] <= '\r') || (at[0] >= 0x1c && at[0] <= ' ');
    if (s.len >= 2 && at[0] == 0xc2)
        return at[1] == 0x85 || at[1] == 0xa0 ? 2 : 0;
    if (s.len < 3)
        return 0;
    const unsigned code = (unsigned)at[0] << 16 | (unsigned)at[1] << 8 | at[2];
    const bool is_space = code == 0xe19a80 || (code >= 0xe28080 && code <= 0xe2808a) || code == 0xe280a8 ||
                          code == 0xe280a9 || code == 0xe280af || code == 0xe2819f || code == 0xe38080;
    return is_space ? 3 : 0;
}

/* Bytes of the white space that `s` ends with. */
static size_t space_before(struct slice s)
{
    for (size_t len = 1; len <= 3 && len <= s.len; len++)
        if (space_at(slice_of(s.data + s.len - len, len)) == len)
            return len;
    return 0;
}

static struct slice strip_left(struct slice s)
{
    for (size_t len; (len = space_at(s)) > 0;)
        s = slice_from(s, len);
    return s;
}

static struct slice strip_right(struct slice s)
{
    for (size_t len; (len = space_before(s)) > 0;)
        s.len -= len;
    return s;
}

struct slice log_line_strip(struct slice line) { return strip_right(strip_left(line)); }

/* ---- lines and words --------------------------------------------------------------------------- */

bool log_line_next(struct slice *rest, struct slice *ret)
{
    size_t len = 0;
    if (!rest->data)
        return false;
    while (len < rest->len && rest->data[len] != '\n' && rest->data[len] != '\r')
        len++;
    *ret = slice_of(rest->data, len < LOG_LINE_MAX ? len : LOG_LINE_MAX);
    const size_t end = len + 1 < rest->len && rest->data[len] == '\r' && rest->data[len + 1] == '\n' ? 2 : 1;
    *rest = len < rest->len ? slice_from(*rest, len + end) : slice_of(NULL, 0);
    return true;
}

struct slice log_line_word(struct slice *rest)
{
    struct slice word = strip_left(*rest);
    size_t len = 0;
    while (len < word.len && space_at(slice_from(word, len)) == 0)
        len++;
    *rest = slice_from(word, len);
    return slice_of(word.data, len);
}

struct slice log_line_last_word(struct slice line, struct slice *ret_before)
{
    const struct slice stripped = strip_right(line);
    struct slice before = stripped;
    while (before.len > 0 && space_before(before) == 0)
        before.len--;
    *ret_before = log_line_strip(before);
    return slice_from(stripped, before.len);
}

bool log_line_starts(struct slice line, const char *with)
{
    const size_t len = strlen(with);
    return line.len >= len && memcmp(line.data, with, len) == 0;
}

bool log_line_ends(struct slice line, const char *with)
{
    const size_t len = strlen(with);
    return line.len >= len && memcmp(line.data + line.len - len, with, len) == 0;
}

ptrdiff_t log_line_find(struct slice line, const char *what)
{
    const uint8_t *at = line.len ? memmem(line.data, line.len, what, strlen(what)) : NULL;
    return at ? at - line.data : -1;
}

struct slice log_line_replace(struct slice line, const char *what, const char *to, struct log_scratch *scratch)
{
    const size_t what_len = strlen(what), to_len = strlen(to);
    size_t len = 0;
    for (size_t i = 0; i < line.len;)
        if (i + what_len <= line.len && memcmp(line.data + i, what, what_len) == 0) {
            memcpy(scratch->bytes + len, to, to_len);
            len += to_len;
            i += what_len;
        } else
            scratch->bytes[len++] = line.data[i++];
    return slice_of(scratch->bytes, len);
}
