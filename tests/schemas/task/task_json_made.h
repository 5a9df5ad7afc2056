/* task_json_made.h - what task_json_read has read, as jansson's values: to be compared with what jansson reads. */
#ifndef SLUICE_TESTS_TASK_JSON_MADE_H
#define SLUICE_TESTS_TASK_JSON_MADE_H

#include "common/base/cleanup.h"
#include "schemas/task/json/task_json.h"

static json_t *made_of(struct task_value value);

static json_t *made_text(struct task_value string)
{
    AUTO_BUFFER text = {0};
    json_doc_string(string.doc, string.at, &text);
    return json_stringn((const char *)text.data, text.len); /* NULL: it is not UTF-8 */
}

static json_t *made_array(struct task_value value)
{
    json_t *array = json_array();
    for (struct task_values each = task_values_of(value); task_values_next(&each);)
        json_array_append_new(array, made_of(each.value));
    return array;
}

static json_t *made_object(struct task_value value)
{
    json_t *object = json_object();
    for (struct task_values each = task_values_of(value); task_values_next(&each);) {
        json_t *name = made_text(each.name);
        json_object_setn_new(object, json_string_value(name), json_string_length(name), made_of(each.value));
        json_decref(name);
    }
    return object;
}

static json_t *made_of(struct task_value value)
{
    switch (value.at->kind) {
    case JSON_DOC_NULL: return json_null();
    case JSON_DOC_FALSE: return json_false();
    case JSON_DOC_TRUE: return json_true();
    case JSON_DOC_INTEGER: return json_integer(value.at->integer);
    case JSON_DOC_REAL: return json_real(value.at->real);
    case JSON_DOC_STRING: return made_text(value);
    case JSON_DOC_ARRAY: return made_array(value);
    case JSON_DOC_OBJECT: return made_object(value);
    }
    return NULL;
}

/* NULL: it was given up. */
static json_t *json_made(struct slice text)
{
    struct json_doc doc;
    json_t *made = task_json_read(text, TASK_VALUES_MAX, &doc) == 0 ? made_of(task_json_root(&doc)) : NULL;
    json_doc_finish(&doc);
    return made;
}

#endif
