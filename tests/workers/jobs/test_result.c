#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "workers/jobs/result.h"
#include "workers/runtime/spent.h"

static struct job job;
static struct buffer bytes;
static struct msg_job_result sent;

static int set_up(void **state)
{
    (void)state;
    job = (struct job){.start = {.job = slice_from_str("run:g/0")}};
    job_set_outcome(&job, OUTCOME_OK, "fine");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    result_finish(&job.result);
    buffer_finish(&bytes);
    return 0;
}

/* Encodes, and reads back what would be sent. */
static void encode(void)
{
    struct refusal no = {0};
    assert_true(result_encode(&job, "w", 7, 12, &bytes));
    if (!message_decode(MSG_job_result, buffer_peek(&bytes), &sent, &no))
        fail_msg("refused: %s %s", no.field, no.text);
}

static void what_the_stage_left_is_sent(void **state)
{
    (void)state;
    job.result.answer = strdup("42");
    snprintf(job.result.layer.digest, sizeof(job.result.layer.digest), "sha256:aa");
    assert_true(buffer_append_str(&job.result.layer.inlined, "layer"));
    assert_true(buffer_append_str(&job.result.record, "record"));
    job.result.verdict.has_reward = true;
    job.result.verdict.reward = 0.5;
    encode();
    assert_true(slice_is(sent.worker, "w") && slice_is(sent.job, "run:g/0"));
    assert_int_equal(sent.token, 7);
    assert_int_equal(sent.ms, 12);
    assert_true(slice_is(sent.outcome, "ok") && slice_is(sent.detail, "fine"));
    assert_true(slice_is(sent.layer_digest, "sha256:aa") && slice_is(sent.layer, "layer"));
    assert_true(slice_is(sent.answer, "42") && slice_is(sent.record, "record"));
    assert_true(sent.has_reward && sent.reward == 0.5);
}

static void what_it_did_not_leave_is_absent(void **state)
{
    (void)state;
    encode();
    assert_false(sent.has_layer_digest || sent.has_layer || sent.has_answer || sent.has_record || sent.has_reward ||
                 sent.has_verdict);
}

/* So a job of another kind is no larger than it was. */
static void what_it_took_is_sent_where_there_was_any(void **state)
{
    (void)state;
    struct spent spent = {.prompt_tokens = 900};
    encode();
    assert_false(sent.has_turns || sent.has_prompt_tokens || sent.has_cached_tokens || sent.has_times ||
                 sent.has_traces);
    buffer_clear(&bytes);
    job.result.spent = &spent;
    job.result.turns = 3;
    observed_add(&spent.engine, &observed_seconds, 1.5);
    assert_true(buffer_append_str(&job.result.traces, "first=1"));
    encode();
    assert_true(sent.turns == 3 && sent.prompt_tokens == 900 && !sent.has_cached_tokens);
    assert_true(slice_is(sent.times, "engine=1500:6x1") && slice_is(sent.traces, "first=1"));
}

static void only_ok_has_a_reward(void **state)
{
    (void)state;
    job.result.verdict.has_reward = true;
    job.result.verdict.reward = 1;
    job_set_outcome(&job, OUTCOME_TASK, "the evaluator broke");
    encode();
    assert_true(slice_is(sent.outcome, "task"));
    assert_false(sent.has_reward);
}

static void parts_metrics_and_tests_are_sent_of_a_broken_evaluator_too(void **state)
{
    (void)state;
    AUTO_VERDICT read = {0};
    struct refusal no = {0};
    assert_true(verdict_add_part(&job.result.verdict, "correct", 1, 1, NULL));
    assert_true(verdict_add_test(&job.result.verdict, "t", TEST_ERROR, "no module", NULL, NULL));
    job_set_outcome(&job, OUTCOME_TASK, "the evaluator broke");
    encode();
    assert_true(sent.has_verdict && !sent.has_reward);
    assert_true(verdict_decode(sent.verdict, &read, &no));
    assert_true(read.part_count == 1 && read.tests->error == 1);
}

static void a_fault_goes_with_task_and_infra_and_with_nothing_else(void **state)
{
    (void)state;
    job_set_fault(&job, OUTCOME_INFRA, FAULT_ENGINE, "it hung");
    encode();
    assert_true(sent.has_fault && slice_is(sent.fault, "engine"));
    buffer_clear(&bytes);
    job_set_fault(&job, OUTCOME_TASK, FAULT_IMAGE, "it is not there");
    encode();
    assert_true(sent.has_fault && slice_is(sent.fault, "image"));
    buffer_clear(&bytes);
    job.result.outcome = OUTCOME_AGENT;
    encode();
    assert_false(sent.has_fault);
    buffer_clear(&bytes);
    job_set_outcome(&job, OUTCOME_INFRA, "something else");
    encode();
    assert_false(sent.has_fault);
}

static void an_answer_is_cut_between_characters(void **state)
{
    (void)state;
    job.result.answer = malloc(70001);
    for (int i = 0; i < 69998; i += 2)
        memcpy(job.result.answer + i, "\xc3\xa9", 2);
    strcpy(job.result.answer + 69998, "x"); /* so that the last 65,536 bytes begin inside a two-byte character */
    encode();
    assert_int_equal(sent.answer.len, 65535);
    assert_int_equal(sent.answer.data[65534], 'x');
}

/* A long text with this at its beginning and at its end. */
static void answer_long(const char *begin, const char *end)
{
    const size_t len = 100000;
    job.result.answer = malloc(len + 1);
    memset(job.result.answer, '.', len);
    memcpy(job.result.answer, begin, strlen(begin));
    strcpy(job.result.answer + len - strlen(end), end);
    encode();
}

static void of_a_long_answer_the_end_counts(void **state)
{
    (void)state;
    answer_long("<think>", "</think>\\boxed{2}");
    assert_int_equal(sent.answer.len, 65536);
    assert_memory_equal(sent.answer.data + 65536 - 17, "</think>\\boxed{2}", 17);
    assert_int_equal(sent.answer.data[0], '.');
}

static void thinking_that_is_never_closed_is_still_seen_to_be_that(void **state)
{
    (void)state;
    answer_long("<think>", "\\boxed{2}");
    assert_int_equal(sent.answer.len, 65536);
    assert_memory_equal(sent.answer.data, "<think>.", 8);
    free(take_ptr(&job.result.answer));
    bytes.len = 0;
    answer_long("<think></think>", "<think>\\boxed{2}");
    assert_int_equal(sent.answer.data[0], '.');
}

static void text_that_is_not_utf8_is_repaired_and_sent(void **state)
{
    (void)state;
    job.result.answer = strdup("a\xff\xc3z\xe2\x82");
    snprintf(job.result.detail, sizeof(job.result.detail), "bad \xed\xa0\x80 and good \xe2\x82\xac");
    encode();
    assert_true(slice_is(sent.answer, "a\?\?z\?\?"));
    assert_true(slice_is(sent.detail, "bad \?\?\? and good \xe2\x82\xac"));
}

static void a_detail_that_is_too_long_ends_at_a_character(void **state)
{
    (void)state;
    char text[4096];
    for (size_t i = 0; i < sizeof(text) - 4; i += 3)
        memcpy(text + i, "\xe2\x82\xac", 4);
    job_set_outcome(&job, OUTCOME_AGENT, "%s", text);
    encode();
    assert_true(sent.detail.len < sizeof(job.result.detail));
}

static void what_breaks_the_schema_becomes_infra_with_the_reason(void **state)
{
    (void)state;
    assert_non_null(buffer_reserve(&job.result.record, (64 << 20) + 1));
    memset(job.result.record.data, 0, (64 << 20) + 1);
    job.result.record.len = (64 << 20) + 1;
    job.result.answer = strdup("42");
    encode();
    assert_true(slice_is(sent.outcome, "infra"));
    char detail[4097];
    snprintf(detail, sizeof(detail), "%.*s", SLICE_ARG(sent.detail));
    assert_non_null(strstr(detail, "record"));
    assert_false(sent.has_record || sent.has_answer);
}

static void a_reward_that_is_no_number_becomes_infra(void **state)
{
    (void)state;
    job.result.verdict.has_reward = true;
    job.result.verdict.reward = strtod("nan", NULL);
    encode();
    assert_true(slice_is(sent.outcome, "infra"));
    assert_false(sent.has_reward);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_the_stage_left_is_sent),
        TEST(what_it_did_not_leave_is_absent),
        TEST(what_it_took_is_sent_where_there_was_any),
        TEST(only_ok_has_a_reward),
        TEST(parts_metrics_and_tests_are_sent_of_a_broken_evaluator_too),
        TEST(a_fault_goes_with_task_and_infra_and_with_nothing_else),
        TEST(an_answer_is_cut_between_characters),
        TEST(of_a_long_answer_the_end_counts),
        TEST(thinking_that_is_never_closed_is_still_seen_to_be_that),
        TEST(text_that_is_not_utf8_is_repaired_and_sent),
        TEST(a_detail_that_is_too_long_ends_at_a_character),
        TEST(what_breaks_the_schema_becomes_infra_with_the_reason),
        TEST(a_reward_that_is_no_number_becomes_infra),
    };
    return cmocka_run_group_tests_name("result", tests, NULL, NULL);
}
