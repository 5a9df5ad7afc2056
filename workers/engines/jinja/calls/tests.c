#include "workers/engines/jinja/calls/tests.h"
#include "workers/engines/jinja/values/value_look.h"

#define TEST(name)                                                                                                     \
    static struct jinja_value name(struct jinja_run *run, const struct jinja_value *of,                                \
                                   const struct jinja_arguments *given)
#define IS(name, condition)                                                                                            \
    TEST(name) { return (void)run, (void)given, jinja_bool(condition); }

IS(is_defined, of->kind != JINJA_UNDEFINED)
IS(is_undefined, of->kind == JINJA_UNDEFINED)
IS(is_none, of->kind == JINJA_NONE)
IS(is_boolean, of->kind == JINJA_BOOL)
IS(is_true, of->kind == JINJA_BOOL && of->truth)
IS(is_false, of->kind == JINJA_BOOL && !of->truth)
IS(is_integer, of->kind == JINJA_INTEGER)
IS(is_float, of->kind == JINJA_REAL)
IS(is_number, jinja_is_number(of))
IS(is_string, of->kind == JINJA_STRING)
IS(is_mapping, of->kind == JINJA_DICT)
IS(is_sequence,
   of->kind == JINJA_STRING || of->kind == JINJA_LIST || of->kind == JINJA_DICT || of->kind == JINJA_UNDEFINED)
IS(is_callable, of->kind == JINJA_CALLABLE)

/* The argument, which there must be. */
static struct jinja_value other(struct jinja_run *run, const struct jinja_arguments *given)
{
    if (given->count != 1)
        jinja_fail(run, "the test wants one argument");
    return given->count == 1 ? given->list[0] : jinja_undefined("");
}

TEST(is_equal)
{
    const struct jinja_value to = other(run, given);
    return jinja_bool(jinja_equal(run, of, &to));
}

TEST(is_unequal)
{
    const struct jinja_value to = other(run, given);
    return jinja_bool(!jinja_equal(run, of, &to));
}

TEST(is_in)
{
    const struct jinja_value in = other(run, given);
    return jinja_bool(jinja_contains(run, &in, of));
}

TEST(is_greater)
{
    const struct jinja_value than = other(run, given);
    return jinja_bool(jinja_compare(run, of, &than) > 0);
}

TEST(is_less)
{
    const struct jinja_value than = other(run, given);
    return jinja_bool(jinja_compare(run, of, &than) < 0);
}

TEST(is_greater_or_equal)
{
    const struct jinja_value than = other(run, given);
    return jinja_bool(jinja_compare(run, of, &than) >= 0);
}

TEST(is_less_or_equal)
{
    const struct jinja_value than = other(run, given);
    return jinja_bool(jinja_compare(run, of, &than) <= 0);
}

/* What is left of it, from 0 on. */
static int64_t modulo(struct jinja_run *run, const struct jinja_value *of, int64_t by)
{
    if (!jinja_is_whole(of) || by == 0 || by == -1)
        jinja_fail(run, "a whole number is wanted, and one to divide by");
    return run->code == 0 ? jinja_whole(of) % by : 1;
}

TEST(is_even) { return (void)given, jinja_bool(modulo(run, of, 2) == 0); }
TEST(is_odd) { return (void)given, jinja_bool(modulo(run, of, 2) != 0); }

TEST(is_divisible)
{
    const struct jinja_value by = other(run, given);
    return jinja_bool(modulo(run, of, jinja_is_whole(&by) ? jinja_whole(&by) : 0) == 0);
}

static const struct jinja_callable tests[] = {
    {"boolean", is_boolean, 0, NULL},
    {"callable", is_callable, 0, NULL},
    {"defined", is_defined, 0, NULL},
    {"divisibleby", is_divisible, 1, NULL},
    {"eq", is_equal, 1, NULL},
    {"equalto", is_equal, 1, NULL},
    {"==", is_equal, 1, NULL},
    {"even", is_even, 0, NULL},
    {"false", is_false, 0, NULL},
    {"float", is_float, 0, NULL},
    {"ge", is_greater_or_equal, 1, NULL},
    {"greaterthan", is_greater, 1, NULL},
    {"gt", is_greater, 1, NULL},
    {"in", is_in, 1, NULL},
    {"integer", is_integer, 0, NULL},
    {"iterable", is_sequence, 0, NULL},
    {"le", is_less_or_equal, 1, NULL},
    {"lessthan", is_less, 1, NULL},
    {"lt", is_less, 1, NULL},
    {"mapping", is_mapping, 0, NULL},
    {"ne", is_unequal, 1, NULL},
    {"none", is_none, 0, NULL},
    {"number", is_number, 0, NULL},
    {"odd", is_odd, 0, NULL},
    {"sequence", is_sequence, 0, NULL},
    {"string", is_string, 0, NULL},
    {"true", is_true, 0, NULL},
    {"undefined", is_undefined, 0, NULL},
    {0},
};

bool jinja_test(struct jinja_run *run, struct slice name, const struct jinja_value *of,
                const struct jinja_arguments *given)
{
    const struct jinja_value told = jinja_call_named(run, tests, "test", name, of, given);
    return jinja_is_true(&told);
}
