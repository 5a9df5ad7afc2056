#include "workers/engines/jinja/calls/methods.h"

#include <ctype.h>
#include <string.h>

#include "workers/engines/jinja/calls/filters.h"
#include "workers/engines/jinja/values/strings.h"
#include "workers/engines/jinja/values/text.h"
#include "workers/engines/jinja/values/value_look.h"

#define METHOD(name)                                                                                                   \
    static struct jinja_value name(struct jinja_run *run, const struct jinja_value *of,                                \
                                   const struct jinja_arguments *given)

/* ---- of a text ------------------------------------------------------------------------------------- */

static struct jinja_value strip(struct jinja_run *run, const struct jinja_value *of,
                                const struct jinja_arguments *given, enum jinja_sides sides)
{
    jinja_spend(run, of->text.len);
    return jinja_string(jinja_strip(of->text, jinja_argument_text(run, given, 0, ""), sides));
}

METHOD(strip_both) { return strip(run, of, given, JINJA_BOTH); }
METHOD(strip_left) { return strip(run, of, given, JINJA_LEFT); }
METHOD(strip_right) { return strip(run, of, given, JINJA_RIGHT); }

static struct jinja_value split(struct jinja_run *run, const struct jinja_value *of,
                                const struct jinja_arguments *given, bool is_right)
{
    return jinja_split(run, of->text, jinja_argument_text(run, given, 0, "sep"),
                       jinja_argument_whole(run, given, 1, "maxsplit", -1), is_right);
}

METHOD(split_left) { return split(run, of, given, false); }
METHOD(split_right) { return split(run, of, given, true); }

METHOD(split_lines) { return jinja_split_lines(run, of->text, jinja_argument_true(given, 0, "keepends")); }

static bool begins(struct jinja_run *run, struct slice text, struct slice with, bool is_end)
{
    return text.len >= with.len && jinja_spend(run, with.len) &&
           slice_equal(slice_of(text.data + (is_end ? text.len - with.len : 0), with.len), with);
}

/* With it, or with one of a tuple. */
static struct jinja_value begins_with(struct jinja_run *run, const struct jinja_value *of,
                                      const struct jinja_arguments *given, bool is_end)
{
    const struct jinja_value *with = jinja_argument(given, 0, "");
    if (!with || (with->kind != JINJA_STRING && with->kind != JINJA_LIST))
        jinja_fail(run, "startswith and endswith want a text, or a tuple of them");
    if (run->code < 0 || with->kind == JINJA_STRING)
        return jinja_bool(run->code == 0 && begins(run, of->text, with->text, is_end));
    bool does = false;
    for (size_t i = 0; i < with->list->count && !does && jinja_spend(run, 0); i++)
        does = with->list->items[i].kind == JINJA_STRING && begins(run, of->text, with->list->items[i].text, is_end);
    return jinja_bool(does);
}

METHOD(starts_with) { return begins_with(run, of, given, false); }
METHOD(ends_with) { return begins_with(run, of, given, true); }

METHOD(replace)
{
    const struct slice *from = jinja_argument_text(run, given, 0, "old"),
                       *to = jinja_argument_text(run, given, 1, "new");
    if (!from || !to)
        jinja_fail(run, "replace wants two texts");
    return run->code == 0 ? jinja_replace(run, of->text, *from, *to, jinja_argument_whole(run, given, 2, "count", -1))
                          : *of;
}

METHOD(find)
{
    const struct slice *what = jinja_argument_text(run, given, 0, "");
    const uint8_t *found = what ? jinja_find(of->text, *what) : NULL;
    jinja_spend(run, of->text.len);
    if (!what)
        jinja_fail(run, "find wants a text");
    return jinja_integer(found ? (int64_t)jinja_length(slice_of(of->text.data, (size_t)(found - of->text.data))) : -1);
}

METHOD(count)
{
    const struct slice *what = jinja_argument_text(run, given, 0, "");
    struct slice text = of->text;
    const uint8_t *found;
    int64_t count = 0;
    if (!what || !what->len)
        jinja_fail(run, "count wants a text");
    jinja_spend(run, text.len);
    for (; run->code == 0 && (found = memmem(text.data, text.len, what->data, what->len)); count++)
        text = slice_of(found + what->len, text.len - (size_t)(found - text.data) - what->len);
    return jinja_integer(count);
}

METHOD(join)
{
    struct jinja_arguments separator = {.count = 1, .list = {*of}};
    const struct jinja_value *items = jinja_argument(given, 0, "");
    if (!items)
        jinja_fail(run, "join wants a list");
    return items ? jinja_filter_join(run, items, &separator) : *of;
}

/* "{}" alone, one for each argument. */
METHOD(format)
{
    struct slice text = of->text;
    struct buffer out = {0};
    const uint8_t *found;
    for (size_t i = 0; run->code == 0 && text.len && (found = memchr(text.data, '{', text.len)); i++) {
        const size_t before = (size_t)(found - text.data);
        if (before + 1 == text.len || found[1] != '}' || i >= given->count || memchr(text.data, '}', before))
            jinja_fail(run, "format is known here with {} alone, one for each argument");
        jinja_append(run, &out, text.data, before);
        if (run->code == 0)
            jinja_write(run, &given->list[i], &out);
        text = run->code == 0 ? slice_of(found + 2, text.len - before - 2) : slice_of("", 0);
    }
    if (text.len && memchr(text.data, '}', text.len))
        jinja_fail(run, "format is known here with {} alone, one for each argument");
    jinja_append(run, &out, text.data, text.len);
    return jinja_string_of(run, &out);
}

METHOD(title) { return (void)given, jinja_recase(run, of->text, JINJA_TITLE); }

METHOD(is_digits)
{
    bool is_so = of->text.len > 0;
    if (jinja_spend(run, of->text.len) && !jinja_is_ascii(of->text))
        jinja_fail(run, "isdigit beyond ASCII is not known here");
    for (size_t i = 0; i < of->text.len; i++)
        is_so &= isdigit(of->text.data[i]) != 0;
    return (void)given, jinja_bool(is_so);
}

static struct jinja_value without(struct jinja_run *run, const struct jinja_value *of,
                                  const struct jinja_arguments *given, bool is_end)
{
    const struct slice *what = jinja_argument_text(run, given, 0, "");
    if (!what)
        jinja_fail(run, "removeprefix and removesuffix want a text");
    if (!what || !begins(run, of->text, *what, is_end))
        return *of;
    return jinja_string(slice_of(of->text.data + (is_end ? 0 : what->len), of->text.len - what->len));
}

METHOD(without_prefix) { return without(run, of, given, false); }
METHOD(without_suffix) { return without(run, of, given, true); }

static const struct jinja_callable of_texts[] = {
    {"capitalize", jinja_filter_capitalize, 0, NULL},
    {"count", count, 1, NULL},
    {"endswith", ends_with, 1, NULL},
    {"find", find, 1, NULL},
    {"format", format, JINJA_ARGUMENTS_MAX, NULL},
    {"isdigit", is_digits, 0, NULL},
    {"join", join, 1, NULL},
    {"lower", jinja_filter_lower, 0, NULL},
    {"lstrip", strip_left, 1, NULL},
    {"removeprefix", without_prefix, 1, NULL},
    {"removesuffix", without_suffix, 1, NULL},
    {"replace", replace, 3, NULL},
    {"rsplit", split_right, 2, "sep|maxsplit"},
    {"rstrip", strip_right, 1, NULL},
    {"split", split_left, 2, "sep|maxsplit"},
    {"splitlines", split_lines, 1, "keepends"},
    {"startswith", starts_with, 1, NULL},
    {"strip", strip_both, 1, NULL},
    {"title", title, 0, NULL},
    {"upper", jinja_filter_upper, 0, NULL},
    {0},
};

/* ---- of a dict --------------------------------------------------------------------------------------- */

METHOD(get)
{
    const struct jinja_value *key = jinja_argument(given, 0, ""), *otherwise = jinja_argument(given, 1, "");
    if (!key)
        jinja_fail(run, "get wants a name");
    const struct jinja_value *found = key ? jinja_dict_find(run, of->dict, key) : NULL;
    return found ? *found : otherwise ? *otherwise : jinja_none();
}

METHOD(keys) { return (void)given, jinja_view_value(jinja_items(run, of), JINJA_DICT_VIEW); }

METHOD(values)
{
    struct jinja_list *list = jinja_list_new(run);
    for (size_t i = 0; i < of->dict->count; i++)
        jinja_list_add(run, list, of->dict->pairs[i].value);
    return (void)given, jinja_view_value(list, JINJA_DICT_VIEW);
}

static const struct jinja_callable of_dicts[] = {
    {"get", get, 2, NULL},
    {"items", jinja_filter_items_of, 0, NULL},
    {"keys", keys, 0, NULL},
    {"values", values, 0, NULL},
    {0},
};

/* ---- of a list --------------------------------------------------------------------------------------- */

METHOD(place)
{
    const struct jinja_value *what = jinja_argument(given, 0, "");
    for (size_t i = 0; what && i < of->list->count && run->code == 0; i++)
        if (jinja_equal(run, &of->list->items[i], what))
            return jinja_integer((int64_t)i);
    jinja_fail(run, "it is not in the list");
    return jinja_none();
}

METHOD(count_items)
{
    const struct jinja_value *what = jinja_argument(given, 0, "");
    int64_t count = 0;
    for (size_t i = 0; what && i < of->list->count && run->code == 0; i++)
        count += jinja_equal(run, &of->list->items[i], what);
    return (void)run, jinja_integer(count);
}

static const struct jinja_callable of_lists[] = {{"count", count_items, 1, NULL}, {"index", place, 1, NULL}, {0}};

static const struct jinja_callable *methods_of(const struct jinja_value *of)
{
    static const struct jinja_callable none[] = {{0}};
    return of->kind == JINJA_STRING                            ? of_texts
           : of->kind == JINJA_DICT && !of->dict->is_namespace ? of_dicts
           : of->kind == JINJA_LIST                            ? of_lists
                                                               : none;
}

bool jinja_has_method(const struct jinja_value *of, struct slice name)
{
    for (const struct jinja_callable *row = methods_of(of); row->call; row++)
        if (slice_is(name, row->name))
            return true;
    return false;
}

struct jinja_value jinja_method(struct jinja_run *run, struct slice name, const struct jinja_value *of,
                                const struct jinja_arguments *given)
{
    return jinja_call_named(run, methods_of(of), "method", name, of, given);
}
