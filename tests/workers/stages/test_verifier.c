/* A verifier in a fresh sandbox: its contract, and what the agent left in the way of its rewards. */
#include "tests/workers/stages/plain_image.h"

/* The agent does `prompt`; `script` is /tests/test.sh. */
#define WITH(more, prompt, script)                                                                                     \
    "{\"task\":\"t\"," more "\"prompt\":\"" prompt                                                                     \
    "\",\"eval\":{\"kind\":\"verifier\",\"files\":{\"/tests/test.sh\":\"#!/bin/bash\\n" script "\"}}}"
#define TASK(prompt, script) WITH("", prompt, script)

FIBER_TEST(its_exit_status_decides_nothing)
{
    expect_reward(TASK("true", "echo 1 > /logs/verifier/reward.txt; exit 1"), 1, "reward.txt says 1; it exited with 1");
    expect_reward(TASK("true", "echo 0 > /logs/verifier/reward.txt"), 0, "reward.txt says 0; it exited with 0");
    expect_reward(TASK("true", "echo 0.5 > /logs/verifier/reward.txt; kill -9 $$"), 0.5, "reward.txt says 0.5");
    expect_no_reward(TASK("true", "echo all is well"), OUTCOME_TASK,
                     "the verifier left no reward: there is neither reward.json nor reward.txt in /logs/verifier; "
                     "it exited with 0: all is well");
}

FIBER_TEST(a_file_that_holds_no_reward_is_none)
{
    expect_no_reward(TASK("true", ": > /logs/verifier/reward.txt"), OUTCOME_TASK,
                     "the verifier left no reward: reward.txt: it is empty");
    expect_no_reward(TASK("true", "echo nan > /logs/verifier/reward.txt"), OUTCOME_TASK, "nan is not a finite number");
    expect_no_reward(TASK("true", "echo '{}' > /logs/verifier/reward.json"), OUTCOME_TASK, "its object is empty");
    expect_no_reward(TASK("true", "mkdir /logs/verifier/reward.txt"), OUTCOME_TASK, "it is not a plain file");
    expect_no_reward(TASK("true", "mkfifo /logs/verifier/reward.txt"), OUTCOME_TASK, "neither a file nor a directory");
    expect_no_reward(TASK("true", "truncate -s 4G /logs/verifier/reward.json"), OUTCOME_TASK,
                     "longer than 65536 bytes");
}

FIBER_TEST(its_rewards_are_not_clamped_and_json_comes_before_txt)
{
    struct job eval = run_task(TASK("true", "echo '{\\\"reward\\\": -3.5, \\\"speed\\\": 40}' > "
                                            "/logs/verifier/reward.json; echo 1 > /logs/verifier/reward.txt"));
    expect(&eval, OUTCOME_OK, "reward.json says -3.5");
    assert_true(eval.result.verdict.reward == -3.5);
    assert_int_equal(eval.result.verdict.part_count, 2);
    assert_true(eval.result.verdict.parts[1].value == 40 && eval.result.verdict.parts[1].weight == 0);
    end_job(&eval);
    expect_reward(TASK("true", "echo 7 > /logs/verifier/reward.txt"), 7, "reward.txt says 7");
    expect_no_reward(TASK("true", "echo bad > /logs/verifier/reward.json; echo 1 > /logs/verifier/reward.txt"),
                     OUTCOME_TASK, "the verifier left no reward: reward.json");
}

FIBER_TEST(a_verifier_that_does_not_end_gives_no_reward)
{
    expect_no_reward(
        WITH("\"limits\":{\"eval_s\":1},", "true", "echo 1 > /logs/verifier/reward.txt; echo on; sleep 100"),
        OUTCOME_TASK, "the verifier was stopped after");
}

FIBER_TEST(an_agent_whose_time_was_up_is_verified_all_the_same)
{
    expect_reward(
        WITH("\"limits\":{\"run_s\":1},", "echo kept > f; sleep 100", "grep -c kept f > /logs/verifier/reward.txt"), 1,
        "reward.txt says 1");
}

FIBER_TEST(the_end_of_its_output_and_a_report_of_tests_are_kept)
{
    struct job eval = run_task(
        TASK("true", "seq 10000; echo 'the last line' >&2; echo 1 > /logs/verifier/reward.txt; "
                     "echo '{\\\"results\\\": {\\\"tests\\\": [{\\\"name\\\": \\\"t1\\\", \\\"status\\\": "
                     "\\\"failed\\\"}]}}' > /logs/verifier/ctrf.json"));
    expect(&eval, OUTCOME_OK, "\n10000\nthe last line");
    assert_null(strstr(eval.result.detail, "\n1000\n"));
    assert_int_equal(eval.result.verdict.tests->failed, 1);
    assert_string_equal(eval.result.verdict.tests->list[0].name, "t1");
    end_job(&eval);
    expect_reward(TASK("true", "echo 1 > /logs/verifier/reward.txt; echo x > /logs/verifier/ctrf.json"), 1,
                  "ctrf.json is not read: ");
}

FIBER_TEST(its_directories_are_there_and_writable_from_the_start)
{
    expect_reward(WITH("\"setup\":[\"echo set > /logs/agent/up\"],",
                       "cat /logs/agent/up; ls /logs; for d in agent verifier artifacts; do echo x > /logs/$d/mine; "
                       "done; mkdir /tests /solution /new; echo y > /tests/own",
                       "cat /logs/artifacts/mine; ls -A /logs/verifier; echo 1 > /logs/verifier/reward.txt"),
                  1, ": x\ntest-stdout.txt\n");
    assert_string_equal(agent_output, "set\nagent\nartifacts\nverifier\n");
}

FIBER_TEST(another_directory_and_command_may_be_named)
{
    expect_reward("{\"task\":\"t\",\"prompt\":\"mkdir -p '/var/a b/it is'; echo 0 > '/var/a b/it is/reward.txt'\","
                  "\"eval\":{\"kind\":\"verifier\",\"reward_dir\":\"/var/a b/it is\",\"command\":\"echo more # all\","
                  "\"files\":{\"/var/a b/it is/reward.txt\":\"0.75\"}}}",
                  0.75, "reward.txt says 0.75; it exited with 0: more");
    expect_no_reward("{\"task\":\"t\",\"prompt\":\"true\",\"eval\":{\"kind\":\"verifier\"}}", OUTCOME_TASK,
                     "there is neither reward.json nor reward.txt in /logs/verifier; it exited with 127: /bin/bash: "
                     "line 1: /tests/test.sh: No such file or directory");
    expect_no_reward(TASK("true", "cd /logs/verifier; echo 1 > one; ln -s one reward.txt"), OUTCOME_TASK,
                     "reward.txt: it is a symbolic link, and has to be a plain file; it exited with 0");
    expect_no_reward(TASK("true", "echo '{\\\"a\\\": NaN}' > /logs/verifier/reward.json"), OUTCOME_TASK,
                     "reward.json: the JSON is broken at byte 6; it exited with 0");
}

FIBER_TEST(on_an_image_of_its_own_it_is_the_same_for_root_and_for_others)
{
    static const char *const users[] = {"", "\"user\":\"root\",", "\"user\":\"1234:99\",\"workdir\":\"/app\","};
    make_plain_image("own");
    for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++) {
        char json[2048];
        snprintf(json, sizeof(json),
                 "{\"task\":\"t\",\"image\":\"%s/own\",%s\"prompt\":\"echo x > /logs/agent/x; echo 1 > "
                 "/logs/verifier/reward.txt; mkdir -p /opt/x; cat /tests/test.sh\",\"eval\":{\"kind\":\"verifier\","
                 "\"files\":{\"/tests/test.sh\":\"#!/bin/bash\\n/tests/more\\n\",\"/tests/more\":\"\"}}}",
                 directory, users[i]);
        expect_no_reward(json, OUTCOME_TASK, "/tests/more: Permission denied");
        assert_non_null(strstr(agent_output, "No such file"));
        snprintf(json, sizeof(json),
                 "{\"task\":\"t\",\"image\":\"%s/own\",%s\"prompt\":\"echo x > /logs/agent/x\",\"eval\":{\"kind\":"
                 "\"verifier\",\"files\":{\"/tests/test.sh\":\"#!/bin/bash\\ncat /logs/agent/x; echo 1 > "
                 "/logs/verifier/reward.txt\"}}}",
                 directory, users[i]);
        expect_reward(json, 1, "it exited with 0: x");
    }
}

/* Each leaves "1" where a careless runner would take it for the reward, or cannot write the verifier's. */
static const struct {
    const char *name, *prompt;
} ways[] = {
    {"a reward file", "echo 1 > /logs/verifier/reward.txt"},
    {"reward.json where the verifier writes reward.txt", "echo '{\\\"reward\\\": 1}' > /logs/verifier/reward.json"},
    {"a link to a file of its own", "echo 1 > /tmp/r; ln -s /tmp/r /logs/verifier/reward.txt"},
    {"a link for the whole directory", "mkdir /tmp/d; echo '{\\\"reward\\\": 1}' > /tmp/d/reward.json; rm -r "
                                       "/logs/verifier; ln -s /tmp/d /logs/verifier"},
    {"a link that leads nowhere", "rm -r /logs; ln -s /nowhere /logs"},
    {"a link into /proc", "rm -r /logs; ln -s /proc /logs"},
    {"a FIFO", "mkfifo /logs/verifier/reward.txt /logs/verifier/reward.json"},
    {"a FIFO for the directory", "rm -r /logs/verifier; mkfifo /logs/verifier"},
    {"a directory",
     "mkdir -p /logs/verifier/reward.json/x /logs/verifier/reward.txt/x /logs/verifier/test-stdout.txt/x"},
    {"a file for the directory", "rm -r /logs; echo 1 > /logs"},
    {"a file of 1 GiB", "truncate -s 1G /logs/verifier/reward.json"},
    {"what cannot be written",
     "echo '{\\\"reward\\\": 1}' > /logs/verifier/reward.json; chmod 444 /logs/verifier/reward.json; "
     "chmod 555 /logs/verifier /logs; chmod 0 /logs/verifier"},
    {"a process that goes on writing", "(setsid bash -c 'while :; do echo 1 > /logs/verifier/reward.txt; done' "
                                       "> /dev/null 2>&1 &); sleep 0.1"},
};

FIBER_TEST(nothing_that_the_agent_left_where_rewards_are_counts)
{
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        char json[2048];
        snprintf(json, sizeof(json),
                 "{\"task\":\"t\",\"prompt\":\"%s\",\"eval\":{\"kind\":\"verifier\",\"files\":{\"/tests/test.sh\":"
                 "\"#!/bin/bash\\nls -A /logs/verifier; sleep 0.1; echo 0.25 > /logs/verifier/reward.txt\"}}}",
                 ways[i].prompt);
        struct job eval = run_task(json);
        if (eval.result.outcome != OUTCOME_OK || eval.result.verdict.reward != 0.25)
            fail_msg("%s: %s", ways[i].name, eval.result.detail);
        expect(&eval, OUTCOME_OK, ": test-stdout.txt\n");
        end_job(&eval);
    }
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_kinds, tear_down_kinds)
    const struct CMUnitTest tests[] = {
        TEST(its_exit_status_decides_nothing),
        TEST(a_file_that_holds_no_reward_is_none),
        TEST(its_rewards_are_not_clamped_and_json_comes_before_txt),
        TEST(a_verifier_that_does_not_end_gives_no_reward),
        TEST(an_agent_whose_time_was_up_is_verified_all_the_same),
        TEST(the_end_of_its_output_and_a_report_of_tests_are_kept),
        TEST(its_directories_are_there_and_writable_from_the_start),
        TEST(another_directory_and_command_may_be_named),
        TEST(on_an_image_of_its_own_it_is_the_same_for_root_and_for_others),
        TEST(nothing_that_the_agent_left_where_rewards_are_counts),
    };
    int failed = cmocka_run_group_tests_name("a verifier in a fresh sandbox", tests, NULL, NULL);
    free(agent_output);
    agent_output = NULL;
    return failed;
}

int main(void) { return run_as_everyone(group); }
