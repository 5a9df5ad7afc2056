/* What a trajectory message says beyond its reward, as C clients are shown it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "client/lib/stream/trajectory_view.h"
#include "common/base/cleanup.h"

static struct trajectory_view view;

static void make_record(struct buffer *out)
{
    static const uint32_t ids[3] = {1, 2, 3};
    static const float logprobs[3] = {0};
    struct record_sampling sampling = {.temperature = 0.5, .top_p = 1, .max_tokens = 9, .seed = -1};
    struct record_span spans[] = {{0, 1, "v7"}, {1, 2, "v8"}};
    struct record_turn turn = {.role = "assistant",
                               .finish = "length",
                               .version = "v7+v8",
                               .sampling = &sampling,
                               .versions = spans,
                               .version_count = 2};
    const struct record_extra column = {
        "teacher_logprobs", "f32", 0, 3, {0}, {0}, {(void *)logprobs, sizeof(logprobs)}};
    struct record record;
    record_init(&record);
    strcpy(record.end, "length");
    record.truncated = true;
    record.attempt = 2;
    assert_true(record_start_trace(&record, "") && record_append(&record, &turn, ids, logprobs, 3, true));
    assert_true(record_add_column(&record.traces[0], &column));
    assert_true(record_say_sampled(&record, slice_from_str("2")) && record_encode(&record, out, NULL));
    record_finish(&record);
}

static void make_verdict(struct buffer *out)
{
    AUTO_VERDICT verdict = {0};
    assert_true(verdict_add_part(&verdict, "correct", 1, 0.5, NULL) && verdict_add_metric(&verdict, "edits", 3, NULL));
    assert_true(verdict_add_test(&verdict, "t", TEST_FAILED, "why", NULL, NULL) && verdict_encode(&verdict, out, NULL));
}

static int tear_down(void **state)
{
    (void)state;
    trajectory_view_finish(&view);
    return 0;
}

static void all_of_it_is_shown(void **state)
{
    (void)state;
    AUTO_BUFFER record = {0}, verdict = {0};
    struct refusal no = {0};
    make_record(&record);
    make_verdict(&verdict);
    const struct msg_trajectory message = {.rollout = slice_from_str("g/0"),
                                           .has_reward = true,
                                           .reward = 0.25,
                                           .has_raw_reward = true,
                                           .raw_reward = 0.5,
                                           .has_group_size = true,
                                           .group_size = 8,
                                           .has_group_ended = true,
                                           .group_ended = 3,
                                           .has_metadata = true,
                                           .metadata = slice_from_str("{\"k\": 1}"),
                                           .has_record = true,
                                           .record = buffer_peek(&record),
                                           .has_verdict = true,
                                           .verdict = buffer_peek(&verdict)};
    if (!trajectory_view_read(&view, &message, &no))
        fail_msg("%s: %s", no.field, no.text);
    const struct sluice_trajectory *t = &view.out;
    assert_true(t->reward == 0.25 && t->raw_reward == 0.5 && t->group_size == 8 && t->group_ended == 3);
    assert_string_equal(t->metadata, "{\"k\": 1}");
    assert_true(strcmp(t->end, "length") == 0 && t->truncated && t->run_attempt == 2 && t->messages[0].sampled);
    assert_true(t->part_count == 1 && t->parts[0].weight == 0.5 && t->metric_count == 1 && t->metrics[0].value == 3);
    assert_true(t->tests->failed == 1 && t->tests->pass_fraction == 0 && t->tests->list[0].seconds == -1);
    assert_string_equal(t->tests->list[0].message, "why");
    const struct sluice_turn *turn = &t->traces[0].turns[0];
    assert_true(turn->sampling->temperature == 0.5 && turn->sampling->seed == -1 && turn->version_count == 2);
    assert_string_equal(turn->versions[1].version, "v8");
    assert_true(t->traces[0].column_count == 1 && t->traces[0].columns[0].rows == 3);
}

static void what_is_not_told_is_not_made_up(void **state)
{
    (void)state;
    const struct msg_trajectory message = {.rollout = slice_from_str("g/0"), .has_reward = true, .reward = 0.25};
    assert_true(trajectory_view_read(&view, &message, NULL));
    const struct sluice_trajectory *t = &view.out;
    assert_true(t->raw_reward == 0.25 && t->group_size == 0 && !t->tests && t->part_count == 0);
    assert_true(*t->metadata == '\0' && *t->end == '\0' && !t->truncated);
}

static void a_verdict_that_cannot_be_read_is_refused(void **state)
{
    (void)state;
    struct refusal no = {0};
    const struct msg_trajectory message = {.has_verdict = true, .verdict = slice_from_str("\xc1")};
    assert_false(trajectory_view_read(&view, &message, &no));
    assert_int_equal(no.reason, REFUSAL_MALFORMED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(all_of_it_is_shown, tear_down),
        cmocka_unit_test_teardown(what_is_not_told_is_not_made_up, tear_down),
        cmocka_unit_test_teardown(a_verdict_that_cannot_be_read_is_refused, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
