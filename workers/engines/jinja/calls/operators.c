#include "workers/engines/jinja/calls/operators.h"

#include <string.h>

#include "workers/engines/jinja/values/text.h"
#include "workers/engines/jinja/values/value_look.h"

static struct jinja_value joined(struct jinja_run *run, const struct jinja_value *a, const struct jinja_value *b)
{
    struct buffer text = {0};
    jinja_write(run, a, &text);
    jinja_write(run, b, &text);
    return jinja_string_of(run, &text);
}

static struct jinja_value lists_joined(struct jinja_run *run, const struct jinja_value *a, const struct jinja_value *b)
{
    struct jinja_list *list = jinja_list_new(run);
    for (size_t i = 0; i < a->list->count && run->code == 0; i++)
        jinja_list_add(run, list, a->list->items[i]);
    for (size_t i = 0; i < b->list->count && run->code == 0; i++)
        jinja_list_add(run, list, b->list->items[i]);
    if (run->code == 0)
        list->is_tuple = a->list->is_tuple;
    return jinja_list_value(list);
}

enum { SOME_BYTES = 4096 }; /* are written at once */

static struct jinja_value repeated(struct jinja_run *run, const struct jinja_value *text, int64_t times)
{
    struct buffer out = {0}, some = {0};
    const struct slice one = text->text;
    if (times > 0 && (int64_t)one.len > JINJA_BYTES_MAX / times)
        jinja_fail(run, "a text that is too long");
    const int64_t at_once = one.len && one.len < SOME_BYTES ? (int64_t)(SOME_BYTES / one.len) : 1;
    for (int64_t i = 0; i < at_once && i < times && run->code == 0 && one.len; i++)
        buffer_append(&some, one.data, one.len);
    for (int64_t left = times, count; left > 0 && run->code == 0 && some.len; left -= count) {
        count = left < at_once ? left : at_once;
        jinja_append(run, &out, some.data, (size_t)count * one.len);
    }
    if (some.failed)
        jinja_fail(run, "out of memory");
    buffer_finish(&some);
    return jinja_string_of(run, &out);
}

/* As Python divides: towards minus infinity. */
static int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

static struct jinja_value whole_operation(struct jinja_run *run, int64_t a, char operator, int64_t b)
{
    int64_t result = 0;
    bool is_too_large = false;
    if (operator== '+')
        is_too_large = __builtin_add_overflow(a, b, &result);
    else if (operator== '-')
        is_too_large = __builtin_sub_overflow(a, b, &result);
    else if (operator== '*')
        is_too_large = __builtin_mul_overflow(a, b, &result);
    else if (b == -1)
        is_too_large = operator== '/' && __builtin_sub_overflow(0, a, &result);
    else if (b == 0)
        result = 0;
    else
        result = operator== '/' ? floor_divide(a, b) : a - floor_divide(a, b) * b;
    if (is_too_large || (b == 0 && strchr("/%", operator)))
        jinja_fail(run, "a number that is too large, or divided by 0");
    return jinja_integer(result);
}

static struct jinja_value number_operation(struct jinja_run *run, const struct jinja_value *a, struct slice operator,
                                           const struct jinja_value * b)
{
    const bool is_whole = jinja_is_whole(a) && jinja_is_whole(b), is_floor = slice_is(operator, "//");
    const double x = jinja_number(a), y = jinja_number(b);
    if (is_whole && (operator.len == 1 || is_floor) && !slice_is(operator, "/"))
        return whole_operation(run, jinja_whole(a), (char)operator.data[0], jinja_whole(b));
    if (slice_is(operator, "+"))
        return jinja_real(x + y);
    if (slice_is(operator, "-"))
        return jinja_real(x - y);
    if (slice_is(operator, "*"))
        return jinja_real(x * y);
    if (slice_is(operator, "/") && (y < 0 || y > 0))
        return jinja_real(x / y);
    jinja_fail(run, "%.*s of such numbers is not known here", SLICE_ARG(operator));
    return jinja_none();
}

static struct jinja_value arithmetic(struct jinja_run *run, const struct jinja_value *a, struct slice operator,
                                     const struct jinja_value * b)
{
    const bool is_plus = slice_is(operator, "+");
    if (jinja_is_number(a) && jinja_is_number(b))
        return number_operation(run, a, operator, b);
    if (is_plus && a->kind == b->kind && a->kind == JINJA_STRING)
        return joined(run, a, b);
    if (is_plus && a->kind == b->kind && a->kind == JINJA_LIST && a->list->is_tuple == b->list->is_tuple &&
        !a->list->view && !b->list->view)
        return lists_joined(run, a, b);
    if (slice_is(operator, "*") && a->kind == JINJA_STRING && jinja_is_whole(b))
        return repeated(run, a, jinja_whole(b));
    jinja_fail(run, "%s %.*s %s is not known here", jinja_kind_word(a), SLICE_ARG(operator), jinja_kind_word(b));
    return jinja_none();
}

static struct jinja_value comparison(struct jinja_run *run, const struct jinja_value *a, struct slice operator,
                                     const struct jinja_value * b)
{
    if (slice_is(operator, "=="))
        return jinja_bool(jinja_equal(run, a, b));
    if (slice_is(operator, "!="))
        return jinja_bool(!jinja_equal(run, a, b));
    if (slice_is(operator, "in"))
        return jinja_bool(jinja_contains(run, b, a));
    if (slice_is(operator, "not in"))
        return jinja_bool(!jinja_contains(run, b, a));
    const int order = jinja_compare(run, a, b);
    const bool has_equal = operator.len == 2;
    return jinja_bool(operator.data[0] == '<' ? order < 0 || (has_equal && order == 0)
                                              : order> 0 ||(has_equal &&order == 0));
}

struct jinja_value jinja_operate(struct jinja_run *run, const struct jinja_value *a, struct slice operator,
                                 const struct jinja_value * b)
{
    if (slice_is(operator, "~"))
        return joined(run, a, b);
    const bool is_comparison = strchr("=!<>in", operator.data[0]) != NULL;
    return (is_comparison ? comparison : arithmetic)(run, a, operator, b);
}
