/* eval.collect: what is run between the agent's end and the moment its files are taken. */
#include "tests/workers/stages/leaving_agent.h"
#include "tests/workers/stages/plain_image.h"

/* The evaluator is given /logs/artifacts. */
#define TASK(more, collect, prompt, script)                                                                            \
    "{\"task\":\"t\"," more "\"prompt\":\"" prompt                                                                     \
    "\",\"eval\":{\"kind\":\"verifier\",\"artifacts\":[\"/logs/artifacts\"],\"collect\":[" collect "],\"files\":"      \
    "{\"/tests/test.sh\":\"#!/bin/bash\\n" script "\"}}}"
#define GOOD "; echo 1 > /logs/verifier/reward.txt"

/* The whole; *ret_said: whether the record has these words. */
static void expect_collected(const char *json, enum outcome outcome, const char *said, const char *words)
{
    struct job run = run_stage(STAGE_RUN, json, NULL, NULL, NULL);
    expect(&run, outcome, "");
    const struct slice record = buffer_peek(&run.result.record);
    const char *sought = said ? said : "eval.collect";
    if (record.len && !memmem(record.data, record.len, sought, strlen(sought)) != !said)
        fail_msg("what the record says is not: %s", said ? said : "nothing");
    assert_true(record.len > 0 || !said);
    struct job eval = run_stage(STAGE_EVAL, json, NULL, &run.result.layer, run.result.answer);
    expect(&eval, OUTCOME_OK, words);
    end_job(&run);
    end_job(&eval);
}

FIBER_TEST(they_run_in_order_beside_the_agents_processes_and_before_its_files_are_taken)
{
    expect_collected(
        TASK("\"env\":{\"KEY\":\"k\"},",
             "{\"command\":\"pwd > /logs/artifacts/a; echo q > /tmp/ask; cat /tmp/say >> /logs/artifacts/a\"},"
             "{\"command\":\"echo q > /tmp/ask; cat /tmp/say >> /logs/artifacts/a; echo $KEY >> /logs/artifacts/a; "
             "echo not told\"}",
             "mkfifo /tmp/ask /tmp/say; (setsid bash -c 'while read q < /tmp/ask; do echo alive > /tmp/say; done' > "
             "/dev/null 2>&1 &)",
             "cat /logs/artifacts/a" GOOD),
        OUTCOME_OK, NULL, "reward.txt says 1; it exited with 0: /workspace\nalive\nalive\nk\n");
}

FIBER_TEST(one_that_fails_is_told_and_changes_nothing_else)
{
    expect_collected(TASK("", "{\"command\":\"echo why >&2; exit 3\"},{\"command\":\"echo b > /logs/artifacts/b\"}",
                          "true", "cat /logs/artifacts/b" GOOD),
                     OUTCOME_OK, "eval.collect[0] exited with 3: why", "it exited with 0: b\n");
    expect_collected(TASK("",
                          "{\"command\":\"kill -9 $$\"},{\"command\":\"sleep "
                          "100\",\"timeout_s\":1},{\"command\":\"echo c > /logs/artifacts/c\"}",
                          "true", "cat /logs/artifacts/c" GOOD),
                     OUTCOME_OK, "eval.collect[1] was stopped after 1.", "it exited with 0: c\n");
}

FIBER_TEST(an_agent_that_took_the_place_of_its_programs_is_scored_by_what_it_left)
{
    expect_collected(TASK("", "{\"command\":\"echo honest > /logs/artifacts/a\"}",
                          "rm -r /logs/artifacts; echo x > /logs/artifacts", "cat /logs/artifacts/a || echo none" GOOD),
                     OUTCOME_OK, "eval.collect[0] exited with 1", "none\n");
}

FIBER_TEST(they_have_a_time_of_their_own_behind_an_agent_whose_time_was_up)
{
    expect_collected(TASK("\"limits\":{\"run_s\":1},", "{\"command\":\"sleep 1.2; echo late > /logs/artifacts/a\"}",
                          "sleep 100", "cat /logs/artifacts/a" GOOD),
                     OUTCOME_AGENT, NULL, "it exited with 0: late\n");
}

FIBER_TEST(an_agent_without_a_sandbox_is_given_one)
{
    expect_collected(TASK("\"agent\":{\"kind\":\"none\"},", "{\"command\":\"echo c > /logs/artifacts/a\"}", "p",
                          "cat /logs/artifacts/a" GOOD),
                     OUTCOME_OK, NULL, "it exited with 0: c\n");
}

FIBER_TEST(one_that_goes_over_a_limit_ends_the_run_as_the_agent_would)
{
    const char *json = TASK("\"limits\":{\"memory_mib\":64},",
                            "{\"command\":\"python3 -c 'x = \\\"x\\\" * (1 << 28)'; sleep 9\"}", "true", "true" GOOD);
    struct job run = run_stage(STAGE_RUN, json, NULL, NULL, NULL);
    expect(&run, OUTCOME_AGENT, "memory limit");
    struct job eval = run_stage(STAGE_EVAL, json, NULL, &run.result.layer, run.result.answer);
    expect(&eval, OUTCOME_AGENT, "nothing was scored");
    end_job(&run);
    end_job(&eval);
}

FIBER_TEST(they_come_before_an_evaluation_in_the_agents_own_sandbox)
{
    const char *json = "{\"task\":\"t\",\"prompt\":\"true\",\"eval\":{\"kind\":\"verifier\",\"sandbox\":\"agent\","
                       "\"collect\":[{\"command\":\"echo 0.5 > /tmp/r\"}],\"files\":{\"/tests/test.sh\":"
                       "\"#!/bin/bash\\ncp /tmp/r /logs/verifier/reward.txt\"}}}";
    struct job run = run_stage(STAGE_RUN, json, NULL, NULL, NULL);
    expect(&run, OUTCOME_OK, "");
    assert_true(run.result.evaluation.is_done && run.result.verdict.reward == 0.5);
    end_job(&run);
}

FIBER_TEST(one_of_another_user_has_its_home_and_the_agents_id)
{
    char json[2048], path[256];
    make_plain_image("image");
    snprintf(path, sizeof(path), "%s/image/etc", directory);
    write_host_file(path, "passwd", "root:x:0:0::/root:/bin/sh\nme:x:1001:1002::/home/me:/bin/sh\n", 0644);
    snprintf(
        json, sizeof(json),
        "{\"task\":\"t\",\"image\":\"%s/image\",\"prompt\":\"echo mine > f; chmod 600 f\",\"user\":\"me\",\"eval\":{"
        "\"kind\":\"verifier\",\"sandbox\":\"agent\",\"collect\":[{\"command\":\"echo $HOME $(id -u) > /tmp/a\"},"
        "{\"user\":\"nobody\",\"command\":\"echo 9 > /tmp/a\"},{\"user\":\"root\",\"command\":\"echo $HOME $(id -u) "
        "$(cat f) >> /tmp/a\"}],\"files\":{\"/tests/test.sh\":\"#!/bin/bash\\ncat /tmp/a\\necho 1 > "
        "/logs/verifier/reward.txt\\n\"}}}",
        directory);
    struct job run = run_stage(STAGE_RUN, json, NULL, NULL, NULL);
    expect(&run, OUTCOME_OK, "");
    const char *told = "eval.collect[1] was not run: there is no user nobody in the image's /etc/passwd";
    const char *said = run.result.evaluation.detail;
    if (!strstr(said, "/home/me 1001\n/root 1001 mine\n"))
        fail_msg("%s", said);
    assert_non_null(memmem(run.result.record.data, run.result.record.len, told, strlen(told)));
    end_job(&run);
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_kinds, tear_down_kinds)
    const struct CMUnitTest tests[] = {
        TEST(they_run_in_order_beside_the_agents_processes_and_before_its_files_are_taken),
        TEST(one_that_fails_is_told_and_changes_nothing_else),
        TEST(an_agent_that_took_the_place_of_its_programs_is_scored_by_what_it_left),
        TEST(they_have_a_time_of_their_own_behind_an_agent_whose_time_was_up),
        TEST(an_agent_without_a_sandbox_is_given_one),
        TEST(one_that_goes_over_a_limit_ends_the_run_as_the_agent_would),
        TEST(one_of_another_user_has_its_home_and_the_agents_id),
        TEST(they_come_before_an_evaluation_in_the_agents_own_sandbox),
    };
    int failed = cmocka_run_group_tests_name("what is collected", tests, NULL, NULL);
    free(agent_output);
    agent_output = NULL;
    return failed;
}

int main(void)
{
    run_bash = run_leaving;
    return run_as_everyone(group);
}
