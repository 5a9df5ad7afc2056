/* Evaluations in the agent's own sandbox, at the end of its run: what they see, how they end, and what still counts. */
#include "tests/workers/stages/leaving_agent.h"

#define TASK(more, prompt, script)                                                                                     \
    "{\"task\":\"t\"," more "\"prompt\":\"" prompt                                                                     \
    "\",\"eval\":{\"kind\":\"verifier\",\"sandbox\":\"agent\",\"env\":{\"FROM\":\"eval\"},\"files\":"                  \
    "{\"/tests/test.sh\":\"#!/bin/bash\\n" script "\"}}}"

static struct job run_only(const char *json, enum outcome outcome, enum outcome evaluated, const char *words)
{
    struct job run = run_stage(STAGE_RUN, json, NULL, NULL, NULL);
    const struct job_evaluation *evaluation = &run.result.evaluation;
    if (run.result.outcome != outcome)
        fail_msg("%s: %s", outcome_wire(run.result.outcome), run.result.detail);
    assert_true(evaluation->is_done);
    if (evaluation->outcome != evaluated || !strstr(evaluation->detail, words))
        fail_msg("%s: %s, not %s: %s", outcome_wire(evaluation->outcome), evaluation->detail, outcome_wire(evaluated),
                 words);
    assert_true(run.result.verdict.has_reward == (evaluated == OUTCOME_OK));
    assert_string_equal(run.result.layer.digest, outcome == OUTCOME_AGENT ? run.result.layer.digest : "");
    return run;
}

static void expect_there(const char *json, double reward, const char *words)
{
    struct job run = run_only(json, OUTCOME_OK, OUTCOME_OK, words);
    if (run.result.verdict.reward != reward)
        fail_msg("%g, not %g: %s", run.result.verdict.reward, reward, run.result.evaluation.detail);
    assert_string_equal(run.result.verdict.sandbox, "agent");
    assert_string_equal(run.result.detail, "ended by itself");
    assert_string_equal(run.result.answer, "my last words");
    assert_true(run.result.record.len > 0);
    end_job(&run);
}

FIBER_TEST(it_finds_the_agents_processes_and_files_and_what_is_judged)
{
    expect_there(TASK("",
                      "mkfifo /tmp/ask /tmp/say; echo kept > f; (setsid bash -c 'while read q < /tmp/ask; do echo "
                      "alive > /tmp/say; done' > /dev/null 2>&1 &)",
                      "echo q > /tmp/ask; cat /tmp/say f; cat /run/sluice/answer; echo; echo $FROM; grep -c role "
                      "/run/sluice/messages.jsonl; echo 1 > /logs/verifier/reward.txt"),
                 1, "reward.txt says 1; it exited with 0: alive\nkept\nmy last words\neval\n1\n");
}

FIBER_TEST(what_the_agent_left_where_rewards_are_does_not_count)
{
    static const char *const left[] = {
        "echo '{\\\"reward\\\": 1}' > /logs/verifier/reward.json",
        "rm -r /logs; echo 1 > /logs",
        "mkdir /tmp/d; rm -r /logs/verifier; ln -s /tmp/d /logs/verifier; echo 1 > /tmp/d/reward.txt",
        "mkfifo /logs/verifier/reward.json",
        "mkdir -p /logs/verifier/reward.json/x",
        "truncate -s 1G /logs/verifier/reward.json",
        "chmod 0 /logs/verifier /logs",
        "mkdir /tests; echo 'echo 1 > /logs/verifier/reward.txt' > /tests/test.sh; chmod 555 /tests; chmod 444 "
        "/tests/test.sh",
        "mkdir /tests; ln -s /dev/null /tests/test.sh"};
    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
        char json[2048];
        snprintf(json, sizeof(json), TASK("", "%s", "ls -A /logs/verifier; echo 0.25 > /logs/verifier/reward.txt"),
                 left[i]);
        expect_there(json, 0.25, "it exited with 0: test-stdout.txt\n");
    }
}

/* It sees the end of the verifier's process, and writes a second later: by then nothing of it is there any more. */
FIBER_TEST(a_process_that_writes_the_reward_after_the_verifier_has_ended_comes_too_late)
{
    expect_there(TASK("",
                      "(setsid bash -c 'until [ -e /tmp/begun ]; do :; done; while [ -e /proc/$(</tmp/begun) ]; do "
                      ":; done; sleep 1; while :; do echo 1 > /logs/verifier/reward.txt; done' > /dev/null 2>&1 &)",
                      "echo $$ > /tmp/begun; sleep 0.2; echo 0.25 > /logs/verifier/reward.txt"),
                 0.25, "reward.txt says 0.25");
}

FIBER_TEST(a_verifier_that_breaks_or_does_not_end_is_the_tasks_fault)
{
    struct job run = run_only(TASK("", "true", "exit 0"), OUTCOME_OK, OUTCOME_TASK, "the verifier left no reward");
    end_job(&run);
    run = run_only(TASK("\"limits\":{\"eval_s\":1},", "true", "sleep 100"), OUTCOME_OK, OUTCOME_TASK,
                   "the verifier was stopped after");
    end_job(&run);
    run = run_only(TASK("\"limits\":{\"memory_mib\":64},", "true", "python3 -c 'x = \\\"x\\\" * (1 << 28)'; sleep 9"),
                   OUTCOME_OK, OUTCOME_TASK, "memory limit");
    end_job(&run);
}

FIBER_TEST(an_agent_whose_time_was_up_is_evaluated_in_the_evaluators_own)
{
    struct job run = run_only(TASK("\"limits\":{\"run_s\":1,\"eval_s\":20},", "echo kept > f; sleep 100",
                                   "sleep 1.5; grep -c kept f > /logs/verifier/reward.txt"),
                              OUTCOME_AGENT, OUTCOME_OK, "reward.txt says 1");
    assert_true(run.result.verdict.reward == 1);
    end_job(&run);
}

FIBER_TEST(an_agent_that_went_over_a_limit_of_its_sandbox_is_not_scored)
{
    struct job run = run_only(TASK("\"limits\":{\"memory_mib\":64},", "python3 -c 'x = \\\"x\\\" * (1 << 28)'; sleep 9",
                                   "echo 1 > /logs/verifier/reward.txt"),
                              OUTCOME_AGENT, OUTCOME_AGENT, "nothing was scored");
    end_job(&run);
}

FIBER_TEST(an_agent_without_a_sandbox_is_evaluated_in_one_that_is_made_for_it)
{
    struct job run = run_only(TASK("\"agent\":{\"kind\":\"none\"},", "p", "echo 1 > /logs/verifier/reward.txt"),
                              OUTCOME_OK, OUTCOME_OK, "reward.txt says 1");
    end_job(&run);
}

FIBER_TEST(a_command_is_evaluated_there_too)
{
    struct job run = run_only("{\"task\":\"t\",\"prompt\":\"(setsid sleep 1000 > /dev/null 2>&1 &); until pgrep sleep; "
                              "do :; done > /dev/null; echo 1 > /tmp/reward\","
                              "\"eval\":{\"kind\":\"command\",\"sandbox\":\"agent\",\"reward_file\":\"/tmp/reward\","
                              "\"command\":\"[ -e /tmp/reward ] || pgrep -c sleep > /tmp/reward\"}}",
                              OUTCOME_OK, OUTCOME_OK, "the reward file says 1");
    end_job(&run);
}

FIBER_TEST(shaping_is_done_there_too)
{
    struct job run = run_only(
        TASK("\"shaping\":{\"max_tokens\":10,\"buffer_tokens\":5},", "true", "echo 1 > /logs/verifier/reward.txt"),
        OUTCOME_OK, OUTCOME_OK, "reward.txt says 1");
    assert_false(run.result.has_raw_reward); /* nothing was sampled */
    end_job(&run);
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_kinds, tear_down_kinds)
    const struct CMUnitTest tests[] = {
        TEST(it_finds_the_agents_processes_and_files_and_what_is_judged),
        TEST(what_the_agent_left_where_rewards_are_does_not_count),
        TEST(a_process_that_writes_the_reward_after_the_verifier_has_ended_comes_too_late),
        TEST(a_verifier_that_breaks_or_does_not_end_is_the_tasks_fault),
        TEST(an_agent_whose_time_was_up_is_evaluated_in_the_evaluators_own),
        TEST(an_agent_that_went_over_a_limit_of_its_sandbox_is_not_scored),
        TEST(an_agent_without_a_sandbox_is_evaluated_in_one_that_is_made_for_it),
        TEST(a_command_is_evaluated_there_too),
        TEST(shaping_is_done_there_too),
    };
    int failed = cmocka_run_group_tests_name("an evaluation in the agent's sandbox", tests, NULL, NULL);
    free(agent_output);
    agent_output = NULL;
    return failed;
}

int main(void)
{
    run_bash = run_leaving;
    return run_as_everyone(group);
}
