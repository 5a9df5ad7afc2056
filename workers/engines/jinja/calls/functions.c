#include "workers/engines/jinja/calls/functions.h"

#include <time.h>

#include "workers/engines/jinja/values/text.h"

#define FUNCTION(name)                                                                                                 \
    static struct jinja_value name(struct jinja_run *run, const struct jinja_value *of,                                \
                                   const struct jinja_arguments *given)

enum { RANGE_MAX = 1 << 20 };

FUNCTION(raise_exception)
{
    const struct slice *words = jinja_argument_text(run, given, 0, "message");
    (void)of;
    jinja_fail(run, "the chat template refuses: %.*s",
               (int)(words && words->len < 300 ? words->len
                     : words                   ? 300
                                               : 0),
               words ? (const char *)words->data : "");
    return jinja_none();
}

static struct jinja_dict *dict_of_names(struct jinja_run *run, const struct jinja_arguments *given)
{
    struct jinja_dict *dict = jinja_dict_new(run);
    for (size_t i = 0; i < given->named_count; i++)
        jinja_dict_set(run, dict, jinja_string(given->names[i]), given->named[i]);
    return dict;
}

FUNCTION(make_dict) { return (void)of, jinja_dict_value(dict_of_names(run, given)); }

FUNCTION(make_namespace)
{
    (void)of;
    struct jinja_dict *dict = jinja_dict_new(run);
    if (run->code == 0)
        dict->is_namespace = true;
    for (size_t i = 0; i < given->named_count; i++)
        jinja_dict_set(run, dict, jinja_string(given->names[i]), given->named[i]);
    return jinja_dict_value(dict);
}

FUNCTION(range)
{
    const bool has_start = given->count > 1;
    const int64_t start = has_start ? jinja_argument_whole(run, given, 0, "start", 0) : 0;
    const int64_t stop = jinja_argument_whole(run, given, has_start, "stop", 0);
    const int64_t step = jinja_argument_whole(run, given, 2, "step", 1);
    struct jinja_list *list = jinja_list_new(run);
    (void)of;
    if (given->count == 0 || step == 0 || step > RANGE_MAX || step < -RANGE_MAX || start > INT32_MAX ||
        start < INT32_MIN || stop > INT32_MAX || stop < INT32_MIN)
        jinja_fail(run, "range wants a stop, or a start and a stop, and a step, none of them too large");
    for (int64_t i = start; run->code == 0 && (step > 0 ? i < stop : i > stop); i += step) {
        if (list->count == RANGE_MAX)
            jinja_fail(run, "a range of more than %d", RANGE_MAX);
        jinja_list_add(run, list, jinja_integer(i));
    }
    return jinja_view_value(list, JINJA_RANGE);
}

FUNCTION(strftime_now)
{
    const struct slice *format = jinja_argument_text(run, given, 0, "format");
    const time_t now = time(NULL);
    char wanted[128], text[256];
    struct tm when;
    struct buffer out = {0};
    (void)of;
    if (!format || format->len >= sizeof(wanted) || !localtime_r(&now, &when))
        jinja_fail(run, "strftime_now wants a format of less than %zu bytes", sizeof(wanted));
    if (run->code < 0)
        return jinja_none();
    memcpy(wanted, format->data, format->len);
    wanted[format->len] = '\0';
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    jinja_append(run, &out, text, strftime(text, sizeof(text), wanted, &when));
#pragma GCC diagnostic pop
    return jinja_string_of(run, &out);
}

static const struct jinja_callable functions[] = {
    {"dict", make_dict, 0, jinja_any_name},
    {"namespace", make_namespace, 0, jinja_any_name},
    {"raise_exception", raise_exception, 1, "message"},
    {"range", range, 3, NULL},
    {"strftime_now", strftime_now, 1, "format"},
    {0},
};

bool jinja_has_function(struct slice name)
{
    for (const struct jinja_callable *row = functions; row->call; row++)
        if (slice_is(name, row->name))
            return true;
    return false;
}

struct jinja_value jinja_function(struct jinja_run *run, struct slice name, const struct jinja_arguments *given)
{
    const struct jinja_value nothing = jinja_undefined("");
    return jinja_call_named(run, functions, "function", name, &nothing, given);
}
