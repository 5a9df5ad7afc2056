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

bool text_is_one_of(const char *text, const char *words)
{
    for (const char *at = words; at; at = strchr(at, '|')) {
        at += *at == '|';
        if (slice_is(slice_of(at, strcspn(at, "|")), text))
            return true;
    }
    return false;
}
