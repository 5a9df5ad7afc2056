/* Whose breach it was: the agent's in its record, the task's in the detail. */
#include "tests/workers/stages/kinds_world.h"

#include "schemas/trajectory/trajectory.h"

#define SMALL "\"limits\":{\"disk_mib\":8,\"file_mib\":100,\"run_s\":5,\"memory_mib\":100}"

static uint32_t breaches_of(const struct record *record, const char *limit)
{
    uint32_t count = 0;
    assert_non_null(record->sandbox);
    for (size_t i = 0; i < record->sandbox->breach_count; i++)
        if (strcmp(record->sandbox->breaches[i].limit, limit) == 0)
            count += record->sandbox->breaches[i].count;
    return count;
}

static struct job run_agent(const char *json, struct record *ret)
{
    struct refusal no = {0};
    struct job run = run_stage(STAGE_RUN, json, NULL, NULL, NULL);
    if (!record_decode(buffer_peek(&run.result.record), ret, &no))
        fail_msg("%s: %s", no.field, no.text);
    return run;
}

FIBER_TEST(the_limits_an_agent_reached_are_in_its_record_by_name)
{
    struct record record;
    struct job run = run_agent("{\"task\":\"t\",\"prompt\":\"cat /dev/zero > f; seq 100000\"," SMALL "}", &record);
    expect(&run, OUTCOME_OK, "ended by itself");
    assert_int_equal(record.sandbox->breach_count, 2);
    assert_int_equal(breaches_of(&record, "disk"), 1);
    assert_int_equal(breaches_of(&record, "output"), 1);
    assert_int_equal(record.sandbox->commands, 1);
    assert_in_range(record.sandbox->peak_disk_bytes, 7 << 20, 8 << 20);
    assert_true(record.sandbox->cpu_seconds > 0 && record.sandbox->peak_memory_kib > 0);
    record_finish(&record);
    end_job(&run);
}

FIBER_TEST(an_agent_that_was_killed_for_its_memory_has_that_in_its_record)
{
    struct record record;
    struct job run = run_agent("{\"task\":\"t\",\"prompt\":\"head -c 400M /dev/zero | tail\"," SMALL "}", &record);
    expect(&run, OUTCOME_AGENT, "the agent went over its memory limit (limits.memory_mib)");
    assert_int_equal(breaches_of(&record, "memory"), 1);
    assert_true(record.sandbox->peak_memory_kib > 100 << 10);
    record_finish(&record);
    end_job(&run);
}

FIBER_TEST(the_time_of_the_stage_is_a_limit_of_the_agents)
{
    struct record record;
    struct job run = run_agent("{\"task\":\"t\",\"prompt\":\"sleep 100\",\"limits\":{\"run_s\":1}}", &record);
    assert_int_equal(run.result.outcome, OUTCOME_AGENT);
    assert_int_equal(breaches_of(&record, "stage-time"), 1);
    record_finish(&record);
    end_job(&run);
}

FIBER_TEST(an_agent_within_its_limits_has_no_breach)
{
    struct record record;
    struct job run = run_agent("{\"task\":\"t\",\"prompt\":\"echo ok\"}", &record);
    expect(&run, OUTCOME_OK, "ended by itself");
    assert_int_equal(record.sandbox->breach_count, 0);
    record_finish(&record);
    end_job(&run);
}

#define KEPT                                                                                                           \
    "\"files\":{\"keep\":\"x\"},\"eval\":{\"kind\":\"command\",\"command\":\"test -e "                                 \
    "keep\"}," SMALL "}"

/* What was there before the agent came would get 1. */
static void expect_unscored(const char *json, const char *words)
{
    struct job init = run_stage(STAGE_INIT, json, NULL, NULL, NULL);
    struct job run = run_stage(STAGE_RUN, json, &init.result.layer, NULL, NULL);
    expect(&run, OUTCOME_AGENT, words);
    assert_string_equal(run.result.layer.digest, LAYER_UNKNOWN);
    struct job eval = run_stage(STAGE_EVAL, json, &init.result.layer, &run.result.layer, run.result.answer);
    expect(&eval, OUTCOME_AGENT, "what the agent left is not known, and nothing was scored");
    assert_false(eval.result.verdict.has_reward);
    end_job(&init);
    end_job(&run);
    end_job(&eval);
}

FIBER_TEST(a_tree_that_cannot_be_packed_is_not_scored_as_the_one_of_before)
{
    expect_unscored("{\"task\":\"t\",\"prompt\":\"rm keep; mkdir -p $(printf 'd/%.0s' {1..300})\"," KEPT,
                    "the files cannot be packed");
}

FIBER_TEST(an_agent_that_is_killed_for_a_limit_is_not_scored_by_what_was_there_before)
{
    expect_unscored("{\"task\":\"t\",\"prompt\":\"rm keep; head -c 400M /dev/zero | tail\"," KEPT, "memory limit");
}

FIBER_TEST(what_set_up_reached_is_the_tasks)
{
    expect_init("{\"task\":\"t\",\"prompt\":\"p\",\"setup\":[\"cat /dev/zero > f\"]," SMALL "}", OUTCOME_TASK,
                "exited with 1 (limits reached: disk): cat: write error");
    struct job init = run_stage(STAGE_INIT,
                                "{\"task\":\"t\",\"prompt\":\"p\",\"setup\":[\"cat /dev/zero > f; "
                                "rm f\", \"cat /dev/zero > f; :\"]," SMALL "}",
                                NULL, NULL, NULL);
    expect(&init, OUTCOME_OK, "0 files, 2 set-up commands (limits reached: disk)");
    end_job(&init);
}

FIBER_TEST(what_an_evaluator_reached_is_the_tasks)
{
    expect_reward("{\"task\":\"t\",\"agent\":{\"kind\":\"none\"},\"eval\":{\"kind\":\"command\",\"command\":"
                  "\"cat /dev/zero > f\"}," SMALL "}",
                  0.0, "the evaluator exited with 1 (limits reached: disk)");
    expect_no_reward("{\"task\":\"t\",\"agent\":{\"kind\":\"none\"},\"eval\":{\"kind\":\"command\",\"command\":"
                     "\"truncate -s 200M f; exit $?\"}," SMALL "}",
                     OUTCOME_TASK, "the evaluator is broken, it exited with 153 (limits reached: file-size)");
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_kinds, tear_down_kinds)
    const struct CMUnitTest tests[] = {
        TEST(the_limits_an_agent_reached_are_in_its_record_by_name),
        TEST(an_agent_that_was_killed_for_its_memory_has_that_in_its_record),
        TEST(the_time_of_the_stage_is_a_limit_of_the_agents),
        TEST(an_agent_within_its_limits_has_no_breach),
        TEST(a_tree_that_cannot_be_packed_is_not_scored_as_the_one_of_before),
        TEST(an_agent_that_is_killed_for_a_limit_is_not_scored_by_what_was_there_before),
        TEST(what_set_up_reached_is_the_tasks),
        TEST(what_an_evaluator_reached_is_the_tasks),
    };
    int failed = cmocka_run_group_tests_name("kinds and limits", tests, NULL, NULL);
    free(agent_output);
    agent_output = NULL;
    return failed;
}

int main(void) { return run_as_everyone(group); }
