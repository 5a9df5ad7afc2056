/* What a verifier's reward files say: each row a text as a test script may leave it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/evaluators/verifier/ctrf.h"
#include "workers/evaluators/verifier/reward_text.h"

typedef void (*read_fn)(struct slice text, struct verdict *verdict);

static void expect_reward(read_fn read, struct slice text, double reward)
{
    AUTO_VERDICT verdict = {0};
    read(text, &verdict);
    if (!verdict.has_reward || verdict.reward != reward)
        fail_msg("%.*s: %g (%d), not %g: %s", SLICE_ARG(text), verdict.reward, verdict.has_reward, reward,
                 verdict_why(&verdict));
}

static void expect_none(read_fn read, struct slice text, const char *words)
{
    AUTO_VERDICT verdict = {0};
    read(text, &verdict);
    if (verdict.has_reward || !strstr(verdict_why(&verdict), words))
        fail_msg("%.*s: %g (%d), not: %s", SLICE_ARG(text), verdict.reward, verdict.has_reward, words);
}

static void one_number_is_read_as_python_does(void **state)
{
    static const struct {
        const char *text;
        double reward;
    } rows[] = {{"1", 1},
                {"1\n", 1},
                {" \t\v\f\r\n0.25\n\n", 0.25},
                {"\x1c-3\x1f", -3},
                {"\xc2\xa0\xe2\x80\x83"
                 "7\xe3\x80\x80",
                 7},
                {"1e0", 1},
                {"1_0", 10},
                {"1_000.2_5e1_0", 1000.25e10},
                {"+.5", 0.5},
                {"5.", 5},
                {"-0", 0},
                {"17.5", 17.5},
                {"1e-400", 0},
                {"00001", 1}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        expect_reward(reward_txt_read, slice_from_str(rows[i].text), rows[i].reward);
}

static void what_is_not_one_finite_number_is_no_reward(void **state)
{
    static const struct {
        const char *text, *words;
    } rows[] = {{"", "it is empty"},
                {" \n", "it is empty"},
                {"nan", "nan is not a finite number"},
                {"-Inf\n", "-Inf is not a finite number"},
                {"INFINITY", "is not a finite number"},
                {"1e309", "too large"},
                {"one", "it holds one, not one number"},
                {"1 1", "not one number"},
                {"1,5", "not one number"},
                {"1/2", "not one number"},
                {"0x1p3", "not one number"},
                {"1__0", "not one number"},
                {"_1", "not one number"},
                {"1_", "not one number"},
                {"1_.5", "not one number"},
                {"1e", "not one number"},
                {"1e+", "not one number"},
                {".", "not one number"},
                {"+", "not one number"},
                {"--1", "not one number"},
                {"true", "not one number"},
                {"1\xff", "not one number"},
                {"\xef\xbb\xbf"
                 "1",
                 "not one number"}};
    char longest[REWARD_TXT_MAX + 2];
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        expect_none(reward_txt_read, slice_from_str(rows[i].text), rows[i].words);
    memset(longest, '1', sizeof(longest));
    expect_none(reward_txt_read, slice_of(longest, sizeof(longest)), "longer than 4096 bytes");
    expect_none(reward_txt_read, slice_of("1\0", 2), "not one number");
}

static void an_object_of_numbers_is_a_part_for_each(void **state)
{
    AUTO_VERDICT verdict = {0};
    (void)state;
    expect_reward(reward_json_read, slice_from_str("{\"reward\": -2.5}"), -2.5);
    expect_reward(reward_json_read, slice_from_str(" {\"accuracy\": 3}\n"), 3);
    expect_reward(reward_json_read, slice_from_str("{\"a\": true, \"b\": false}"), 0.5);
    expect_reward(reward_json_read, slice_from_str("{\"big\": 10000000000000000000}"), 1e19);
    reward_json_read(slice_from_str("{\"style\": 40, \"reward\": 0.5, \"\\u00e9\": true}"), &verdict);
    assert_true(verdict.has_reward && verdict.reward == 0.5);
    assert_int_equal(verdict.part_count, 3);
    assert_string_equal(verdict.parts[0].name, "style");
    assert_true(verdict.parts[0].value == 40 && verdict.parts[0].weight == 0);
    assert_true(verdict.parts[1].value == 0.5 && verdict.parts[1].weight == 1);
    assert_string_equal(verdict.parts[2].name, "\xc3\xa9");
    assert_true(verdict.parts[2].value == 1 && verdict.parts[2].weight == 0);
}

static void what_is_no_flat_object_of_finite_numbers_is_no_reward(void **state)
{
    static const struct {
        const char *text, *words;
    } rows[] = {{"", "it is empty"},
                {"\n", "it is empty"},
                {"1", "no object of names and numbers"},
                {"[1]", "no object of names and numbers"},
                {"\"1\"", "no object of names and numbers"},
                {"null", "no object of names and numbers"},
                {"{}", "its object is empty"},
                {"{\"reward\": \"1\"}", "reward is not a number"},
                {"{\"reward\": null}", "reward is not a number"},
                {"{\"reward\": {\"a\": 1}}", "reward is not a number"},
                {"{\"reward\": 1, \"more\": [1]}", "more is not a number"},
                {"{\"reward\": NaN}", "JSON"},
                {"{\"reward\": Infinity}", "JSON"},
                {"{\"reward\": 1e309}", "JSON"},
                {"{\"reward\": 1", "JSON"},
                {"{\"reward\": 1} x", "JSON"},
                {"{\"\": 1}", "is empty"},
                {"{\"a\\nb\": 1}", "control character"},
                {"{\"a\\u0000b\": 1}", "a name in it holds a NUL"},
                {"{\"a\": 1e308, \"b\": 1e308}", "not a finite number"}};
    AUTO_BUFFER many = {0};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        expect_none(reward_json_read, slice_from_str(rows[i].text), rows[i].words);
    for (int i = 0; i < 65; i++)
        buffer_printf(&many, "%s\"k%d\": 1", i ? ", " : "{", i);
    buffer_append_str(&many, "}");
    expect_none(reward_json_read, buffer_peek(&many), "more than 64 parts");
    buffer_clear(&many);
    while (many.len <= REWARD_JSON_MAX)
        buffer_append_str(&many, "[[[[");
    expect_none(reward_json_read, buffer_peek(&many), "longer than 65536 bytes");
    many.len = REWARD_JSON_MAX;
    expect_none(reward_json_read, buffer_peek(&many), "JSON");
}

/* ---- reports of tests --------------------------------------------------------------------------- */

static void a_report_of_tests_becomes_the_verdicts(void **state)
{
    AUTO_VERDICT verdict = {0};
    struct fail fail = {0};
    (void)state;
    assert_true(ctrf_read(
        slice_from_str("{\"results\": {\"tool\": {\"name\": \"pytest\"}, \"summary\": {\"tests\": 5}, \"tests\": ["
                       "{\"name\": \"a\", \"status\": \"passed\", \"duration\": 1500},"
                       "{\"name\": \"b\", \"status\": \"failed\", \"message\": \"1 != 2\", \"trace\": \"...\"},"
                       "{\"name\": \"c\", \"status\": \"skipped\"}, {\"name\": \"d\", \"status\": \"pending\"},"
                       "{\"name\": \"e\", \"status\": \"other\", \"duration\": -1}]}}"),
        &verdict, &fail));
    const struct verdict_tests *tests = verdict.tests;
    assert_int_equal(tests->passed, 1);
    assert_int_equal(tests->failed, 1);
    assert_int_equal(tests->skipped, 2);
    assert_int_equal(tests->error, 1);
    assert_true(tests->list[0].seconds.is_known && tests->list[0].seconds.value == 1.5);
    assert_string_equal(tests->list[1].message, "1 != 2");
    assert_false(tests->list[4].seconds.is_known);
}

static void what_is_no_report_is_refused_in_words(void **state)
{
    static const struct {
        const char *text, *words;
    } rows[] = {{"", "JSON"},
                {"{}", "no results.tests"},
                {"{\"results\": {\"tests\": {}}}", "no results.tests"},
                {"{\"results\": {\"tests\": [7]}}", "has no name"},
                {"{\"results\": {\"tests\": [{\"status\": \"passed\"}]}}", "has no name"},
                {"{\"results\": {\"tests\": [{\"name\": \"\", \"status\": \"passed\"}]}}", "has no name"}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        AUTO_VERDICT verdict = {0};
        struct fail fail = {0};
        if (ctrf_read(slice_from_str(rows[i].text), &verdict, &fail) || !strstr(fail.text, rows[i].words))
            fail_msg("%s: %s, not: %s", rows[i].text, fail.text, rows[i].words);
        assert_null(verdict.tests);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_number_is_read_as_python_does),
        cmocka_unit_test(what_is_not_one_finite_number_is_no_reward),
        cmocka_unit_test(an_object_of_numbers_is_a_part_for_each),
        cmocka_unit_test(what_is_no_flat_object_of_finite_numbers_is_no_reward),
        cmocka_unit_test(a_report_of_tests_becomes_the_verdicts),
        cmocka_unit_test(what_is_no_report_is_refused_in_words),
    };
    return cmocka_run_group_tests_name("a verifier's files", tests, NULL, NULL);
}
