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
    case JINJA_LIST: return value->list->count > 0 || value->list->view == JINJA_GENERATOR;
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

enum { KEY_BYTES = 4 }; /* a name that is passed by counts as so many */

/* ---- two of them ----------------------------------------------------------------------------- */

static bool lists_equal(struct jinja_run *run, const struct jinja_list *a, const struct jinja_list *b)
{
    bool is_same = a->count == b->count && a->is_tuple == b->is_tuple && a->view == b->view;
    for (size_t i = 0; is_same && i < a->count; i++)
        is_same = jinja_equal(run, &a->items[i], &b->items[i]);
    return is_same;
}

const struct jinja_value *jinja_dict_find(struct jinja_run *run, const struct jinja_dict *dict,
                                          const struct jinja_value *key)
{
    if (key->kind == JINJA_STRING)
        return jinja_dict_named(run, dict, key->text);
    for (size_t i = 0; i < dict->count && run->code == 0; i++)
        if (jinja_equal(run, &dict->pairs[i].key, key))
            return &dict->pairs[i].value;
    return NULL;
}

const struct jinja_value *jinja_dict_named(struct jinja_run *run, const struct jinja_dict *dict, struct slice name)
{
    size_t looked = 0, i = 0;
    for (; i < dict->count; i++) {
        const struct jinja_value *key = &dict->pairs[i].key;
        looked += KEY_BYTES + (key->kind == JINJA_STRING && key->text.len == name.len ? name.len : 0);
        if (key->kind == JINJA_STRING && slice_equal(key->text, name))
            break;
    }
    if (looked / JINJA_BYTES_READ)
        jinja_spend(run, looked);
    return i < dict->count ? &dict->pairs[i].value : NULL;
}

static bool dicts_equal(struct jinja_run *run, const struct jinja_dict *a, const struct jinja_dict *b)
{
    bool is_same = a->count == b->count;
    for (size_t i = 0; is_same && i < a->count; i++) {
        const struct jinja_value *other = jinja_dict_find(run, b, &a->pairs[i].key);
        is_same = other && jinja_equal(run, &a->pairs[i].value, other);
    }
    return is_same;
}

static int order(double a, double b) { return (a > b) - (a < b); }

static bool texts_equal(struct jinja_run *run, struct slice a, struct slice b)
{
    return a.len == b.len && jinja_spend(run, a.len) && slice_equal(a, b);
}

bool jinja_equal(struct jinja_run *run, const struct jinja_value *a, const struct jinja_value *b)
{
    if (!jinja_spend(run, 0))
        return false;
    if (jinja_is_number(a) && jinja_is_number(b))
        return jinja_is_whole(a) && jinja_is_whole(b) ? jinja_whole(a) == jinja_whole(b)
                                                      : order(jinja_number(a), jinja_number(b)) == 0;
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case JINJA_STRING: return texts_equal(run, a->text, b->text);
    case JINJA_LIST: return a->list == b->list || lists_equal(run, a->list, b->list);
    case JINJA_DICT:
        return a->dict == b->dict ||
               (!a->dict->is_namespace && !b->dict->is_namespace && dicts_equal(run, a->dict, b->dict));
    case JINJA_CALLABLE:
        return a->macro == b->macro && (a->macro ? a->frame == b->frame : slice_equal(a->text, b->text));
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
        return jinja_equal(run, a, b) ? 0 : order(jinja_number(a), jinja_number(b));
    if (a->kind == JINJA_STRING && b->kind == JINJA_STRING)
        return jinja_spend(run, a->text.len < b->text.len ? a->text.len : b->text.len) ? compare_texts(a->text, b->text)
                                                                                       : 0;
    jinja_fail(run, "%s and %s are not compared", jinja_kind_word(a), jinja_kind_word(b));
    return 0;
}
