#include "workers/engines/jinja/calls/filters.h"

#include "workers/engines/jinja/calls/tests.h"
#include "workers/engines/jinja/values/value_look.h"

/* ---- some of them ------------------------------------------------------------------------------------- */

/* The arguments from that place on. */
static struct jinja_arguments arguments_from(const struct jinja_arguments *given, size_t from)
{
    struct jinja_arguments rest = {0};
    for (size_t i = from; i < given->count; i++)
        rest.list[rest.count++] = given->list[i];
    return rest;
}

/* Of what is false, None too, there are none: so Jinja has it for these. */
static struct jinja_list *items_or_none(struct jinja_run *run, const struct jinja_value *of)
{
    return jinja_is_true(of) ? jinja_items(run, of) : jinja_list_new(run);
}

static struct jinja_value choose(struct jinja_run *run, const struct jinja_value *of,
                                 const struct jinja_arguments *given, bool is_by_attribute, bool wanted)
{
    const struct slice *attribute = is_by_attribute ? jinja_argument_text(run, given, 0, "") : NULL;
    const struct slice *test = jinja_argument_text(run, given, is_by_attribute, "");
    const struct jinja_arguments rest = arguments_from(given, is_by_attribute + 1u);
    const struct jinja_list *items = items_or_none(run, of);
    struct jinja_list *list = jinja_list_new(run);
    if (is_by_attribute && !attribute)
        jinja_fail(run, "selectattr and rejectattr want an attribute");
    for (size_t i = 0; i < items->count && jinja_spend(run, 0); i++) {
        const struct jinja_value item = attribute ? jinja_path(run, &items->items[i], *attribute, NULL)
                                                  : items->items[i];
        if ((test ? jinja_test(run, *test, &item, &rest) : jinja_is_true(&item)) == wanted)
            jinja_list_add(run, list, items->items[i]);
    }
    return jinja_view_value(list, JINJA_GENERATOR);
}

static JINJA_FILTER(choose_those) { return choose(run, of, given, false, true); }
static JINJA_FILTER(reject) { return choose(run, of, given, false, false); }
static JINJA_FILTER(selectattr) { return choose(run, of, given, true, true); }
static JINJA_FILTER(rejectattr) { return choose(run, of, given, true, false); }

static JINJA_FILTER(map)
{
    const struct jinja_value *attribute = jinja_argument(given, JINJA_ARGUMENTS_MAX, "attribute");
    const struct jinja_value *otherwise = jinja_argument(given, JINJA_ARGUMENTS_MAX, "default");
    const struct slice *filter = jinja_argument_text(run, given, 0, "");
    const struct jinja_arguments rest = arguments_from(given, 1);
    const struct jinja_list *items = items_or_none(run, of);
    struct jinja_list *list = jinja_list_new(run);
    if (!filter == !attribute || (attribute && attribute->kind != JINJA_STRING))
        jinja_fail(run, "map wants a filter, or an attribute");
    for (size_t i = 0; i < items->count && jinja_spend(run, 0); i++) {
        struct jinja_value item = attribute ? jinja_path(run, &items->items[i], attribute->text, otherwise)
                                            : jinja_filter(run, *filter, &items->items[i], &rest);
        jinja_list_add(run, list, item);
    }
    return jinja_view_value(list, JINJA_GENERATOR);
}

static const struct jinja_callable filters[] = {
    {"abs", jinja_filter_absolute, 0, NULL},
    {"capitalize", jinja_filter_capitalize, 0, NULL},
    {"count", jinja_filter_length, 0, NULL},
    {"d", jinja_filter_standard, 2, "default_value|boolean"},
    {"default", jinja_filter_standard, 2, "default_value|boolean"},
    {"dictsort", jinja_filter_dictsort, 0, "reverse"},
    {"first", jinja_filter_first, 0, NULL},
    {"float", jinja_filter_to_float, 0, NULL},
    {"indent", jinja_filter_indent, 3, "width|first|blank"},
    {"int", jinja_filter_to_int, 1, "default"},
    {"items", jinja_filter_items_of, 0, NULL},
    {"join", jinja_filter_join, 2, "d|attribute"},
    {"last", jinja_filter_last, 0, NULL},
    {"length", jinja_filter_length, 0, NULL},
    {"list", jinja_filter_to_list, 0, NULL},
    {"lower", jinja_filter_lower, 0, NULL},
    {"map", jinja_filter_map, JINJA_ARGUMENTS_MAX, "attribute|default"},
    {"max", jinja_filter_most, 2, "case_sensitive|attribute"},
    {"min", jinja_filter_least, 2, "case_sensitive|attribute"},
    {"reject", jinja_filter_reject, JINJA_ARGUMENTS_MAX, NULL},
    {"rejectattr", jinja_filter_rejectattr, JINJA_ARGUMENTS_MAX, NULL},
    {"replace", jinja_filter_replace, 3, "old|new|count"},
    {"reverse", jinja_filter_reverse, 0, NULL},
    {"safe", jinja_filter_safe, 0, NULL},
    {"select", jinja_filter_choose_those, JINJA_ARGUMENTS_MAX, NULL},
    {"selectattr", jinja_filter_selectattr, JINJA_ARGUMENTS_MAX, NULL},
    {"sort", jinja_filter_sort, 3, "reverse|case_sensitive|attribute"},
    {"string", jinja_filter_string, 0, NULL},
    {"sum", jinja_filter_sum, 2, "attribute|start"},
    {"title", jinja_filter_title, 0, NULL},
    {"tojson", jinja_filter_tojson, 0, "indent|ensure_ascii"},
    {"trim", jinja_filter_trim, 1, "chars"},
    {"upper", jinja_filter_upper, 0, NULL},
    {0},
};

struct jinja_value jinja_filter(struct jinja_run *run, struct slice name, const struct jinja_value *of,
                                const struct jinja_arguments *given)
{
    return jinja_call_named(run, filters, "filter", name, of, given);
}
