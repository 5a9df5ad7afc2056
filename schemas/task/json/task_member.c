#include "schemas/task/json/task_member.h"

#include <string.h>

#include <jansson.h>

/* Where the text of a string that begins at `at` ends: behind its second quote.
 * No byte is looked at more than twice. */
static size_t end_of_string(struct slice json, size_t at)
{
    const uint8_t *end = json.data + json.len, *from = json.data + at + 1, *quote = NULL, *escape;
    for (; from < end; from = escape + 2) {
        if (!quote || quote < from)
            quote = memchr(from, '"', (size_t)(end - from));
        escape = quote ? memchr(from, '\\', (size_t)(quote - from)) : NULL;
        if (!escape)
            return quote ? (size_t)(quote - json.data) + 1 : json.len;
    }
    return json.len;
}

static size_t skip_blanks(struct slice json, size_t at)
{
    while (at < json.len && (json.data[at] == ' ' || (json.data[at] >= '\t' && json.data[at] <= '\r')))
        at++;
    return at;
}

/* Where the value that begins at `at` ends. */
static size_t end_of_value(struct slice json, size_t at)
{
    int depth = 0;
    while (at < json.len) {
        const uint8_t c = json.data[at];
        if (depth == 0 && (c == ',' || c == '}' || c == ']'))
            break;
        depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        at = c == '"' ? end_of_string(json, at) : at + 1;
    }
    return at;
}

/* A name may be written with escapes. */
static bool is_name(struct slice written, const char *name)
{
    const struct slice plain = slice_of(written.data + 1, written.len - 2);
    if (!memchr(written.data, '\\', written.len))
        return slice_is(plain, name);
    json_t *read = json_loadb((const char *)written.data, written.len, JSON_DECODE_ANY, NULL);
    const bool is_it = read && strcmp(json_string_value(read), name) == 0;
    json_decref(read);
    return is_it;
}

static struct slice trimmed(struct slice text)
{
    while (text.len > 0 && skip_blanks(text, text.len - 1) == text.len)
        text.len--;
    return text;
}

struct slice task_member(struct slice json, const char *name)
{
    size_t at = skip_blanks(json, 0);
    while (at < json.len && json.data[at] != '}') {
        const size_t key = skip_blanks(json, at + 1); /* behind '{' or ',' */
        if (key >= json.len || json.data[key] != '"')
            break;
        const size_t key_end = end_of_string(json, key);
        const size_t value = skip_blanks(json, skip_blanks(json, key_end) + 1);
        at = value < json.len ? end_of_value(json, value) : json.len;
        if (key_end - key >= 2 && is_name(slice_of(json.data + key, key_end - key), name) && value < at)
            return trimmed(slice_of(json.data + value, at - value));
    }
    return slice_of(NULL, 0);
}
