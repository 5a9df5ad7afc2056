/* What a task's shaping makes of a reward: DAPO's overlong penalty and overlong filtering. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "workers/jobs/shaping.h"

static const char dapo[] = "{\"max_tokens\":20480,\"buffer_tokens\":4096}";

static struct job job;

static void make_job(const char *shaping, double reward, uint64_t sampled_tokens, bool truncated)
{
    char json[512];
    struct refusal no = {0};
    snprintf(json, sizeof(json),
             "{\"task\":\"t\",\"prompt\":\"p\",\"eval\":{\"kind\":\"math\",\"answer\":\"1\"},\"shaping\":%s}", shaping);
    job = (struct job){.task = task_parse(slice_from_str(json), &no)};
    if (!job.task)
        fail_msg("%s: %s", no.field, no.text);
    job.start.has_sampled_tokens = job.start.has_truncated = true;
    job.start.sampled_tokens = sampled_tokens;
    job.start.truncated = truncated;
    job_set_outcome(&job, OUTCOME_OK, "it is right");
    verdict_set_reward(&job.result.verdict, reward, NULL);
}

static int tear_down(void **state)
{
    (void)state;
    verdict_finish(&job.result.verdict);
    task_destroy(job.task);
    return 0;
}

/* As verl computes it: min(-(length - (max - buffer)) / buffer * factor, 0). */
static void the_penalty_is_that_of_dapo(void **state)
{
    (void)state;
    static const struct {
        uint64_t tokens;
        double penalty;
    } rows[] = {{0, 0},        {16384, 0},    {16385, -1.0 / 4096}, {18432, -0.5}, {20479, -4095.0 / 4096},
                {20480, -1.0}, {20481, -1.0}, {4194304, -1.0}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        make_job(dapo, 1, rows[i].tokens, false);
        assert_true(shaping_penalty(&job.task->shaping, rows[i].tokens) == rows[i].penalty);
        shaping_apply(&job);
        assert_true(job.result.verdict.reward == 1 + rows[i].penalty);
        assert_true(job.result.has_raw_reward == (rows[i].penalty != 0));
        assert_true(!job.result.has_raw_reward || job.result.raw_reward == 1);
        tear_down(NULL);
    }
    make_job("{\"max_tokens\":10,\"buffer_tokens\":10,\"penalty\":3}", 0, 5, false);
    shaping_apply(&job);
    assert_true(job.result.verdict.reward == -1.5 && job.result.raw_reward == 0);
    assert_string_equal(job.result.detail, "it is right; -1.5 for a length of 5 tokens");
}

static void filtering_keeps_the_reward_and_only_of_what_was_cut_off(void **state)
{
    (void)state;
    for (int truncated = 0; truncated < 2; truncated++) {
        make_job("{\"truncated\":\"filter\"}", 1, 99, truncated);
        shaping_apply(&job);
        assert_true(job.result.filtered == truncated && job.result.verdict.reward == 1 && !job.result.has_raw_reward);
        tear_down(NULL);
    }
    make_job(dapo, 1, 20480, true);
    shaping_apply(&job);
    assert_false(job.result.filtered);
}

static void no_reward_stays_none(void **state)
{
    (void)state;
    make_job(dapo, 0, 20480, true);
    job.result.verdict.has_reward = false;
    shaping_apply(&job);
    assert_false(job.result.verdict.has_reward || job.result.has_raw_reward);
    assert_int_equal(job.result.outcome, OUTCOME_OK);
    job_set_outcome(&job, OUTCOME_TASK, "the evaluator broke");
    shaping_apply(&job);
    assert_string_equal(job.result.detail, "the evaluator broke");
}

static void what_was_never_told_is_not_made_up(void **state)
{
    (void)state;
    make_job(dapo, 1, 0, false);
    job.start.has_sampled_tokens = false;
    shaping_apply(&job);
    assert_int_equal(job.result.outcome, OUTCOME_INFRA);
    assert_non_null(strstr(job.result.detail, "upgrade the run workers"));
    tear_down(NULL);
    make_job("{}", 1, 0, false);
    job.start.has_sampled_tokens = false;
    shaping_apply(&job);
    assert_true(job.result.outcome == OUTCOME_OK && job.result.verdict.reward == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_penalty_is_that_of_dapo, tear_down),
        cmocka_unit_test_teardown(filtering_keeps_the_reward_and_only_of_what_was_cut_off, tear_down),
        cmocka_unit_test_teardown(no_reward_stays_none, tear_down),
        cmocka_unit_test_teardown(what_was_never_told_is_not_made_up, tear_down),
    };
    return cmocka_run_group_tests_name("shaping", tests, NULL, NULL);
}
