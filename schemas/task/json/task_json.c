#include "schemas/task/json/task_json.h"

#include <errno.h>

#include "common/base/utf8.h"

/* From here on a whole number may have been written that is none of the document's, but jansson's to refuse. */
#define REAL_MAX 9e18

static unsigned hex_at(const uint8_t *at)
{
    unsigned value = 0;
    for (int i = 0; i < 4; i++)
        value = value * 16 + (unsigned)(at[i] <= '9' ? at[i] - '0' : (at[i] | 0x20) - 'a' + 10);
    return value;
}

/* Bytes of the escape that begins at the backslash; 0: a \u that means nothing by itself, or a NUL. */
static size_t measure_escape(const uint8_t *at, const uint8_t *end)
{
    if (at[1] != 'u')
        return 2;
    const unsigned first = hex_at(at + 2);
    if (first == 0 || (first >= 0xdc00 && first < 0xe000))
        return 0;
    if (first < 0xd800 || first >= 0xdc00)
        return 6;
    const bool has_second = end - at >= 12 && at[6] == '\\' && at[7] == 'u';
    const unsigned second = has_second ? hex_at(at + 8) : 0;
    return second >= 0xdc00 && second < 0xe000 ? 12 : 0;
}

static bool are_escapes_sound(struct slice raw)
{
    const uint8_t *at = raw.data, *end = raw.data + raw.len;
    while ((at = memchr(at, '\\', (size_t)(end - at)))) {
        const size_t len = measure_escape(at, end);
        if (len == 0)
            return false;
        at += len;
    }
    return true;
}

static bool is_sound(const struct json_doc *doc, const struct json_doc_node *node)
{
    if (node->kind == JSON_DOC_REAL)
        return node->real < REAL_MAX && node->real > -REAL_MAX;
    if (node->kind != JSON_DOC_STRING)
        return true;
    const struct slice raw = json_doc_raw(doc, node);
    return (node->is_ascii || utf8_is_valid(raw)) && (!node->has_escapes || are_escapes_sound(raw));
}

int task_json_read(struct slice json, size_t values_max, struct json_doc *ret)
{
    const int error = json_doc_parse_up_to(json, values_max, ret, NULL);
    if (error)
        return error;
    if (ret->nodes[0].kind != JSON_DOC_OBJECT && ret->nodes[0].kind != JSON_DOC_ARRAY)
        return -EPROTO;
    for (size_t i = 0; i < ret->count; i++)
        if (!is_sound(ret, &ret->nodes[i]))
            return -EPROTO;
    return 0;
}
