#include "workers/engines/jinja/values/value.h"

#include <string.h>

#include "workers/engines/jinja/values/value_look.h"

/* ---- lists and dicts ----------------------------------------------------------------------- */

/* What could not be had: written to, and read by nobody. */
static struct jinja_list no_list;
static struct jinja_dict no_dict;

enum { LEVELS_MAX = 64 }; /* of lists in lists: who walks them recurses */

static unsigned levels_of(const struct jinja_value *value)
{
    switch (value->kind) {
    case JINJA_LIST: return value->list->levels;
    case JINJA_DICT: return value->dict->levels;
    default: return 0;
    }
}

static void raise_levels(struct jinja_run *run, unsigned *levels, const struct jinja_value *inside)
{
    if (levels_of(inside) >= *levels)
        *levels = levels_of(inside) + 1;
    if (*levels > LEVELS_MAX)
        jinja_fail(run, "a list of more than %d levels", LEVELS_MAX);
}

/* Such a value is no key: Python calls it unhashable. */
static bool is_mutable(const struct jinja_value *value)
{
    return value->kind == JINJA_DICT ||
           (value->kind == JINJA_LIST && (!value->list->is_tuple || value->list->is_mutable));
}

/* Room for one more of `size` bytes; NULL: none. */
static void *grow(struct jinja_run *run, void *items, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return items;
    const size_t wanted = *capacity ? *capacity * 2 : 4;
    void *larger = jinja_alloc(run, wanted * size);
    if (!larger)
        return NULL;
    if (count)
        memcpy(larger, items, count * size);
    *capacity = wanted;
    return larger;
}

struct jinja_list *jinja_list_new(struct jinja_run *run)
{
    struct jinja_list *list = jinja_alloc(run, sizeof(*list));
    return list ? list : &no_list;
}

void jinja_list_add(struct jinja_run *run, struct jinja_list *list, struct jinja_value value)
{
    if (list == &no_list)
        return;
    struct jinja_value *items = grow(run, list->items, list->count, &list->capacity, sizeof(*items));
    if (!items)
        return;
    list->items = items;
    list->items[list->count++] = value;
    list->is_mutable |= is_mutable(&value);
    raise_levels(run, &list->levels, &value);
}

struct jinja_value jinja_list_value(struct jinja_list *list)
{
    return (struct jinja_value){.kind = JINJA_LIST, .list = list};
}

struct jinja_value jinja_view_value(struct jinja_list *list, enum jinja_view view)
{
    if (list != &no_list)
        list->view = view;
    return jinja_list_value(list);
}

struct jinja_value jinja_tuple_of(struct jinja_run *run, struct jinja_value first, struct jinja_value second)
{
    struct jinja_list *list = jinja_list_new(run);
    jinja_list_add(run, list, first);
    jinja_list_add(run, list, second);
    if (list != &no_list)
        list->is_tuple = true;
    return jinja_list_value(list);
}

struct jinja_dict *jinja_dict_new(struct jinja_run *run)
{
    struct jinja_dict *dict = jinja_alloc(run, sizeof(*dict));
    return dict ? dict : &no_dict;
}

void jinja_dict_set(struct jinja_run *run, struct jinja_dict *dict, struct jinja_value key, struct jinja_value value)
{
    struct jinja_value *there = (struct jinja_value *)(uintptr_t)jinja_dict_find(run, dict, &key);
    if (is_mutable(&key))
        jinja_fail(run, "a %s is no key: it is unhashable", jinja_kind_word(&key));
    if (dict != &no_dict && !dict->is_namespace) {
        raise_levels(run, &dict->levels, &key);
        raise_levels(run, &dict->levels, &value);
    }
    if (there)
        *there = value;
    if (there || dict == &no_dict)
        return;
    struct jinja_pair *pairs = grow(run, dict->pairs, dict->count, &dict->capacity, sizeof(*pairs));
    if (!pairs)
        return;
    dict->pairs = pairs;
    dict->pairs[dict->count++] = (struct jinja_pair){key, value};
}

void jinja_dict_put(struct jinja_run *run, struct jinja_dict *dict, const char *name, struct jinja_value value)
{
    jinja_dict_set(run, dict, jinja_string(slice_from_str(name)), value);
}

struct jinja_value jinja_dict_value(struct jinja_dict *dict)
{
    return (struct jinja_value){.kind = JINJA_DICT, .dict = dict};
}

/* ---- made of others ------------------------------------------------------------------------ */

struct jinja_value jinja_string_of(struct jinja_run *run, struct buffer *text)
{
    run->bytes -= text->len < run->bytes ? text->len : run->bytes;
    char *copy = text->failed ? NULL : jinja_alloc(run, text->len + 1);
    if (text->failed)
        jinja_fail(run, "out of memory");
    if (copy && text->len)
        memcpy(copy, text->data, text->len);
    const size_t len = copy ? text->len : 0;
    buffer_finish(text);
    return jinja_string(slice_of(copy ? copy : "", len));
}

static struct jinja_value of_array(struct jinja_run *run, const json_t *json)
{
    struct jinja_list *list = jinja_list_new(run);
    size_t i;
    const json_t *item;
    json_array_foreach(json, i, item) jinja_list_add(run, list, jinja_of_json(run, item));
    return jinja_list_value(list);
}

static struct jinja_value of_object(struct jinja_run *run, const json_t *json)
{
    struct jinja_dict *dict = jinja_dict_new(run);
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)json, name, value)
        jinja_dict_put(run, dict, name, jinja_of_json(run, value));
    return jinja_dict_value(dict);
}

struct jinja_value jinja_of_json(struct jinja_run *run, const json_t *json)
{
    switch (json_typeof(json)) {
    case JSON_STRING: return jinja_string(slice_of(json_string_value(json), json_string_length(json)));
    case JSON_INTEGER: return jinja_integer(json_integer_value(json));
    case JSON_REAL: return jinja_real(json_real_value(json));
    case JSON_TRUE: return jinja_bool(true);
    case JSON_FALSE: return jinja_bool(false);
    case JSON_ARRAY: return of_array(run, json);
    case JSON_OBJECT: return of_object(run, json);
    case JSON_NULL: break;
    }
    return jinja_none();
}
