/* Chat templates: what comes out is what Jinja makes of them, and what is not known here is refused by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "workers/engines/jinja/jinja.h"
#include "workers/engines/jinja/values/run.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* Lists that hold themselves twice over: little memory, and 2^50 elements. */
#define DOUBLED                                                                                                        \
    "{% set ns = namespace(a=[1], b=[1]) %}"                                                                           \
    "{% for i in range(50) %}{% set ns.a = [ns.a, ns.a] %}"                                                            \
    "{% set ns.b = [ns.b, ns.b] %}{% endfor %}"

static json_t *file;

static int open_cases(void **state)
{
    (void)state;
    char path[512];
    const char *dir = getenv("SLUICE_SOURCE_DIR");
    snprintf(path, sizeof(path), "%s/tests/workers/engines/jinja_cases.json", dir ? dir : ".");
    file = json_load_file(path, 0, NULL);
    return file ? 0 : -1;
}

static int close_cases(void **state)
{
    (void)state;
    json_decref(file);
    return 0;
}

static int render(const char *template, const json_t *globals, struct buffer *ret, struct fail *fail)
{
    struct jinja *jinja = NULL;
    int error = jinja_parse(slice_from_str(template), &jinja, fail);
    if (error == 0)
        error = jinja_render(jinja, globals, ret, fail);
    jinja_destroy(&jinja);
    return error;
}

static void each_case_comes_out_as_jinja_has_it(void **state)
{
    (void)state;
    const json_t *cases = json_object_get(file, "cases"), *one;
    size_t i, wrong = 0;
    assert_true(json_array_size(cases) > 50);
    json_array_foreach(cases, i, one)
    {
        const char *template = json_string_value(json_array_get(one, 1)),
                   *expected = json_string_value(json_array_get(one, 2));
        const json_t *globals = json_object_get(json_object_get(file, "globals"),
                                                json_string_value(json_array_get(one, 0)));
        AUTO_BUFFER out = {0};
        struct fail fail = {0};
        const int error = render(template, globals, &out, &fail);
        if (error == 0 && slice_is(buffer_peek(&out), expected))
            continue;
        print_error("%s\n is %.*s (%s)\n not %s\n", template, SLICE_ARG(buffer_peek(&out)), fail.text, expected);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

static void what_is_not_known_is_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *template, *words;
    } cases[] = {
        {"a\n{{ x | frobnicate }}", "line 2: the filter \"frobnicate\" is not known here"},
        {"{{ 1 is prime }}", "the test \"prime\" is not known here"},
        {"{{ frobnicate(1) }}", "frobnicate is not called: it is undefined"},
        {"{{ 'a'.frobnicate() }}", "str has no method \"frobnicate\" that is known here"},
        {"{{ messages.append(1) }}", "list has no method \"append\""},
        {"{% include 'x' %}", "the tag \"include\" is not known here"},
        {"{% call f() %}{% endcall %}", "the tag \"call\" is not known here"},
        {"{{ [1] | tojson(sort_keys=true) }}", "the filter tojson takes no sort_keys here"},
        {"{{ '\xc3\xa9' | upper }}", "the cases of letters beyond ASCII are not known here"},
        {"{{ 1 < 2 < 3 }}", "comparisons in a row are not known here"},
        {"{{ raise_exception('Roles must alternate') }}", "the chat template refuses: Roles must alternate"},
        {"{{ nothing.at_all }}", "nothing is undefined, and so has no at_all"},
        {"{{ 'a' + 1 }}", "str + int is not known here"},
        {"{{ 1 // 0 }}", "divided by 0"},
        {"{% if x %}", "{% endif %} is wanted"},
        {"{{ x", "a tag without its end"},
        {"{{ 'x }}", "a string without its end"},
        {"{# x", "a comment without its end"},
        {"{{ x y }}", "}} is wanted, not \"y\""},
        {"{{ (1 2) }}", ", is wanted"},
        {"{% for %}{% endfor %}", "a name is wanted"},
        {"{% set messages.x = 1 %}", "messages is no namespace"},
        {"{% for a, b in [1] %}{% endfor %}", "there is no loop over int"},
        {"{% for a, b in [[1]] %}{% endfor %}", "fewer values than names"},
        {"{% break %}", "break or continue outside of a loop"},
        {"{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}", "the macro f takes no such argument"},
        {"{{ {[1]: 1} }}", "a list is no key: it is unhashable"},
        {"{{ {{}: 1} }}", "a dict is no key: it is unhashable"},
        {"{{ {(1, [2]): 1} }}", "no key: it is unhashable"},
        {"\n{{ range(4) }}", "line 2: a range is not written here"},
        {"{{ range(4) | tojson }}", "a range is not written here"},
        {"{{ {'a': 1}.items() }}", "what a dict shows is not written here"},
        {"{{ 'a' ~ {'a': 1}.keys() }}", "what a dict shows is not written here"},
        {"{{ [1] | map('string') }}", "a generator is not written here"},
        {"{{ range(2) + range(2) }}", "list + list is not known here"},
        {"{{ [{}] | map(attribute='f.n') | list }}", "f is undefined, and so has no n"},
        {"{{ [{}] | sort(attribute='a,b') }}", "sort by more than one attribute"},
        {"{{ (-9223372036854775807 - 1) // -1 }}", "a number that is too large"},
        {"{{ (-9223372036854775807 - 1) | abs }}", "a number that is too large"},
        {"{{ 1e300 | int }}", "a whole number that is too large"},
        {"{{ '99999999999999999999' | int }}", "a whole number that is too large"},
        {"{{ '1_000' | int }}", "int is known here of ASCII digits alone"},
        {"{% for i in [1] %}{{ loop.changed(i) }}{% endfor %}", "no method \"changed\""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_BUFFER out = {0};
        struct fail fail = {0};
        const int error = render(cases[i].template, json_object_get(json_object_get(file, "globals"), "messages"), &out,
                                 &fail);
        if (error != -EINVAL || !strstr(fail.text, cases[i].words))
            fail_msg("%s: %d, '%s' does not say '%s'", cases[i].template, error, fail.text, cases[i].words);
        assert_int_equal(out.len, 0);
    }
}

static void a_rendering_is_bounded(void **state)
{
    (void)state;
    static const struct {
        const char *template, *words;
    } cases[] = {
        {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "levels"},
        {"{% for i in range(100000) %}{% for k in range(100000) %}{% endfor %}{% endfor %}", "more than"},
        {"{% set ns = namespace(x='aaaaaaaaaaaaaaaa') %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor "
         "%}",
         "more than"},
        {"{% set ns = namespace(x=[]) %}{% for i in range(900) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
         "a list of more than"},
        {"{{ 'aaaaaaaa' * 999999999 }}", "too long"},
        {"{{ range(99999999) }}", "a range of more than"},
        {"{% set ns = namespace(d=1) %}{% for i in range(2000) %}{% set ns.d = {ns.d: 1} %}{% endfor %}{{ ns.d }}",
         "unhashable"},
        {"{% set ns = namespace(d=1) %}{% for i in range(2000) %}{% set ns.d = {(ns.d,): 1} %}{% endfor %}{{ ns.d }}",
         "unhashable"},
        {"{% set ns = namespace(d=1) %}{% for i in range(2000) %}{% set ns.d = (ns.d,) %}{% endfor %}{{ {ns.d: 1} }}",
         "a list of more than"},
        {DOUBLED "{{ ns.a == ns.b }}", "more than"},
        {DOUBLED "{{ ns.a in [ns.b] }}", "more than"},
        {DOUBLED "{{ ns.a | tojson }}", "more than"},
        {DOUBLED "{{ ns.a | string }}", "more than"},
        {DOUBLED "{{ 'x' ~ ns.a }}", "more than"},
        {DOUBLED "{{ '{}'.format(ns.a) }}", "more than"},
        {"{% set x = 'x' * 1000000 %}{{ range(3000) | join(x) }}", "more than"},
        {"{% set x = 'x' * 1000000 %}{{ x | replace('x', x) }}", "more than"},
        {"{% set x = '\\n' * 1000000 %}{{ x | indent(1000, blank=true) }}", "more than"},
        {"{% set x = 'x' * 9000000 %}{% for i in range(1000) %}{% if 'xy' in x %}{% endif %}{% endfor %}", "steps"},
        {"{% set x = 'x' * 9000000 %}{% for i in range(1000) %}{{ x.find('xy') }}{% endfor %}", "steps"},
        {"{% set x = 'x' * 9000000 %}{% for i in range(1000) %}{{ x.count('xy') }}{% endfor %}", "steps"},
        {"{% set x = 'x' * 9000000 %}{% for i in range(1000) %}{{ x[-1] }}{% endfor %}", "steps"},
        {"{% set x = 'x' * 9000000 %}{% for i in range(1000) %}{{ x | length }}{% endfor %}", "steps"},
        {"{% set x = 'x' * 900000 %}{% for i in range(1000) %}{{ x[:1] }}{% endfor %}", "more than"},
        {"{% set x = range(100000) | list %}{% for i in range(1000) %}{{ 'y' in x }}{% endfor %}", "steps"},
        {"{% set x = 'x' * 9000000 %}{% set y = 'x' * 8999999 ~ 'y' %}{% for i in range(1000) %}{{ x == y }}{% endfor "
         "%}",
         "steps"},
        {"{% set x = 'x' * 9000000 %}{% for i in range(1000) %}{{ x.startswith(x) }}{% endfor %}", "steps"},
        {"{% set x = ' ' * 9000000 %}{% for i in range(1000) %}{{ x | trim }}{{ x.strip() }}{% endfor %}", "steps"},
        {"{% set x = range(1, 100001) | list %}{% for i in range(1000) %}{% set y = x | reject | list %}{% endfor %}",
         "steps"},
        {"{% set x = range(100000) | list %}{% for i in range(1000) %}{{ x | sum }}{% endfor %}", "steps"},
        {"{% macro f(n) %}{{ 'x' * 9000000 }}{{ f(n - 1) if n }}{% endmacro %}{{ f(40) }}", "more than"},
    };
    json_t *globals = json_object();
    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_BUFFER out = {0};
        struct fail fail = {0};
        assert_int_equal(render(cases[i].template, globals, &out, &fail), -EINVAL);
        if (!strstr(fail.text, cases[i].words))
            fail_msg("%s: '%s' does not say '%s'", cases[i].template, fail.text, cases[i].words);
    }
    json_decref(globals);
}

/* 400 turns of 10 KB: the bounds are for those that do harm. */
static void a_long_conversation_is_within_the_bounds(void **state)
{
    (void)state;
    static const char template[] =
        "{% for m in messages %}{% set c = m.content | trim %}{% if '</think>' in c %}{% set c = "
        "c.split('</think>')[-1].lstrip('\\n') %}{% endif %}{% if c.startswith('<tool') or c | length == 0 %}{% endif "
        "%}"
        "<{{ m.role }}>{{ c }}{{ m.content | tojson }}{% endfor %}";
    char content[10240];
    memset(content, 'x', sizeof(content) - 1);
    content[sizeof(content) - 1] = '\0';
    memcpy(content + 100, "</think>", 8);
    json_t *list = json_array();
    for (int i = 0; i < 400; i++)
        json_array_append_new(list, json_pack("{s:s, s:s}", "role", i % 2 ? "assistant" : "user", "content", content));
    json_t *globals = json_pack("{s:o}", "messages", list);
    AUTO_BUFFER out = {0};
    struct fail fail = {0};
    const int error = render(template, globals, &out, &fail);
    json_decref(globals);
    if (error < 0)
        fail_msg("%s", fail.text);
    assert_true(out.len > 400 * 2 * 10000);
}

static void brackets_within_brackets_are_bounded(void **state)
{
    (void)state;
    AUTO_BUFFER text = {0}, out = {0};
    struct fail fail = {0};
    buffer_append_str(&text, "{{ ");
    for (int i = 0; i < 5000; i++)
        buffer_append_str(&text, "(");
    buffer_append_str(&text, "1");
    for (int i = 0; i < 5000; i++)
        buffer_append_str(&text, ")");
    buffer_append_str(&text, " }}");
    AUTO_FREE char *template = buffer_take_str(&text);
    assert_int_equal(render(template, NULL, &out, &fail), -EINVAL);
    assert_non_null(strstr(fail.text, "levels"));
}

static void a_template_is_rendered_as_often_as_wanted(void **state)
{
    (void)state;
    struct jinja *jinja = NULL;
    json_t *globals = json_pack("{s:s}", "x", "a");
    AUTO_BUFFER out = {0};
    assert_int_equal(jinja_parse(slice_from_str("{% set y = x %}{{ y }}{{ z }}"), &jinja, NULL), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(jinja_render(jinja, globals, &out, NULL), 0);
    assert_true(slice_is(buffer_peek(&out), "aaa"));
    jinja_destroy(&jinja);
    json_decref(globals);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_case_comes_out_as_jinja_has_it),
        cmocka_unit_test(what_is_not_known_is_refused_by_name),
        cmocka_unit_test(a_rendering_is_bounded),
        cmocka_unit_test(a_long_conversation_is_within_the_bounds),
        cmocka_unit_test(brackets_within_brackets_are_bounded),
        cmocka_unit_test(a_template_is_rendered_as_often_as_wanted),
    };
    return cmocka_run_group_tests(tests, open_cases, close_cases);
}
