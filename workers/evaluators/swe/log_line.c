#include "workers/evaluators/swe/log_line.h"

#include "common/base/text.h"

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
    struct slice word = text_strip_left(*rest);
    size_t len = 0;
    while (len < word.len && text_space_at(slice_from(word, len)) == 0)
        len++;
    *rest = slice_from(word, len);
    return slice_of(word.data, len);
}

struct slice log_line_last_word(struct slice line, struct slice *ret_before)
{
    const struct slice stripped = text_strip_right(line);
    struct slice before = stripped;
    while (before.len > 0 && text_strip_right(before).len == before.len)
        before.len--;
    *ret_before = text_strip(before);
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
