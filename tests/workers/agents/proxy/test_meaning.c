/* What a harness may do to a message without it becoming another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "workers/agents/proxy/meaning.h"

static bool calls_agree(const char *one, const char *other)
{
    static const char defaults[] = "{\"properties\": {\"all\": {\"default\": false}, \"list\": {\"default\": [1]}}}";
    json_t *schema = json_loads(defaults, 0, NULL);
    struct said_tool tool = {.name = (char *)"edit", .parameters = schema};
    const struct said_call call = {.id = (char *)"a", .name = (char *)"edit"};
    struct said_call calls[2] = {call, call};
    calls[0].arguments = json_loads(one, 0, NULL);
    calls[1].arguments = json_loads(other, 0, NULL);
    assert_true(calls[0].arguments && calls[1].arguments);
    const struct said said[2] = {{.role = SAID_ASSISTANT, .calls = &calls[0], .call_count = 1},
                                 {.role = SAID_ASSISTANT, .calls = &calls[1], .call_count = 1}};
    const bool same = meaning_equals(&said[0], &said[1], &tool, 1);
    assert_int_equal(meaning_equals(&said[1], &said[0], &tool, 1), same);
    json_decref(calls[0].arguments);
    json_decref(calls[1].arguments);
    json_decref(schema);
    return same;
}

static void arguments_are_compared_by_what_they_do(void **state)
{
    (void)state;
    assert_true(calls_agree("{\"a\": 1000.0, \"b\": [1, {}]}", "{\"b\": [1.0, {}], \"a\": 1000}"));
    assert_true(calls_agree("{\"a\": 1}", "{\"all\": false, \"a\": 1, \"list\": [1]}"));
    assert_true(calls_agree("{\"a\": \"x  \\ny\\t\"}", "{\"a\": \"x\\ny\"}"));
    assert_true(calls_agree("{\"a\": \"cd /tmp && ls\"}", "{\"a\": \"ls\"}"));
    assert_false(calls_agree("{\"a\": 1}", "{\"a\": 1, \"all\": true}"));
    assert_false(calls_agree("{\"a\": 1}", "{\"a\": 1, \"other\": false}"));
    assert_false(calls_agree("{\"a\": \" x\"}", "{\"a\": \"x\"}"));
    assert_false(calls_agree("{\"a\": \"x y\"}", "{\"a\": \"x  y\"}"));
    assert_false(calls_agree("{\"a\": \"x\\n\"}", "{\"a\": \"x\"}"));
    assert_false(calls_agree("{\"a\": \"cd /tmp && ls\"}", "{\"a\": \"rm\"}"));
    assert_false(calls_agree("{\"a\": \"1\"}", "{\"a\": 1}"));
}

static bool texts_agree(const char *one, const char *other, const char *thought)
{
    const struct said said[2] = {
        {.role = SAID_ASSISTANT, .text = (char *)(uintptr_t)one, .thinking = (char *)"hm"},
        {.role = SAID_ASSISTANT, .text = (char *)(uintptr_t)other, .thinking = (char *)(uintptr_t)thought}};
    return meaning_equals(&said[0], &said[1], NULL, 0);
}

static void texts_are_compared_without_the_blanks_at_their_ends(void **state)
{
    (void)state;
    assert_true(texts_agree("x", "x \n", "hm "));
    assert_true(texts_agree("", NULL, NULL));
    assert_false(texts_agree("x", " x", NULL));
    assert_false(texts_agree("x", "x", "no"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_are_compared_by_what_they_do),
        cmocka_unit_test(texts_are_compared_without_the_blanks_at_their_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
