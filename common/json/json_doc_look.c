/* json_doc_look.c - what a document says, member by member. */
#include "common/json/json_doc_look.h"

#include "common/json/json_doc.h"

/* ---- looking up -------------------------------------------------------------------------- */

const struct json_doc_node *json_doc_root(const struct json_doc *doc) { return doc->count ? doc->nodes : NULL; }

struct slice json_doc_raw(const struct json_doc *doc, const struct json_doc_node *node)
{
    return slice_of(doc->text.data + node->from, node->len);
}

const struct json_doc_node *json_doc_get(const struct json_doc *doc, const struct json_doc_node *object,
                                         const char *name)
{
    if (!object || object->kind != JSON_DOC_OBJECT)
        return NULL;
    const struct json_doc_node *at = object + 1;
    for (uint32_t i = 0; i < object->count; i++) {
        const struct json_doc_node *value = at + 1;
        if (slice_is(json_doc_raw(doc, at), name))
            return value;
        at = doc->nodes + value->next;
    }
    return NULL;
}

uint32_t json_doc_count(const struct json_doc_node *array)
{
    return array && array->kind == JSON_DOC_ARRAY ? array->count : 0;
}

const struct json_doc_node *json_doc_first(const struct json_doc_node *array)
{
    return json_doc_count(array) ? array + 1 : NULL;
}

const struct json_doc_node *json_doc_behind(const struct json_doc *doc, const struct json_doc_node *node)
{
    return doc->nodes + node->next;
}

const struct json_doc_node *json_doc_at(const struct json_doc *doc, const struct json_doc_node *array, uint32_t at)
{
    if (at >= json_doc_count(array))
        return NULL;
    const struct json_doc_node *node = array + 1;
    while (at-- > 0)
        node = json_doc_behind(doc, node);
    return node;
}

bool json_doc_id(const struct json_doc_node *node, uint32_t *ret)
{
    if (!node || node->kind != JSON_DOC_INTEGER || node->integer < 0 || node->integer > INT32_MAX)
        return false;
    *ret = (uint32_t)node->integer;
    return true;
}

bool json_doc_number(const struct json_doc_node *node, double *ret)
{
    if (!node || (node->kind != JSON_DOC_INTEGER && node->kind != JSON_DOC_REAL))
        return false;
    *ret = node->kind == JSON_DOC_REAL ? node->real : (double)node->integer;
    return true;
}

bool json_doc_is(const struct json_doc *doc, const struct json_doc_node *node, const char *string)
{
    return node && node->kind == JSON_DOC_STRING && slice_is(json_doc_raw(doc, node), string);
}

/* ---- strings ----------------------------------------------------------------------------- */

static unsigned hex4(const uint8_t *at)
{
    unsigned value = 0;
    for (int i = 0; i < 4; i++)
        value = value * 16 + (unsigned)(at[i] <= '9' ? at[i] - '0' : (at[i] | 0x20) - 'a' + 10);
    return value;
}

static void append_character(struct buffer *ret, unsigned c)
{
    uint8_t bytes[4];
    size_t len = 0;
    if (c < 0x80) {
        bytes[len++] = (uint8_t)c;
    } else if (c < 0x800) {
        bytes[len++] = (uint8_t)(0xc0 | c >> 6);
    } else if (c < 0x10000) {
        bytes[len++] = (uint8_t)(0xe0 | c >> 12);
        bytes[len++] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
    } else {
        bytes[len++] = (uint8_t)(0xf0 | c >> 18);
        bytes[len++] = (uint8_t)(0x80 | (c >> 12 & 0x3f));
        bytes[len++] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
    }
    if (c >= 0x80)
        bytes[len++] = (uint8_t)(0x80 | (c & 0x3f));
    buffer_append(ret, bytes, len);
}

size_t json_doc_unicode(struct slice rest, uint32_t *ret)
{
    *ret = hex4(rest.data + 2);
    if (*ret >= 0xd800 && *ret < 0xdc00 && rest.len >= 12 && rest.data[6] == '\\' && rest.data[7] == 'u') {
        const unsigned second = hex4(rest.data + 8);
        if (second >= 0xdc00 && second < 0xe000) {
            *ret = 0x10000 + ((*ret - 0xd800) << 10) + (second - 0xdc00);
            return 12;
        }
    }
    return 6;
}

/* What stands at a backslash; how many bytes it took. */
static size_t append_escape(struct slice rest, struct buffer *ret)
{
    static const char names[] = "bfnrt", values[] = "\b\f\n\r\t";
    const char *name = strchr(names, rest.data[1]);
    if (rest.data[1] != 'u') {
        buffer_append(ret, name ? (const void *)&values[name - names] : &rest.data[1], 1);
        return 2;
    }
    uint32_t character;
    const size_t len = json_doc_unicode(rest, &character);
    append_character(ret, character >= 0xd800 && character < 0xe000 ? 0xfffd : character);
    return len;
}

bool json_doc_string(const struct json_doc *doc, const struct json_doc_node *node, struct buffer *ret)
{
    if (!node || node->kind != JSON_DOC_STRING)
        return false;
    struct slice rest = json_doc_raw(doc, node);
    if (!node->has_escapes)
        return buffer_append(ret, rest.data, rest.len);
    while (rest.len > 0) {
        const uint8_t *escape = memchr(rest.data, '\\', rest.len);
        size_t plain = escape ? (size_t)(escape - rest.data) : rest.len;
        buffer_append(ret, rest.data, plain);
        rest = slice_of(rest.data + plain, rest.len - plain);
        if (rest.len > 0) {
            size_t taken = append_escape(rest, ret);
            rest = slice_of(rest.data + taken, rest.len - taken);
        }
    }
    return !ret->failed;
}
