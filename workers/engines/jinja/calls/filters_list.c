#include "workers/engines/jinja/calls/filters.h"

#include <string.h>

#include "workers/engines/jinja/values/strings.h"
#include "workers/engines/jinja/values/text.h"
#include "workers/engines/jinja/values/value_look.h"

/* ---- whatever --------------------------------------------------------------------------------------- */

JINJA_FILTER(length)
{
    if (of->kind == JINJA_STRING)
        return jinja_integer(jinja_spend(run, of->text.len * 2) ? (int64_t)jinja_length(of->text) : 0);
    if (of->kind == JINJA_NONE || jinja_is_number(of))
        jinja_fail(run, "%s has no length", jinja_kind_word(of));
    return (void)given, jinja_integer((int64_t)jinja_items(run, of)->count);
}

JINJA_FILTER(standard)
{
    const struct jinja_value *value = jinja_argument(given, 0, "default_value");
    const bool is_for_false = jinja_argument_true(given, 1, "boolean");
    (void)run;
    if (of->kind != JINJA_UNDEFINED && !(is_for_false && !jinja_is_true(of)))
        return *of;
    return value ? *value : jinja_string(slice_of("", 0));
}

JINJA_FILTER(items_of)
{
    struct jinja_list *list = jinja_list_new(run);
    if (of->kind != JINJA_DICT && of->kind != JINJA_UNDEFINED)
        jinja_fail(run, "items wants a mapping, not %s", jinja_kind_word(of));
    for (size_t i = 0; of->kind == JINJA_DICT && i < of->dict->count && run->code == 0; i++)
        jinja_list_add(run, list, jinja_tuple_of(run, of->dict->pairs[i].key, of->dict->pairs[i].value));
    return (void)given, jinja_view_value(list, JINJA_DICT_VIEW);
}

JINJA_FILTER(first)
{
    const struct jinja_list *items = jinja_items(run, of);
    return (void)given, items->count ? items->items[0] : jinja_undefined("the first of nothing");
}

JINJA_FILTER(last)
{
    const struct jinja_list *items = jinja_items(run, of);
    return (void)given, items->count ? items->items[items->count - 1] : jinja_undefined("the last of nothing");
}

JINJA_FILTER(to_list)
{
    const struct jinja_list *items = jinja_items(run, of);
    struct jinja_list *list = jinja_list_new(run);
    for (size_t i = 0; i < items->count && run->code == 0; i++)
        jinja_list_add(run, list, items->items[i]);
    return (void)given, jinja_list_value(list);
}

JINJA_FILTER(reverse)
{
    const struct jinja_list *items = jinja_items(run, of);
    struct jinja_list *list = jinja_list_new(run);
    struct buffer text = {0};
    for (size_t i = items->count; i > 0 && run->code == 0; i--)
        if (of->kind == JINJA_STRING)
            jinja_append(run, &text, items->items[i - 1].text.data, items->items[i - 1].text.len);
        else
            jinja_list_add(run, list, items->items[i - 1]);
    return (void)given,
           of->kind == JINJA_STRING ? jinja_string_of(run, &text) : jinja_view_value(list, JINJA_GENERATOR);
}

/* ---- in order --------------------------------------------------------------------------------------- */

/* What it is sorted by: letters in both cases are the same, unless told otherwise. */
static struct jinja_value sort_key(struct jinja_run *run, const struct jinja_value *item, const struct slice *attribute,
                                   bool has_cases)
{
    const struct jinja_value key = attribute ? jinja_path(run, item, *attribute, NULL) : *item;
    return key.kind == JINJA_STRING && !has_cases ? jinja_recase(run, key.text, JINJA_LOWER) : key;
}

/* By insertion, which keeps what is equal in its order; lists of templates are short. */
static void sort_pairs(struct jinja_run *run, struct jinja_pair *pairs, size_t count, bool is_reverse)
{
    for (size_t i = 1; i < count && run->code == 0; i++) {
        const struct jinja_pair pair = pairs[i];
        size_t at = i;
        for (; at > 0 && run->code == 0; at--, run->steps++) {
            const int order = jinja_compare(run, &pairs[at - 1].key, &pair.key);
            if (is_reverse ? order >= 0 : order <= 0)
                break;
            pairs[at] = pairs[at - 1];
        }
        pairs[at] = pair;
        if (!jinja_enter(run, run->line))
            return;
        jinja_leave(run);
    }
}

JINJA_FILTER(sort)
{
    const bool is_reverse = jinja_argument_true(given, 0, "reverse"),
               has_cases = jinja_argument_true(given, 1, "case_sensitive");
    const struct slice *attribute = jinja_argument_text(run, given, 2, "attribute");
    const struct jinja_list *items = jinja_items(run, of);
    struct jinja_list *list = jinja_list_new(run);
    struct jinja_pair *pairs = jinja_alloc(run, (items->count + 1) * sizeof(*pairs));
    if (attribute && memchr(attribute->data, ',', attribute->len))
        jinja_fail(run, "sort by more than one attribute is not known here");
    for (size_t i = 0; i < items->count && run->code == 0; i++)
        pairs[i] = (struct jinja_pair){sort_key(run, &items->items[i], attribute, has_cases), items->items[i]};
    if (run->code == 0)
        sort_pairs(run, pairs, items->count, is_reverse);
    for (size_t i = 0; i < items->count && run->code == 0; i++)
        jinja_list_add(run, list, pairs[i].value);
    return jinja_list_value(list);
}

JINJA_FILTER(dictsort)
{
    struct jinja_list *list = jinja_list_new(run);
    const size_t count = of->kind == JINJA_DICT ? of->dict->count : 0;
    struct jinja_pair *pairs = jinja_alloc(run, (count + 1) * sizeof(*pairs));
    if (of->kind != JINJA_DICT)
        jinja_fail(run, "dictsort wants a mapping, not %s", jinja_kind_word(of));
    for (size_t i = 0; i < count && run->code == 0; i++) {
        const struct jinja_pair *pair = &of->dict->pairs[i];
        pairs[i] = (struct jinja_pair){sort_key(run, &pair->key, NULL, false),
                                       jinja_tuple_of(run, pair->key, pair->value)};
    }
    if (run->code == 0)
        sort_pairs(run, pairs, count, jinja_argument_true(given, 2, "reverse"));
    for (size_t i = 0; i < count && run->code == 0; i++)
        jinja_list_add(run, list, pairs[i].value);
    return jinja_list_value(list);
}

static struct jinja_value extreme(struct jinja_run *run, const struct jinja_value *of,
                                  const struct jinja_arguments *given, int sign)
{
    const bool has_cases = jinja_argument_true(given, 0, "case_sensitive");
    const struct slice *attribute = jinja_argument_text(run, given, 1, "attribute");
    const struct jinja_list *items = jinja_items(run, of);
    struct jinja_value best = items->count ? items->items[0] : jinja_undefined("the least of nothing");
    struct jinja_value least = items->count ? sort_key(run, &best, attribute, has_cases) : best;
    for (size_t i = 1; i < items->count && run->code == 0; i++) {
        const struct jinja_value key = sort_key(run, &items->items[i], attribute, has_cases);
        if (sign * jinja_compare(run, &key, &least) <= 0)
            continue;
        best = items->items[i];
        least = key;
    }
    return best;
}

JINJA_FILTER(least) { return extreme(run, of, given, -1); }
JINJA_FILTER(most) { return extreme(run, of, given, 1); }

JINJA_FILTER(sum)
{
    const struct slice *attribute = jinja_argument_text(run, given, 0, "attribute");
    const struct jinja_list *items = jinja_items(run, of);
    int64_t total = jinja_argument_whole(run, given, 1, "start", 0);
    for (size_t i = 0; i < items->count && jinja_spend(run, 0); i++) {
        const struct jinja_value item = attribute ? jinja_path(run, &items->items[i], *attribute, NULL)
                                                  : items->items[i];
        if (!jinja_is_whole(&item) || __builtin_add_overflow(total, jinja_whole(&item), &total))
            jinja_fail(run, "sum is of whole numbers here, not of %s", jinja_kind_word(&item));
    }
    return jinja_integer(total);
}
