/* A handler's score holds what a verdict holds, no more and no less. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "common/base/cleanup.h"
#include "workers/handlers/roles/score.h"

/* What `format` makes of 0, 1, ... count - 1, between the brackets. */
static struct slice make_list(struct buffer *out, const char *brackets, const char *format, int count)
{
    char one[96];
    buffer_append(out, brackets, 1);
    for (int i = 0; i < count; i++) {
        snprintf(one, sizeof(one), format, i);
        assert_true((i == 0 || buffer_append(out, ",", 1)) && buffer_append_str(out, one));
    }
    assert_true(buffer_append(out, brackets + 1, 1));
    return buffer_peek(out);
}

static bool read_metrics(int count, struct refusal *no)
{
    AUTO_BUFFER json = {0};
    AUTO_VERDICT verdict = {0};
    const struct verdict notes = {0};
    const struct msg_handler_score score = {
        .has_reward = true, .has_metrics = true, .metrics = make_list(&json, "{}", "\"m%d\":1", count)};
    return score_read(&score, &notes, &verdict, no) && verdict.metric_count == (size_t)count;
}

static void a_score_may_have_as_many_metrics_as_a_verdict_and_not_one_more(void **state)
{
    (void)state;
    struct refusal no = {0};
    assert_true(read_metrics(VERDICT_METRICS_MAX, &no));
    assert_false(read_metrics(VERDICT_METRICS_MAX + 1, &no));
    assert_true(no.reason == REFUSAL_TOO_LARGE && strcmp(no.text, "verdict: more than 256 metrics") == 0);
}

static bool read_parts(int count, struct refusal *no)
{
    AUTO_BUFFER json = {0};
    AUTO_VERDICT verdict = {0};
    const struct verdict notes = {0};
    const struct msg_handler_score score = {.has_parts = true,
                                            .parts = make_list(&json, "[]", "{\"name\":\"p%d\",\"value\":1}", count)};
    return score_read(&score, &notes, &verdict, no) && verdict.reward == count;
}

static void a_score_may_have_as_many_parts_as_a_verdict_and_not_one_more(void **state)
{
    (void)state;
    struct refusal no = {0};
    assert_true(read_parts(VERDICT_PARTS_MAX, &no));
    assert_false(read_parts(VERDICT_PARTS_MAX + 1, &no));
    assert_true(no.reason == REFUSAL_TOO_LARGE && strcmp(no.text, "verdict: more than 64 parts") == 0);
}

static void tests_beyond_those_a_verdict_lists_are_counted(void **state)
{
    (void)state;
    enum { COUNT = VERDICT_TESTS_MAX + 10 };
    AUTO_BUFFER json = {0};
    AUTO_VERDICT verdict = {0};
    struct refusal no = {0};
    const struct verdict notes = {0};
    const struct msg_handler_score score = {
        .has_reward = true,
        .has_tests = true,
        .tests = make_list(&json, "[]", "{\"name\":\"t%d\",\"status\":\"passed\"}", COUNT)};
    assert_true(json.len <= 1048576 && score_read(&score, &notes, &verdict, &no)); /* one message holds them */
    assert_int_equal(verdict.tests->list_count, VERDICT_TESTS_MAX);
    assert_int_equal(verdict.tests->passed, COUNT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_score_may_have_as_many_metrics_as_a_verdict_and_not_one_more),
        cmocka_unit_test(a_score_may_have_as_many_parts_as_a_verdict_and_not_one_more),
        cmocka_unit_test(tests_beyond_those_a_verdict_lists_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
