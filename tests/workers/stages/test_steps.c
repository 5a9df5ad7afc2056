/* Runs of tasks with steps, in real sandboxes: what each step finds, what they come to together, and what ends them. */
#include "tests/workers/stages/steps_world.h"

#define EVAL EVALUATED("\"sandbox\":\"agent\",", "")
#define TASK(more, steps) "{\"task\":\"t\"," more EVAL ",\"steps\":[" steps "]}"

FIBER_TEST(the_reward_is_the_mean_of_the_steps_or_the_last_ones)
{
    expect_rewards(TASK("", RIGHT "," WRONG), 0.5, "0.5 is the mean of 2 of 2 steps: a 1, b 0; b: reward.txt says 0");
    expect_rewards(TASK("\"steps_reward\":\"final\",", RIGHT "," WRONG), 0, "0 is the last of 2 of 2 steps: a 1, b 0");
    expect_rewards(TASK("\"steps_reward\":\"final\",", WRONG "," RIGHT), 1, "b 0, a 1");
    expect_rewards(TASK("", RIGHT), 1, "1 of 1 steps: a 1");
}

FIBER_TEST(each_step_is_a_part_and_a_trace_of_the_record)
{
    struct job run = run_steps(TASK("", RIGHT "," WRONG), OUTCOME_OK, OUTCOME_OK, "");
    struct record record;
    struct refusal no = {0};
    expect_part(&run, "reward", 0.5, 1);
    expect_part(&run, "step.a", 1, 0);
    expect_part(&run, "step.b", 0, 0);
    assert_true(record_decode(buffer_peek(&run.result.record), &record, &no));
    assert_int_equal(record.trace_count, 2);
    assert_string_equal(record.traces[0].reason, "");
    assert_string_equal(record.traces[1].reason, "step: b");
    assert_int_equal(record.message_count, 2);
    assert_string_equal(record.end, "done");
    assert_non_null(record.sandbox);
    assert_int_equal(run.result.sampled_tokens, 2);
    assert_string_equal(run.result.answer, "echo wrong > f");
    record_finish(&record);
    end_job(&run);
}

FIBER_TEST(what_is_collected_is_so_in_each_step_before_it_is_evaluated)
{
#define COLLECTS "\"eval\":{\"collect\":[{\"command\":\"date >> all; exit 3\"}]"
    static const char json[] =
        "{\"task\":\"t\",\"eval\":{\"kind\":\"command\",\"sandbox\":\"agent\",\"collect\":[{\"command\":\"echo >> "
        "all\"}],\"command\":\"wc -l < all > r\",\"reward_file\":\"r\"},\"steps\":[" STEP("a", "true", "") "," STEP(
            "b", "true", "," COLLECTS "}") "," STEP("c", "true", "") "]}";
    struct job run = run_steps(json, OUTCOME_OK, OUTCOME_OK, "a 1, b 3, c 4");
    const char *told = "eval.collect[1] exited with 3";
    assert_non_null(memmem(run.result.record.data, run.result.record.len, told, strlen(told)));
    end_job(&run);
}

FIBER_TEST(a_step_below_its_least_reward_is_the_last)
{
    expect_rewards(TASK("", STEP("a", "echo wrong > f", ",\"min_reward\":1") "," NEXT), 0,
                   "step a is the last: reward is 0, below its min_reward of 1; 0 is the mean of 1 of 2 steps: a 0");
    expect_rewards(TASK("", STEP("a", "echo right > f", ",\"min_reward\":1") "," WRONG), 0.5, "2 of 2 steps");
    expect_rewards(TASK("", STEP("a", "echo right > f", ",\"min_reward\":{\"safe\":0}") "," WRONG), 1,
                   "step a is the last: it has no safe");
}

FIBER_TEST(parts_by_name_are_means_where_a_step_that_lacks_one_counts_as_none)
{
    struct job run = run_steps(
        TASK("", STEP("a", "true",
                      TEST_SH("echo '{\\\"reward\\\": 1, \\\"fast\\\": 0.5}' > "
                              "/logs/verifier/reward.json")) "," STEP("b", "true",
                                                                      TEST_SH("echo "
                                                                              "'{\\\"reward\\\": "
                                                                              "0.5}' > /logs/"
                                                                              "verifier/"
                                                                              "reward.json"))),
        OUTCOME_OK, OUTCOME_OK, "");
    assert_true(run.result.verdict.reward == 0.75);
    expect_part(&run, "reward", 0.75, 1);
    expect_part(&run, "fast", 0.25, 0);
    assert_int_equal(run.result.verdict.metric_count, 2); /* a.reward, a.fast */
    assert_string_equal(run.result.verdict.metrics[1].name, "a.fast");
    end_job(&run);
}

FIBER_TEST(files_and_processes_live_on_and_what_the_evaluator_had_does_not)
{
    static const char serve[] =
        "mkfifo /tmp/ask /tmp/say; (setsid bash -c 'while read q < /tmp/ask; do echo alive > /tmp/say; done' > "
        "/dev/null 2>&1 &) ; echo right > f";
    static const char look[] =
        "cat f > seen; echo q > /tmp/ask; cat /tmp/say >> seen; ls -A /tests /logs/verifier "
        "/run/sluice/answer /run/sluice/task.json /run/sluice/messages.jsonl >> seen 2>/dev/null";
    char json[4096];
    snprintf(json, sizeof(json),
             TASK("", "{\"name\":\"a\",\"prompt\":\"%s\"},{\"name\":\"b\",\"prompt\":\"%s\"" TEST_SH(
                          "echo q > /tmp/ask; cat /tmp/say; cat seen; grep -c role /run/sluice/messages.jsonl; "
                          "grep -o '\\\"step\\\":\\\"[ab]\\\"' /run/sluice/task.json; echo 1 > "
                          "/logs/verifier/reward.txt") "}"),
             serve, look);
    expect_rewards(json, 1, "it exited with 0: alive\nright\nalive\n/logs/verifier:\n2\n\"step\":\"b\"\n");
}

FIBER_TEST(what_a_verifier_leaves_running_ends_with_it)
{
    expect_rewards(
        TASK(
            "",
            STEP(
                "a", "echo right > f",
                TEST_SH(
                    "(setsid sleep 1234 > /dev/null 2>&1 &); echo 1 > /logs/verifier/reward.txt")) "," STEP("b",
                                                                                                            "! pgrep "
                                                                                                            "-fx "
                                                                                                            "'sleep "
                                                                                                            "1234' || "
                                                                                                            "echo "
                                                                                                            "wrong > f",
                                                                                                            "")),
        1, "");
}

FIBER_TEST(a_step_has_files_and_set_up_of_its_own)
{
    expect_rewards(TASK("", STEP("a", "[ ! -e g ] && echo right > f", "") "," STEP(
                                "b", "cat g > f", ",\"files\":{\"g\":\"wro\"},\"setup\":[\"echo right > g\"]")),
                   1, "2 of 2 steps: a 1, b 1");
}

FIBER_TEST(a_step_that_cannot_be_set_up_is_no_reward)
{
    struct job run = run_steps(TASK("", RIGHT "," STEP("b", "true", ",\"setup\":[\"echo why; exit 3\"]")), OUTCOME_OK,
                               OUTCOME_TASK, "step b: the set-up command echo why; exit 3 exited with 3: why");
    assert_true(run.result.record.len > 0);
    end_job(&run);
}

FIBER_TEST(a_verifier_that_breaks_is_no_reward_and_ends_it)
{
    struct job run = run_steps(TASK("", STEP("a", "true", TEST_SH("exit 0")) "," NEXT), OUTCOME_OK, OUTCOME_TASK,
                               "step a: the verifier left no reward");
    end_job(&run);
    run = run_steps(TASK("", STEP("a", "true", ",\"limits\":{\"eval_s\":1}" TEST_SH("sleep 100"))), OUTCOME_OK,
                    OUTCOME_TASK, "step a: the verifier was stopped after");
    end_job(&run);
}

FIBER_TEST(a_step_whose_time_is_up_is_evaluated_and_the_next_begins)
{
    struct job run = run_steps(
        TASK("", STEP("a", "echo right > f; sleep 100", ",\"limits\":{\"run_s\":1}") "," STEP("b", "true", "")),
        OUTCOME_AGENT, OUTCOME_OK, "a 1, b 1");
    assert_non_null(strstr(run.result.detail, "(step a)"));
    end_job(&run);
}

FIBER_TEST(when_all_time_is_used_up_what_is_left_is_evaluated_without_an_agent)
{
    struct job run = run_steps(
        TASK("\"limits\":{\"run_s\":1},",
             STEP("a", "echo right > f; sleep 100", "") "," STEP("b", "echo wrong > f", ",\"setup\":[\"echo >> f\"]")),
        OUTCOME_AGENT, OUTCOME_OK, "a 1, b 1");
    struct record record;
    struct refusal no = {0};
    assert_true(record_decode(buffer_peek(&run.result.record), &record, &no));
    assert_int_equal(record.trace_count, 1);
    assert_string_equal(record.end, "time");
    record_finish(&record);
    end_job(&run);
}

FIBER_TEST(turns_are_of_all_steps_together)
{
    struct job run = run_steps(
        TASK("\"agent\":{\"kind\":\"bash\",\"max_turns\":1},", RIGHT "," STEP("b", "echo wrong > f", "")),
        OUTCOME_AGENT, OUTCOME_OK, "a 1, b 1");
    assert_non_null(strstr(run.result.detail, "turns: all 1 are used up (step b)"));
    end_job(&run);
}

FIBER_TEST(an_agent_that_went_over_a_limit_of_its_sandbox_is_not_scored)
{
    struct job run = run_steps(TASK("\"limits\":{\"memory_mib\":64},",
                                    RIGHT "," STEP("b", "python3 -c 'x = \\\"x\\\" * (1 << 28)'; sleep 9", "")),
                               OUTCOME_AGENT, OUTCOME_AGENT, "step b: what the agent left is not known");
    end_job(&run);
}

FIBER_TEST(an_agent_without_a_sandbox_has_one_made)
{
    struct job run = run_steps("{\"task\":\"t\",\"agent\":{\"kind\":\"none\"}," EVAL ",\"steps\":[" STEP(
                                   "a", "p", ",\"files\":{\"f\":\"right\"}") "," STEP("b", "p", "") "]}",
                               OUTCOME_OK, OUTCOME_OK, "a 1, b 1");
    end_job(&run);
}

/* What lies below /tests, and whatever the agent makes of it between steps. */
FIBER_TEST(what_an_agent_leaves_for_the_next_verifier_does_not_count)
{
    static const char *const left[] = {
        "echo 1 > /logs/verifier/reward.txt; mkdir /tests; echo 'echo 1 > /logs/verifier/reward.txt' > /tests/test.sh; "
        "chmod 500 /tests",
        "ln -s /tmp /tests; echo 1 > /logs/verifier/reward.json", "rm -r /logs; ln -s /tmp /logs"};
    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
        char json[4096];
        snprintf(
            json, sizeof(json),
            TASK("", RIGHT ",{\"name\":\"b\",\"prompt\":\"%s; echo wrong > f\"},{\"name\":\"c\",\"prompt\":\"true\"}"),
            left[i]);
        expect_rewards(json, 1.0 / 3, "a 1, b 0, c 0");
    }
}

/* By a link the files would lie elsewhere, where nobody takes them away. */
FIBER_TEST(cheating_by_a_link_for_the_tests_leaves_none_of_them_to_the_next_agent)
{
#define SECRET ",\"eval\":{\"files\":{\"/tests/sub/secret\":\"s\",\"/tests/test.sh\":\"" REWARD("ls t | wc -l") "\"}}"
    expect_rewards(TASK("", STEP("a", "mkdir t; ln -s $PWD/t /tests", SECRET) "," STEP("b", "ls -R t; true", SECRET)),
                   0, "a 0, b 0");
    expect_rewards(TASK("", STEP("a", "mkdir t /tests; ln -s $PWD/t /tests/sub", SECRET) "," STEP("b", "true", SECRET)),
                   0, "a 0, b 0");
}

FIBER_TEST(steps_whose_rewards_add_up_to_no_number_have_a_mean)
{
#define LARGE(name) STEP(name, "true", TEST_SH("echo 1.5e308 > /logs/verifier/reward.txt"))
    expect_rewards(TASK("", LARGE("a") "," LARGE("b")), 1.5e308, "1.5e+308 is the mean of 2 of 2 steps");
}

FIBER_TEST(a_command_judges_steps_too)
{
    struct job run = run_steps(
        "{\"task\":\"t\",\"eval\":{\"kind\":\"command\",\"sandbox\":\"agent\",\"reward_file\":\"/tmp/reward\","
        "\"command\":\"[ ! -e /tmp/reward ] && cat f > /tmp/reward\"},\"steps\":["
        "{\"name\":\"a\",\"prompt\":\"echo 1 > f; echo 9 > /tmp/reward\",\"min_reward\":1},"
        "{\"name\":\"b\",\"prompt\":\"[ ! -e /tmp/reward ]; echo 0.5 > f\"}]}",
        OUTCOME_OK, OUTCOME_OK, "0.75 is the mean of 2 of 2 steps: a 1, b 0.5");
    expect_part(&run, "reward", 0.75, 1);
    end_job(&run);
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_kinds, tear_down_kinds)
    const struct CMUnitTest tests[] = {
        TEST(the_reward_is_the_mean_of_the_steps_or_the_last_ones),
        TEST(each_step_is_a_part_and_a_trace_of_the_record),
        TEST(what_is_collected_is_so_in_each_step_before_it_is_evaluated),
        TEST(a_step_below_its_least_reward_is_the_last),
        TEST(parts_by_name_are_means_where_a_step_that_lacks_one_counts_as_none),
        TEST(files_and_processes_live_on_and_what_the_evaluator_had_does_not),
        TEST(what_a_verifier_leaves_running_ends_with_it),
        TEST(a_step_has_files_and_set_up_of_its_own),
        TEST(a_step_that_cannot_be_set_up_is_no_reward),
        TEST(a_verifier_that_breaks_is_no_reward_and_ends_it),
        TEST(a_step_whose_time_is_up_is_evaluated_and_the_next_begins),
        TEST(when_all_time_is_used_up_what_is_left_is_evaluated_without_an_agent),
        TEST(turns_are_of_all_steps_together),
        TEST(an_agent_that_went_over_a_limit_of_its_sandbox_is_not_scored),
        TEST(an_agent_without_a_sandbox_has_one_made),
        TEST(what_an_agent_leaves_for_the_next_verifier_does_not_count),
        TEST(cheating_by_a_link_for_the_tests_leaves_none_of_them_to_the_next_agent),
        TEST(steps_whose_rewards_add_up_to_no_number_have_a_mean),
        TEST(a_command_judges_steps_too),
    };
    int failed = cmocka_run_group_tests_name("tasks with steps", tests, NULL, NULL);
    free(agent_output);
    agent_output = NULL;
    return failed;
}

int main(void)
{
    evaluated_in = "agent";
    run_bash = run_leaving;
    has_steps = true;
    return run_as_everyone(group);
}
