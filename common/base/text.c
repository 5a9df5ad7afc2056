#include "common/base/text.h"

#include "common/base/sanitize.h"
#include "common/base/utf8.h"

void text_repair(char *text)
{
    struct slice rest = slice_from_str(text);
    while (rest.len > 0) {
        size_t len = utf8_sequence(rest);
        if (len == 0)
            text[rest.data - (const uint8_t *)text] = '?';
        len = len ? len : 1;
        rest = slice_of(rest.data + len, rest.len - len);
    }
}

void text_sanitize(char *text) { text[sanitize(text, strlen(text), true)] = '\0'; }

struct slice text_cut_slice(struct slice text, size_t max)
{
    if (text.len <= max)
        return text;
    while (max > 0 && (text.data[max] & 0xc0) == 0x80)
        max--;
    return slice_of(text.data, max);
}

struct slice text_tail_slice(struct slice text, size_t max)
{
    size_t from = text.len > max ? text.len - max : 0;
    while (from > 0 && from < text.len && (text.data[from] & 0xc0) == 0x80)
        from++;
    return slice_of(text.data + from, text.len - from);
}

struct slice text_cut(const char *text, size_t max)
{
    return text_cut_slice(slice_of(text, strnlen(text, max + 1)), max);
}

static bool is_blank(uint8_t byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

struct slice text_trim_right(struct slice text)
{
    while (text.len > 0 && is_blank(text.data[text.len - 1]))
        text.len--;
    return text;
}

struct slice text_trim(struct slice text)
{
    while (text.len > 0 && is_blank(text.data[0]))
        text = slice_of(text.data + 1, text.len - 1);
    return text_trim_right(text);
}

struct slice text_without_mark(struct slice text)
{
    static const char mark[] = {'\xef', '\xbb', '\xbf'};
    const bool has = text.len >= sizeof(mark) && memcmp(text.data, mark, sizeof(mark)) == 0;
    return has ? slice_of(text.data + sizeof(mark), text.len - sizeof(mark)) : text;
}

bool text_is_shallow(struct slice json, int levels)
{
    int depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < json.len; i++) {
        const uint8_t c = json.data[i];
        if (in_string && c == '\\')
            i++;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && (c == '{' || c == '['))
            depth++;
        else if (!in_string && (c == '}' || c == ']'))
            depth--;
        if (depth > levels)
            return false;
    }
    return true;
}

/* ---- white space ----------------------------------------------------------------------------- */

size_t text_space_at(struct slice s)
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
        if (text_space_at(slice_of(s.data + s.len - len, len)) == len)
            return len;
    return 0;
}

struct slice text_strip_left(struct slice s)
{
    for (size_t len; (len = text_space_at(s)) > 0;)
        s = slice_of(s.data + len, s.len - len);
    return s;
}

struct slice text_strip_right(struct slice s)
{
    for (size_t len; (len = space_before(s)) > 0;)
        s.len -= len;
    return s;
}

struct slice text_strip(struct slice text) { return text_strip_right(text_strip_left(text)); }

const uint8_t *text_find_last(struct slice text, const char *what)
{
    const size_t len = strlen(what);
    for (size_t i = text.len; i >= len && i > 0; i--)
        if (memcmp(text.data + i - len, what, len) == 0)
            return text.data + i - len;
    return NULL;
}

struct slice text_behind_last(struct slice text, const char *what)
{
    const uint8_t *found = text_find_last(text, what);
    const size_t used = found ? (size_t)(found - text.data) + strlen(what) : 0;
    return used > 0 ? slice_of(text.data + used, text.len - used) : text;
}

bool text_is_one_of(const char *text, const char *words)
{
    for (const char *at = words; at; at = strchr(at, '|')) {
        at += *at == '|';
        if (slice_is(slice_of(at, strcspn(at, "|")), text))
            return true;
    }
    return false;
}
