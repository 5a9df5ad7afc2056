#include "workers/engines/jinja/values/value_look.h"

#include <string.h>

/* ---- what they are --------------------------------------------------------------------------- */

bool jinja_is_whole(const struct jinja_value *value)
{
    return value->kind == JINJA_INTEGER || value->kind == JINJA_BOOL;
}

int64_t jinja_whole(const struct jinja_value *value)
{
    return value->kind == JINJA_BOOL ? value->truth : value->integer;
}

bool jinja_is_number(const struct jinja_value *value) { return jinja_is_whole(value) || value->kind == JINJA_REAL; }

double jinja_number(const struct jinja_value *value)
{
    return value->kind == JINJA_REAL ? value->real : (double)jinja_whole(value);
}

bool jinja_is_true(const struct jinja_value *value)
{
    switch (value->kind) {
    case JINJA_UNDEFINED:
    case JINJA_NONE: return false;
    case JINJA_BOOL: return value->truth;
    case JINJA_INTEGER: return value->integer != 0;
    case JINJA_REAL: return value->real < 0 || value->real > 0;
    case JINJA_STRING: return value->text.len > 0;
    case JINJA_LIST: return value->list->count > 0;
    case JINJA_DICT: return value->dict->count > 0 || value->dict->is_namespace;
    case JINJA_CALLABLE: break;
    }
    return true;
}

const char *jinja_kind_word(const struct jinja_value *value)
{
    static const char *const words[] = {
        [JINJA_UNDEFINED] = "undefined", [JINJA_NONE] = "None",  [JINJA_BOOL] = "bool",
        [JINJA_INTEGER] = "int",         [JINJA_REAL] = "float", [JINJA_STRING] = "str",
        [JINJA_LIST] = "list",           [JINJA_DICT] = "dict",  [JINJA_CALLABLE] = "function"};
    return words[value->kind];
}

/* ---- two of them ----------------------------------------------------------------------------- */

static bool lists_equal(const struct jinja_list *a, const struct jinja_list *b)
{
    bool is_same = a->count == b->count && a->is_tuple == b->is_tuple;
    for (size_t i = 0; is_same && i < a->count; i++)
        is_same = jinja_equal(&a->items[i], &b->items[i]);
    return is_same;
}

const struct jinja_value *jinja_dict_find(const struct jinja_dict *dict, const struct jinja_value *key)
{
    for (size_t i = 0; i < dict->count; i++)
        if (jinja_equal(&dict->pairs[i].key, key))
            return &dict->pairs[i].value;
    return NULL;
}

const struct jinja_value *jinja_dict_named(const struct jinja_dict *dict, struct slice name)
{
    for (size_t i = 0; i < dict->count; i++)
        if (dict->pairs[i].key.kind == JINJA_STRING && slice_equal(dict->pairs[i].key.text, name))
            return &dict->pairs[i].value;
    return NULL;
}

static bool dicts_equal(const struct jinja_dict *a, const struct jinja_dict *b)
{
    bool is_same = a->count == b->count;
    for (size_t i = 0; is_same && i < a->count; i++) {
        const struct jinja_value *other = jinja_dict_find(b, &a->pairs[i].key);
        is_same = other && jinja_equal(&a->pairs[i].value, other);
    }
    return is_same;
}

static int order(double a, double b) { return (a > b) - (a < b); }

bool jinja_equal(const struct jinja_value *a, const struct jinja_value *b)
{
    if (jinja_is_number(a) && jinja_is_number(b))
        return jinja_is_whole(a) && jinja_is_whole(b) ? jinja_whole(a) == jinja_whole(b)
                                                      : order(jinja_number(a), jinja_number(b)) == 0;
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case JINJA_STRING: return slice_equal(a->text, b->text);
    case JINJA_LIST: return a->list == b->list || lists_equal(a->list, b->list);
    case JINJA_DICT:
        return a->dict == b->dict ||
               (!a->dict->is_namespace && !b->dict->is_namespace && dicts_equal(a->dict, b->dict));
    case JINJA_CALLABLE: return a->macro == b->macro && slice_equal(a->text, b->text);
    default: return true;
    }
}

/* UTF-8 is ordered as its characters are. */
static int compare_texts(struct slice a, struct slice b)
{
    const size_t len = a.len < b.len ? a.len : b.len;
    const int code = len ? memcmp(a.data, b.data, len) : 0;
    return code ? code : order((double)a.len, (double)b.len);
}

int jinja_compare(struct jinja_run *run, const struct jinja_value *a, const struct jinja_value *b)
{
    if (jinja_is_number(a) && jinja_is_number(b))
        return jinja_equal(a, b) ? 0 : order(jinja_number(a), jinja_number(b));
    if (a->kind == JINJA_STRING && b->kind == JINJA_STRING)
        return compare_texts(a->text, b->text);
    jinja_fail(run, "%s and %s are not compared", jinja_kind_word(a), jinja_kind_word(b));
    return 0;
}
