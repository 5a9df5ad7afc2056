#include "schemas/task/json/task_json.h"

#include <errno.h>

#include "common/base/cleanup.h"
#include "common/json/json_doc.h"
#include "common/json/json_doc_look.h"
#include "common/base/utf8.h"

/* From here on a whole number may have been written that is none of the tree's, but jansson's. */
#define REAL_MAX 1e17

static json_t *make_value(const struct json_doc *tree, const struct json_doc_node *node);

static json_t *make_text(struct slice text)
{
    return utf8_is_valid(text) ? json_stringn_nocheck((const char *)text.data, text.len) : NULL;
}

/* What a \u means by itself is jansson's to say. */
static json_t *make_string(const struct json_doc *tree, const struct json_doc_node *node)
{
    struct slice raw = json_doc_raw(tree, node);
    if (!node->has_escapes)
        return make_text(raw);
    if (memmem(raw.data, raw.len, "\\u", 2))
        return json_loadb((const char *)raw.data - 1, raw.len + 2, JSON_DECODE_ANY, NULL);
    AUTO_BUFFER text = {0};
    return json_doc_string(tree, node, &text) ? make_text(buffer_peek(&text)) : NULL;
}

static json_t *make_real(double real) { return real < REAL_MAX && real > -REAL_MAX ? json_real(real) : NULL; }

static json_t *make_array(const struct json_doc *tree, const struct json_doc_node *node)
{
    json_t *array = json_array();
    const struct json_doc_node *at = node + 1;
    for (uint32_t i = 0; i < node->count; i++, at = json_doc_behind(tree, at))
        if (json_array_append_new(array, make_value(tree, at)) != 0) {
            json_decref(array);
            return NULL;
        }
    return array;
}

/* A name with an escape is not common. */
static bool add_member(const struct json_doc *tree, const struct json_doc_node *name, json_t *object)
{
    struct slice text = json_doc_raw(tree, name);
    return !name->has_escapes && utf8_is_valid(text) &&
           json_object_setn_new_nocheck(object, (const char *)text.data, text.len, make_value(tree, name + 1)) == 0;
}

static json_t *make_object(const struct json_doc *tree, const struct json_doc_node *node)
{
    json_t *object = json_object();
    const struct json_doc_node *name = node + 1;
    for (uint32_t i = 0; i < node->count; i++, name = json_doc_behind(tree, name + 1))
        if (!add_member(tree, name, object)) {
            json_decref(object);
            return NULL;
        }
    return object;
}

static json_t *make_value(const struct json_doc *tree, const struct json_doc_node *node)
{
    switch (node->kind) {
    case JSON_DOC_NULL: return json_null();
    case JSON_DOC_FALSE: return json_false();
    case JSON_DOC_TRUE: return json_true();
    case JSON_DOC_INTEGER: return json_integer(node->integer);
    case JSON_DOC_REAL: return make_real(node->real);
    case JSON_DOC_STRING: return make_string(tree, node);
    case JSON_DOC_ARRAY: return make_array(tree, node);
    case JSON_DOC_OBJECT: return make_object(tree, node);
    }
    return NULL;
}

static json_t *make_root(const struct json_doc *tree)
{
    const struct json_doc_node *root = json_doc_root(tree);
    return root->kind == JSON_DOC_OBJECT || root->kind == JSON_DOC_ARRAY ? make_value(tree, root) : NULL;
}

int task_json_read(struct slice json, size_t values_max, json_t **ret)
{
    struct json_doc tree;
    int error = json_doc_parse_up_to(json, values_max, &tree, NULL);
    *ret = error ? NULL : make_root(&tree);
    json_doc_finish(&tree);
    return *ret ? 0 : error == -E2BIG ? -E2BIG : -EPROTO;
}
