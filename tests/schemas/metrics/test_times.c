/* What a job's time went to, as text and back; and what a broken worker may say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "schemas/metrics/metrics.h"
#include "schemas/metrics/times.h"

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    struct buffer text = {0};
    struct observed calls = {.sum = 0}, nothing = {.sum = 0};
    struct times_entry entry;
    observed_add(&calls, &observed_seconds, 0.02);
    observed_add(&calls, &observed_seconds, 0.02);
    observed_add(&calls, &observed_seconds, 4000);
    times_append(&text, "", TIMES_ENGINE, &calls);
    times_append(&text, "", TIMES_SANDBOX, &nothing); /* is not said */
    times_append(&text, TIMES_TOOL, "look up=1", &calls);
    assert_true(slice_is(buffer_peek(&text), "engine=4000040:1x2,15x1 tool:look_up_1=4000040:1x2,15x1"));
    size_t at = 0;
    assert_true(times_next(buffer_peek(&text), &at, &entry));
    assert_true(slice_is(entry.name, "engine"));
    assert_memory_equal(entry.times.counts, calls.counts, sizeof(calls.counts));
    assert_true(entry.times.sum > 4000.0399 && entry.times.sum < 4000.0401);
    assert_true(times_next(buffer_peek(&text), &at, &entry));
    assert_true(slice_is(entry.name, "tool:look_up_1"));
    assert_false(times_next(buffer_peek(&text), &at, &entry));
    buffer_finish(&text);
}

static void what_cannot_be_read_is_passed_over(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      " ",
                                      "engine",
                                      "engine=",
                                      "=1:1x1",
                                      "a=1",
                                      "a=1:",
                                      "a=1:x",
                                      "a=1:1x",
                                      "a=1:1x1,",
                                      "a=1:16x1",
                                      "a=1:1x1;",
                                      "a=-1:1x1",
                                      "a=1:99999999999999999999x1",
                                      "a=1:1x9999999999999999",
                                      "a=1.5:1x1"};
    struct times_entry entry;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        size_t at = 0;
        if (times_next(slice_from_str(bad[i]), &at, &entry))
            fail_msg("'%s' was read", bad[i]);
    }
    size_t at = 0;
    assert_true(times_next(slice_from_str("later=what engine=7:2x3"), &at, &entry));
    assert_true(slice_is(entry.name, "engine"));
    assert_int_equal(entry.times.counts[2], 3);
}

static void traces_are_counted_by_their_words(void **state)
{
    (void)state;
    struct buffer text = {0};
    struct slice reason;
    uint64_t count;
    size_t at = 0;
    traces_append(&text, slice_from_str("first"), 1);
    traces_append(&text, slice_from_str("my fork"), 12);
    assert_true(slice_is(buffer_peek(&text), "first=1 my_fork=12"));
    assert_true(traces_next(buffer_peek(&text), &at, &reason, &count));
    assert_true(slice_is(reason, "first") && count == 1);
    assert_true(traces_next(buffer_peek(&text), &at, &reason, &count));
    assert_true(slice_is(reason, "my_fork") && count == 12);
    assert_false(traces_next(buffer_peek(&text), &at, &reason, &count));
    at = 0;
    assert_false(traces_next(slice_from_str("cut=x cut= =2 cut=1x"), &at, &reason, &count));
    buffer_finish(&text);
}

static bool is_name(const char *text)
{
    size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyz_");
    return len > 0 && text[len] == '\0';
}

/* As the conventions have it, which `promtool check metrics` knows only in part. */
static void the_table_keeps_to_the_conventions(void **state)
{
    (void)state;
    for (enum metric_id id = 0; id < METRIC_COUNT; id++) {
        const struct metric *metric = metric_get(id);
        const struct slice name = slice_from_str(metric->family.name), unit = slice_from_str(metric->family.unit);
        const bool is_total = name.len > 6 && strcmp(metric->family.name + name.len - 6, "_total") == 0;
        const bool is_info = name.len > 5 && strcmp(metric->family.name + name.len - 5, "_info") == 0;
        assert_true(is_name(metric->family.name));
        assert_int_equal(is_total, metric->family.kind == FAMILY_COUNTER);
        assert_int_equal(is_info, metric->family.kind == FAMILY_INFO);
        if (unit.len && !strstr(metric->family.name, metric->family.unit))
            fail_msg("%s does not say its unit", metric->family.name);
        assert_true(metric->family.help[strlen(metric->family.help) - 1] == '.');
        for (enum metric_id other = 0; other < id; other++)
            assert_string_not_equal(metric->family.name, metric_get(other)->family.name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(what_cannot_be_read_is_passed_over),
        cmocka_unit_test(traces_are_counted_by_their_words),
        cmocka_unit_test(the_table_keeps_to_the_conventions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
