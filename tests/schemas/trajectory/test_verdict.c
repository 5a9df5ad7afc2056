/* A verdict: what it refuses, what it counts, and its bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "schemas/trajectory/verdict.h"

static void make_verdict(struct verdict *verdict)
{
    struct refusal no = {0};
    bool made = verdict_add_part(verdict, "correct", 1, 0.9, &no) && verdict_add_part(verdict, "format", 0, 0.1, &no) &&
                verdict_add_metric(verdict, "edits", 3, &no) &&
                verdict_add_test(verdict, "test_sum[1-2]", TEST_PASSED, NULL, &(double){0.25}, &no) &&
                verdict_add_test(verdict, "test_sum[1-2]", TEST_FAILED, "3 != 4", NULL, &no) &&
                verdict_add_test(verdict, "test_gr\xc3\xbc\xc3\x9f", TEST_SKIPPED, "", NULL, &no) &&
                verdict_add_test(verdict, "test_import", TEST_ERROR, NULL, NULL, &no);
    if (!made)
        fail_msg("%s: %s", no.field, no.text);
}

static void a_verdict_of_nothing_is_no_reward_and_not_one_of_0(void **state)
{
    (void)state;
    AUTO_VERDICT verdict = {0};
    double fraction;
    assert_false(verdict.has_reward || verdict_has_details(&verdict) || verdict_pass_fraction(&verdict, &fraction));
    assert_true(verdict_set_reward(&verdict, 0, NULL) && verdict.has_reward);
}

static void the_sum_is_of_weights_times_values(void **state)
{
    (void)state;
    AUTO_VERDICT verdict = {0};
    struct refusal no = {0};
    assert_false(verdict_sum(&verdict, &no));
    assert_int_equal(no.reason, REFUSAL_MISSING_FIELD);
    make_verdict(&verdict);
    assert_true(verdict_sum(&verdict, &no) && verdict.reward == 0.9);
    assert_true(verdict_add_part(&verdict, "style", -1, 0.5, &no) && verdict_sum(&verdict, &no));
    assert_float_equal(verdict.reward, 0.4, 1e-12);
    assert_true(verdict_add_part(&verdict, "huge", 1e308, 1e308, &no));
    assert_false(verdict_sum(&verdict, &no));
    assert_int_equal(no.reason, REFUSAL_NOT_FINITE);
    assert_float_equal(verdict.reward, 0.4, 1e-12);
}

static void skipped_tests_count_neither_for_nor_against(void **state)
{
    (void)state;
    AUTO_VERDICT verdict = {0};
    double fraction;
    make_verdict(&verdict);
    assert_true(verdict_pass_fraction(&verdict, &fraction));
    assert_float_equal(fraction, 1.0 / 3, 1e-12);
}

static void what_is_given_comes_back_from_the_bytes(void **state)
{
    (void)state;
    AUTO_VERDICT verdict = {0}, read = {0};
    AUTO_BUFFER bytes = {0}, again = {0};
    struct refusal no = {0};
    make_verdict(&verdict);
    assert_true(verdict_encode(&verdict, &bytes, &no));
    if (!verdict_decode(buffer_peek(&bytes), &read, &no))
        fail_msg("%s: %s", no.field, no.text);
    assert_int_equal(read.part_count, 2);
    assert_string_equal(read.parts[1].name, "format");
    assert_true(read.parts[0].value == 1 && read.parts[0].weight == 0.9 && read.metrics[0].value == 3);
    assert_true(read.tests->passed == 1 && read.tests->failed == 1 && read.tests->skipped == 1);
    assert_int_equal(read.tests->list_count, 4);
    assert_true(read.tests->list[0].seconds.is_known && read.tests->list[0].seconds.value == 0.25);
    assert_false(read.tests->list[1].seconds.is_known);
    assert_string_equal(read.tests->list[1].message, "3 != 4");
    assert_string_equal(read.tests->list[2].message, "");
    assert_null(read.tests->list[3].message);
    assert_true(verdict_encode(&read, &again, &no) && slice_equal(buffer_peek(&bytes), buffer_peek(&again)));
}

static void a_patch_comes_back_as_it_is_or_not_at_all(void **state)
{
    (void)state;
    static const char change[] = "diff --git a/\xc3\xa4 b/\xc3\xa4\n+\x01\n";
    AUTO_VERDICT verdict = {0}, read = {0};
    AUTO_BUFFER bytes = {0};
    AUTO_FREE char *large = calloc(1, VERDICT_PATCH_MAX + 2);
    assert_non_null(large);
    memset(large, 'x', VERDICT_PATCH_MAX + 1);
    assert_true(verdict_set_patch(&verdict, slice_of(large, VERDICT_PATCH_MAX + 1)));
    assert_true(verdict_set_patch(&verdict, slice_from_str("+caf\xe9\n")));
    assert_true(verdict_set_patch(&verdict, slice_of("+\0\n", 3)));
    assert_true(!verdict.patch && !verdict_has_details(&verdict));
    assert_true(verdict_set_patch(&verdict, slice_of(large, VERDICT_PATCH_MAX)));
    assert_true(verdict_set_patch(&verdict, slice_from_str(change)) && verdict_has_details(&verdict));
    assert_true(verdict_encode(&verdict, &bytes, NULL) && verdict_decode(buffer_peek(&bytes), &read, NULL));
    assert_string_equal(read.patch, change);
    assert_true(verdict_set_patch(&verdict, slice_of(NULL, 0)));
    assert_string_equal(verdict.patch, "");
}

static void a_patch_that_is_longer_than_may_be_is_refused(void **state)
{
    (void)state;
    AUTO_VERDICT verdict = {0};
    AUTO_BUFFER bytes = {0};
    struct refusal no = {0};
    verdict.patch = calloc(1, VERDICT_PATCH_MAX + 2);
    assert_non_null(verdict.patch);
    memset(verdict.patch, 'x', VERDICT_PATCH_MAX + 1);
    assert_false(verdict_encode(&verdict, &bytes, &no));
    assert_int_equal(no.reason, REFUSAL_TOO_LARGE);
    assert_string_equal(no.field, "patch");
}

static void names_and_numbers_are_refused_by_place_and_reason(void **state)
{
    (void)state;
    char long_name[65];
    memset(long_name, 'x', 64);
    long_name[64] = '\0';
    const struct {
        const char *name;
        double value, weight;
        enum refusal_reason reason;
        const char *field;
    } rows[] = {
        {"", 1, 1, REFUSAL_TOO_SMALL, "parts[2].name"},
        {long_name, 1, 1, REFUSAL_TOO_LARGE, "parts[2].name"},
        {"a\xff", 1, 1, REFUSAL_NOT_UTF8, "parts[2].name"},
        {"a\nb", 1, 1, REFUSAL_BAD_NAME, "parts[2].name"},
        {"correct", 1, 1, REFUSAL_DUPLICATE_FIELD, "parts[2].name"},
        {"new", NAN, 1, REFUSAL_NOT_FINITE, "parts[2].value"},
        {"new", 1, INFINITY, REFUSAL_NOT_FINITE, "parts[2].weight"},
    };
    AUTO_VERDICT verdict = {0};
    make_verdict(&verdict);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct refusal no = {0};
        assert_false(verdict_add_part(&verdict, rows[i].name, rows[i].value, rows[i].weight, &no));
        if (no.reason != rows[i].reason || strcmp(no.field, rows[i].field) != 0)
            fail_msg("row %zu: %s [%s] %s", i, refusal_wire(no.reason), no.field, no.text);
    }
    struct refusal no = {0};
    assert_false(verdict_add_metric(&verdict, "edits", 1, &no));
    assert_int_equal(no.reason, REFUSAL_DUPLICATE_FIELD);
    assert_false(verdict_add_metric(&verdict, "m", -INFINITY, &no));
    assert_string_equal(no.field, "metrics[1].value");
    assert_false(verdict_add_test(&verdict, "", TEST_PASSED, NULL, NULL, &no));
    assert_string_equal(no.field, "tests.list[4].name");
    assert_false(verdict_add_test(&verdict, "t", TEST_PASSED, NULL, &(double){-1}, &no));
    assert_int_equal(no.reason, REFUSAL_NOT_FINITE);
    assert_int_equal(verdict.part_count, 2);
    assert_int_equal(verdict.metric_count, 1);
    assert_int_equal(verdict.tests->list_count, 4);
    assert_int_equal(verdict.tests->passed, 1);
}

static void lists_are_bounded_and_tests_beyond_are_counted(void **state)
{
    (void)state;
    AUTO_VERDICT verdict = {0};
    AUTO_BUFFER bytes = {0};
    struct refusal no = {0};
    char name[64];
    for (int i = 0; i < VERDICT_PARTS_MAX; i++) {
        snprintf(name, sizeof(name), "part %d", i);
        assert_true(verdict_add_part(&verdict, name, 1, 1, &no));
    }
    assert_false(verdict_add_part(&verdict, "more", 1, 1, &no));
    assert_true(no.reason == REFUSAL_TOO_LARGE && strcmp(no.field, "parts") == 0);
    for (int i = 0; i < VERDICT_METRICS_MAX; i++) {
        snprintf(name, sizeof(name), "metric %d", i);
        assert_true(verdict_add_metric(&verdict, name, 1, &no));
    }
    assert_false(verdict_add_metric(&verdict, "more", 1, &no));
    for (int i = 0; i < VERDICT_TESTS_MAX + 100; i++)
        assert_true(verdict_add_test(&verdict, "t", TEST_PASSED, NULL, NULL, &no));
    assert_int_equal(verdict.tests->list_count, VERDICT_TESTS_MAX);
    assert_int_equal(verdict.tests->passed, VERDICT_TESTS_MAX + 100);
    assert_true(verdict_encode(&verdict, &bytes, &no));
}

static void long_texts_of_tests_are_cut_between_characters_and_bounded_together(void **state)
{
    (void)state;
    AUTO_VERDICT verdict = {0}, read = {0};
    AUTO_BUFFER bytes = {0}, text = {0};
    struct refusal no = {0};
    for (int i = 0; i < 5000; i++)
        buffer_append_str(&text, "\xe2\x82\xac");
    assert_true(buffer_append(&text, "", 1));
    for (int i = 0; i < VERDICT_TESTS_MAX; i++)
        assert_true(verdict_add_test(&verdict, i ? "t" : (char *)text.data, TEST_FAILED, (char *)text.data, NULL, &no));
    const struct verdict_test *first = &verdict.tests->list[0];
    assert_true(strlen(first->name) <= VERDICT_TEST_NAME_MAX && strlen(first->message) <= VERDICT_MESSAGE_MAX);
    assert_string_equal(first->message + strlen(first->message) - 6, "\xe2\x82\xac...");
    assert_true(verdict.tests->list_count < VERDICT_TESTS_MAX && verdict.tests->list_count > 1000);
    assert_int_equal(verdict.tests->failed, VERDICT_TESTS_MAX);
    assert_true(verdict_encode(&verdict, &bytes, &no) && verdict_decode(buffer_peek(&bytes), &read, &no));
}

static void names_of_tests_are_made_fit_to_print(void **state)
{
    (void)state;
    AUTO_VERDICT verdict = {0};
    assert_true(verdict_add_test(&verdict, "a\x1b[31m\xff\n", TEST_PASSED, "\xff", NULL, NULL));
    assert_string_equal(verdict.tests->list[0].name, "a?[31m\xef\xbf\xbd?");
    assert_string_equal(verdict.tests->list[0].message, "\xef\xbf\xbd");
}

static void damaged_bytes_are_refused_or_read(void **state)
{
    (void)state;
    AUTO_VERDICT verdict = {0};
    AUTO_BUFFER bytes = {0};
    size_t refused = 0;
    make_verdict(&verdict);
    assert_true(verdict_encode(&verdict, &bytes, NULL));
    for (size_t len = 0; len < bytes.len; len++) {
        AUTO_VERDICT read = {0};
        struct refusal no = {0};
        assert_false(verdict_decode(slice_of(bytes.data, len), &read, &no));
        assert_true(no.reason != REFUSAL_NONE);
    }
    for (size_t at = 0; at < bytes.len; at++)
        for (unsigned flip = 1; flip < 256; flip <<= 1) {
            AUTO_VERDICT read = {0};
            struct refusal no = {0};
            bytes.data[at] ^= (uint8_t)flip;
            bool good = verdict_decode(buffer_peek(&bytes), &read, &no);
            assert_true(good == (no.reason == REFUSAL_NONE));
            refused += !good;
            bytes.data[at] ^= (uint8_t)flip;
        }
    assert_true(refused > 1000);
}

static void counts_below_the_list_are_refused(void **state)
{
    (void)state;
    AUTO_VERDICT verdict = {0};
    AUTO_BUFFER bytes = {0};
    struct refusal no = {0};
    make_verdict(&verdict);
    verdict.tests->failed = 0;
    assert_false(verdict_encode(&verdict, &bytes, &no));
    assert_true(no.reason == REFUSAL_TOO_SMALL && strcmp(no.field, "tests.failed") == 0);
    assert_int_equal(bytes.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_verdict_of_nothing_is_no_reward_and_not_one_of_0),
        cmocka_unit_test(the_sum_is_of_weights_times_values),
        cmocka_unit_test(skipped_tests_count_neither_for_nor_against),
        cmocka_unit_test(what_is_given_comes_back_from_the_bytes),
        cmocka_unit_test(a_patch_comes_back_as_it_is_or_not_at_all),
        cmocka_unit_test(a_patch_that_is_longer_than_may_be_is_refused),
        cmocka_unit_test(names_and_numbers_are_refused_by_place_and_reason),
        cmocka_unit_test(lists_are_bounded_and_tests_beyond_are_counted),
        cmocka_unit_test(long_texts_of_tests_are_cut_between_characters_and_bounded_together),
        cmocka_unit_test(names_of_tests_are_made_fit_to_print),
        cmocka_unit_test(damaged_bytes_are_refused_or_read),
        cmocka_unit_test(counts_below_the_list_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
