#include "workers/engines/jinja/calls/call.h"

#include <string.h>

#include "common/base/text.h"
#include "workers/engines/jinja/values/text.h"
#include "workers/engines/jinja/values/value_look.h"

/* ---- arguments ----------------------------------------------------------------------------------- */

const struct jinja_value *jinja_argument(const struct jinja_arguments *given, size_t place, const char *name)
{
    if (place < given->count)
        return &given->list[place];
    for (size_t i = 0; i < given->named_count; i++)
        if (slice_is(given->names[i], name))
            return &given->named[i];
    return NULL;
}

int64_t jinja_argument_whole(struct jinja_run *run, const struct jinja_arguments *given, size_t place, const char *name,
                             int64_t standard)
{
    const struct jinja_value *value = jinja_argument(given, place, name);
    if (!value || value->kind == JINJA_NONE)
        return standard;
    if (!jinja_is_whole(value))
        jinja_fail(run, "%s wants a whole number, not %s", name, jinja_kind_word(value));
    return run->code == 0 ? jinja_whole(value) : standard;
}

bool jinja_argument_true(const struct jinja_arguments *given, size_t place, const char *name)
{
    const struct jinja_value *value = jinja_argument(given, place, name);
    return value && jinja_is_true(value);
}

const struct slice *jinja_argument_text(struct jinja_run *run, const struct jinja_arguments *given, size_t place,
                                        const char *name)
{
    const struct jinja_value *value = jinja_argument(given, place, name);
    if (!value || value->kind == JINJA_NONE)
        return NULL;
    if (value->kind != JINJA_STRING)
        jinja_fail(run, "a text is wanted, not %s", jinja_kind_word(value));
    return run->code == 0 ? &value->text : NULL;
}

const char jinja_any_name[] = "";

/* ---- tables ---------------------------------------------------------------------------------------- */

static bool takes(const struct jinja_callable *row, struct slice name)
{
    char text[32];
    if (!row->names || name.len >= sizeof(text))
        return false;
    memcpy(text, name.data, name.len);
    text[name.len] = '\0';
    return text_is_one_of(text, row->names);
}

static void check_arguments(struct jinja_run *run, const struct jinja_callable *row, const char *what,
                            const struct jinja_arguments *given)
{
    if (given->count > row->most)
        jinja_fail(run, "the %s %s takes no %zu arguments here", what, row->name, given->count);
    for (size_t i = 0; i < given->named_count && row->names != jinja_any_name; i++)
        if (!takes(row, given->names[i]))
            jinja_fail(run, "the %s %s takes no %.*s here", what, row->name, SLICE_ARG(given->names[i]));
}

struct jinja_value jinja_call_named(struct jinja_run *run, const struct jinja_callable *table, const char *what,
                                    struct slice name, const struct jinja_value *of,
                                    const struct jinja_arguments *given)
{
    for (const struct jinja_callable *row = table; row->call; row++)
        if (slice_is(name, row->name)) {
            check_arguments(run, row, what, given);
            return run->code == 0 ? row->call(run, of, given) : jinja_undefined("");
        }
    jinja_fail(run, "the %s \"%.*s\" is not known here", what, (int)(name.len < 40 ? name.len : 40),
               (const char *)name.data);
    return jinja_undefined("");
}

/* ---- parts ------------------------------------------------------------------------------------------- */

struct jinja_value jinja_attribute(struct jinja_run *run, const struct jinja_value *of, struct slice name)
{
    const struct jinja_value *found = of->kind == JINJA_DICT ? jinja_dict_named(run, of->dict, name) : NULL;
    return found ? *found : (struct jinja_value){.kind = JINJA_UNDEFINED, .text = name};
}

/* One part of a path: a name, or a place. */
static struct jinja_value part_of(struct jinja_run *run, const struct jinja_value *of, struct slice name)
{
    size_t digits = 0;
    struct jinja_value place = jinja_integer(0);
    for (; digits < name.len && digits < 9 && name.data[digits] >= '0' && name.data[digits] <= '9'; digits++)
        place.integer = place.integer * 10 + name.data[digits] - '0';
    if (of->kind == JINJA_UNDEFINED)
        jinja_fail(run, "%.*s is undefined, and so has no %.*s", SLICE_ARG(of->text), SLICE_ARG(name));
    return digits && digits == name.len ? jinja_item(run, of, &place) : jinja_attribute(run, of, name);
}

struct jinja_value jinja_path(struct jinja_run *run, const struct jinja_value *of, struct slice path,
                              const struct jinja_value *otherwise)
{
    struct jinja_value value = *of;
    for (bool is_last = false; !is_last && run->code == 0;) {
        const uint8_t *dot = path.len ? memchr(path.data, '.', path.len) : NULL;
        const size_t len = dot ? (size_t)(dot - path.data) : path.len;
        value = part_of(run, &value, slice_of(path.data, len));
        if (value.kind == JINJA_UNDEFINED && otherwise)
            value = *otherwise;
        path = slice_of(path.data + len + !!dot, path.len - len - !!dot);
        is_last = !dot;
    }
    return value;
}

/* From the end where it is below 0; -1: there is none. */
static int64_t place_of(int64_t at, size_t count)
{
    const int64_t place = at < 0 ? at + (int64_t)count : at;
    return place >= 0 && place < (int64_t)count ? place : -1;
}

static struct jinja_value character_at(struct slice text, int64_t at)
{
    const int64_t place = place_of(at, jinja_length(text));
    for (int64_t i = 0; place >= 0 && text.len; i++) {
        const size_t len = jinja_character(text);
        if (i == place)
            return jinja_string(slice_of(text.data, len));
        text = slice_of(text.data + len, text.len - len);
    }
    return jinja_undefined("a character");
}

struct jinja_value jinja_item(struct jinja_run *run, const struct jinja_value *of, const struct jinja_value *key)
{
    if (of->kind == JINJA_UNDEFINED || of->kind == JINJA_NONE)
        jinja_fail(run, "%.*s is %s and has no members", SLICE_ARG(of->kind ? slice_from_str("it") : of->text),
                   jinja_kind_word(of));
    if (of->kind == JINJA_DICT) {
        const struct jinja_value *found = jinja_dict_find(run, of->dict, key);
        return found ? *found : (struct jinja_value){.kind = JINJA_UNDEFINED, .text = slice_from_str("a member")};
    }
    if (!jinja_is_whole(key))
        return jinja_undefined("a member");
    if (of->kind == JINJA_STRING && jinja_spend(run, of->text.len * 4))
        return character_at(of->text, jinja_whole(key));
    const int64_t place = of->kind == JINJA_LIST ? place_of(jinja_whole(key), of->list->count) : -1;
    return place >= 0 ? of->list->items[place] : jinja_undefined("an item");
}

bool jinja_contains(struct jinja_run *run, const struct jinja_value *in, const struct jinja_value *what)
{
    if (in->kind == JINJA_STRING && what->kind == JINJA_STRING)
        return jinja_spend(run, in->text.len) && jinja_find(in->text, what->text) != NULL;
    if (in->kind == JINJA_DICT)
        return jinja_dict_find(run, in->dict, what) != NULL;
    if (in->kind == JINJA_STRING || (in->kind != JINJA_LIST && in->kind != JINJA_UNDEFINED))
        jinja_fail(run, "%s is not looked for in %s", jinja_kind_word(what), jinja_kind_word(in));
    for (size_t i = 0; in->kind == JINJA_LIST && i < in->list->count && run->code == 0; i++)
        if (jinja_equal(run, &in->list->items[i], what))
            return true;
    return false;
}

struct jinja_list *jinja_items(struct jinja_run *run, const struct jinja_value *of)
{
    if (of->kind == JINJA_LIST)
        return of->list;
    struct jinja_list *list = jinja_list_new(run);
    if (of->kind == JINJA_DICT)
        for (size_t i = 0; i < of->dict->count && run->code == 0; i++)
            jinja_list_add(run, list, of->dict->pairs[i].key);
    else if (of->kind == JINJA_STRING)
        for (size_t at = 0, len; at < of->text.len && run->code == 0; at += len) {
            len = jinja_character(slice_of(of->text.data + at, of->text.len - at));
            jinja_list_add(run, list, jinja_string(slice_of(of->text.data + at, len)));
        }
    else if (of->kind != JINJA_UNDEFINED)
        jinja_fail(run, "there is no loop over %s", jinja_kind_word(of));
    return list;
}
