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

struct jinja_value jinja_attribute(const struct jinja_value *of, struct slice name)
{
    const struct jinja_value *found = of->kind == JINJA_DICT ? jinja_dict_named(of->dict, name) : NULL;
    return found ? *found : (struct jinja_value){.kind = JINJA_UNDEFINED, .text = name};
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
        const struct jinja_value *found = jinja_dict_find(of->dict, key);
        return found ? *found : (struct jinja_value){.kind = JINJA_UNDEFINED, .text = slice_from_str("a member")};
    }
    if (!jinja_is_whole(key))
        return jinja_undefined("a member");
    if (of->kind == JINJA_STRING)
        return character_at(of->text, jinja_whole(key));
    const int64_t place = of->kind == JINJA_LIST ? place_of(jinja_whole(key), of->list->count) : -1;
    return place >= 0 ? of->list->items[place] : jinja_undefined("an item");
}

bool jinja_contains(struct jinja_run *run, const struct jinja_value *in, const struct jinja_value *what)
{
    if (in->kind == JINJA_STRING && what->kind == JINJA_STRING)
        return jinja_find(in->text, what->text) != NULL;
    if (in->kind == JINJA_DICT)
        return jinja_dict_find(in->dict, what) != NULL;
    if (in->kind == JINJA_STRING || (in->kind != JINJA_LIST && in->kind != JINJA_UNDEFINED))
        jinja_fail(run, "%s is not looked for in %s", jinja_kind_word(what), jinja_kind_word(in));
    for (size_t i = 0; in->kind == JINJA_LIST && i < in->list->count; i++)
        if (jinja_equal(&in->list->items[i], what))
            return true;
    return false;
}

struct jinja_list *jinja_items(struct jinja_run *run, const struct jinja_value *of)
{
    if (of->kind == JINJA_LIST)
        return of->list;
    struct jinja_list *list = jinja_list_new(run);
    if (of->kind == JINJA_DICT)
        for (size_t i = 0; i < of->dict->count; i++)
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
