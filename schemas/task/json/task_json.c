#include "schemas/task/json/task_json.h"

#include <errno.h>

#include "common/base/utf8.h"

/* From here on a whole number may have been written that is none of the document's, but jansson's to refuse. */
#define REAL_MAX 9e18

/* None is a NUL, or half a character. */
static bool are_escapes_sound(struct slice raw)
{
    const uint8_t *at = raw.data, *end = raw.data + raw.len;
    while ((at = memchr(at, '\\', (size_t)(end - at)))) {
        uint32_t character = at[1];
        at += at[1] == 'u' ? json_doc_unicode(slice_of(at, (size_t)(end - at)), &character) : 2;
        if (character == 0 || (character >= 0xd800 && character < 0xe000))
            return false;
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
