/* Steps evaluated in sandboxes of their own while the agent's lives on: what each verifier sees of it, and the agent of
 * the evaluation. */
#include "tests/workers/stages/plain_image.h"
#include "tests/workers/stages/steps_world.h"

#define TASK(more, steps) "{\"task\":\"t\"," more EVALUATED("", "") ",\"steps\":[" steps "]}"
#define OWN(fields) ",\"eval\":{" fields "}"
#define SCRIPT(what) "\"files\":{\"/tests/test.sh\":\"#!/bin/bash\\n" what "\\n\"}"

FIBER_TEST(each_verifier_sees_what_the_agent_has_left_so_far)
{
    expect_rewards(TASK("", RIGHT "," WRONG "," NEXT), 2.0 / 3, "is the mean of 3 of 3 steps: a 1, b 0, next 1");
    expect_rewards(TASK("\"steps_reward\":\"final\",", RIGHT "," STEP("b", ": > f", "")), 0, "a 1, b 0");
    expect_rewards(TASK("", STEP("a", "head -c 300000 /dev/urandom > r; sha256sum r > sum; echo right > f",
                                 OWN(SCRIPT("sha256sum -c sum && echo 1 > /logs/verifier/reward.txt")))),
                   1, "a 1");
}

FIBER_TEST(processes_live_on_and_no_verifier_has_them)
{
    static const char serve[] =
        "mkfifo /tmp/ask /tmp/say; (setsid bash -c 'while read q < /tmp/ask; do echo alive > /tmp/say; done' > "
        "/dev/null 2>&1 &); (setsid sleep 4321 > /dev/null 2>&1 &)";
    char json[4096];
    snprintf(json, sizeof(json),
             TASK("", "{\"name\":\"a\",\"prompt\":\"%s\"" OWN(SCRIPT(
                          "! pgrep -fx 'sleep 4321' && echo 1 > "
                          "/logs/verifier/reward.txt")) "}," STEP("b",
                                                                  "echo q > /tmp/ask; cat /tmp/say > f; pgrep -fx "
                                                                  "'sleep 4321' > /dev/null && echo right >> f",
                                                                  OWN(SCRIPT("grep -q alive f; grep -c right f > "
                                                                             "/logs/verifier/reward.txt")))),
             serve);
    expect_rewards(json, 1, "a 1, b 1");
}

/* It would see them, were they there for a moment. */
FIBER_TEST(the_agent_finds_nothing_of_an_evaluation)
{
    static const char watch[] =
        "(setsid bash -c 'while :; do ls /tests/secret /run/sluice/answer && touch ~/found; done' > "
        "/dev/null 2>&1 &); echo right > f";
    static const char look[] =
        "ls ~/found /tests /run/sluice/answer /made /logs/verifier/* > f 2> /dev/null; echo right >> f";
    char json[4096];
    snprintf(json, sizeof(json),
             TASK("", "{\"name\":\"a\",\"prompt\":\"%s\"" OWN(
                          "\"files\":{\"/tests/secret\":\"s\",\"/tests/test.sh\":"
                          "\"sleep 0.3; touch /made; echo 1 > "
                          "/logs/verifier/reward.txt\"}") "},{\"name\":\"b\",\"prompt\":"
                                                          "\"%s\"" OWN(SCRIPT("cat f; [ $(wc -l < f) = 1 ] && echo 1 > "
                                                                              "/logs/verifier/reward.txt")) "}"),
             watch, look);
    expect_rewards(json, 1, "a 1, b 1");
}

FIBER_TEST(what_the_agent_leaves_for_its_verifier_does_not_count)
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

/* The writer's two files agree in what a verifier sees, but for the one write under way: much lies between them. */
FIBER_TEST(what_is_written_meanwhile_is_seen_as_of_one_moment)
{
    static const char writes[] = "head -c 9000000 /dev/urandom > xx; bash -c 'for ((i = 0;; i++)); do echo $i > x; "
                                 "echo $i > y; done' > /dev/null 2>&1 & disown; "
                                 "while [ ! -s y ]; do sleep 0.01; done";
#define AGREE                                                                                                          \
    SCRIPT("x=$(< x); y=$(< y); echo $x $y; : ${x:=$((y + 1))} ${y:=$((x - 1))}; ((x == y || x == y + 1)) && echo "    \
           "$((y + 2)) > "                                                                                             \
           "/logs/verifier/reward.txt")
    char json[4096];
    snprintf(json, sizeof(json),
             TASK("", "{\"name\":\"a\",\"prompt\":\"%s\"" OWN(AGREE) "}," STEP("b", "sleep 0.2", OWN(AGREE))), writes);
    struct job run = run_steps(json, OUTCOME_OK, OUTCOME_OK, "2 of 2 steps");
    const struct verdict *verdict = &run.result.verdict;
    assert_string_equal(verdict->parts[1].name, "step.a");
    if (verdict->parts[2].value <= verdict->parts[1].value)
        fail_msg("it does not go on: %g, then %g", verdict->parts[1].value, verdict->parts[2].value);
    end_job(&run);
}

FIBER_TEST(who_was_stopped_stays_so_and_who_waits_for_children_sees_nothing)
{
    static const char begin[] = "(setsid bash -c 'kill -STOP $BASHPID; touch woken' > /dev/null 2>&1 &); "
                                "(setsid bash -c 'set -m; sleep 1 & wait -f %%1; echo $? > waited; jobs > stopped' > "
                                "/dev/null 2>&1 &); sleep 0.2";
    char json[4096];
    snprintf(json, sizeof(json),
             TASK("", "{\"name\":\"a\",\"prompt\":\"%s; echo right > f\"}," STEP(
                          "b", "for i in {1..100}; do [ -e stopped ] || sleep 0.05; done; true",
                          OWN(SCRIPT("cat waited stopped; [ ! -e woken ] && [ $(< waited) = 0 ] && ! grep -q Stopped "
                                     "stopped && echo 1 > /logs/verifier/reward.txt")))),
             begin);
    expect_rewards(json, 1, "a 1, b 1");
}

FIBER_TEST(a_step_names_artifacts_in_place_of_the_tasks)
{
#define SEES SCRIPT("ls > /tmp/l; tr '\\\\n' ' ' < /tmp/l; echo 1 > /logs/verifier/reward.txt")
    static const char json[] = "{\"task\":\"t\"," EVALUATED("\"artifacts\":[\"f\"],", "") ",\"steps\":[" STEP(
        "a", "echo right > f; echo x > g", "") "," STEP("b", "true", OWN("\"artifacts\":[\"g\"]," SEES)) "]}";
    expect_rewards(json, 1, "it exited with 0: g ");
}

FIBER_TEST(a_step_stands_on_an_image_of_its_own)
{
    char json[4096], path[256];
    make_plain_image("own");
    snprintf(path, sizeof(path), "%s/own/app", directory);
    write_host_file(path, "judges", "j\n", 0644);
    snprintf(json, sizeof(json),
             TASK("", RIGHT "," STEP("b", "echo b > g; rm f",
                                     OWN("\"image\":\"%s/own\",\"artifacts\":[\"/workspace/g\"],\"workdir\":\"/app\","
                                         "\"user\":\"root\"," SCRIPT("ls /workspace /app; id -u; pwd; echo 1 > "
                                                                     "/logs/verifier/reward.txt"))) "," NEXT),
             directory);
    expect_rewards(json, 1, "a 1, b 1, next 1");
    snprintf(json, sizeof(json),
             TASK("", RIGHT "," STEP("b", "echo b > g",
                                     OWN("\"image\":\"%s/own\",\"artifacts\":[\"/workspace/g\"],\"workdir\":\"/app\","
                                         "\"user\":\"root\"," SCRIPT("ls /workspace /app; id -u; pwd; echo 1 > "
                                                                     "/logs/verifier/reward.txt")))),
             directory);
    expect_rewards(json, 1, "it exited with 0: /app:\njudges\n\n/workspace:\ng\n0\n/app\n");
}

FIBER_TEST(some_steps_are_evaluated_there_and_others_apart)
{
    evaluated_in = "agent";
    expect_rewards(
        TASK("", RIGHT
             "," STEP("b",
                      "(setsid sleep 4322 > /dev/null 2>&1 &); until pgrep -fx 'sleep 4322' > /dev/null; do :; done",
                      OWN("\"sandbox\":\"agent\"," SCRIPT(
                          "pgrep -fxc 'sleep 4322' > "
                          "/logs/verifier/reward.txt"))) "," STEP("c",
                                                                  "ls -A /tests /logs/verifier > f 2> "
                                                                  "/dev/null; echo right >> f",
                                                                  "")),
        1, "a 1, b 1, c 1");
    evaluated_in = "";
}

FIBER_TEST(a_step_below_its_least_reward_is_the_last)
{
    expect_rewards(TASK("", STEP("a", "echo wrong > f", ",\"min_reward\":1") "," NEXT), 0,
                   "step a is the last: reward is 0, below its min_reward of 1; 0 is the mean of 1 of 2 steps: a 0");
    expect_rewards(TASK("", STEP("a", "echo right > f", ",\"min_reward\":1") "," WRONG), 0.5, "2 of 2 steps");
}

FIBER_TEST(a_verifier_that_breaks_or_never_ends_is_no_reward_and_ends_it)
{
    struct job run = run_steps(TASK("", STEP("a", "true", OWN(SCRIPT("exit 0"))) "," NEXT), OUTCOME_OK, OUTCOME_TASK,
                               "step a: the verifier left no reward");
    end_job(&run);
    run = run_steps(
        TASK("", RIGHT "," STEP("b", "true", ",\"limits\":{\"eval_s\":1}" OWN(SCRIPT("sleep 100"))) "," NEXT),
        OUTCOME_OK, OUTCOME_TASK, "step b: the verifier was stopped after");
    assert_true(run.result.record.len > 0);
    end_job(&run);
    run = run_steps(
        TASK("\"limits\":{\"memory_mib\":64},",
             STEP("a", "true", OWN(SCRIPT("python3 -c 'import time; x = \\\"x\\\" * (1 << 28); time.sleep(9)'")))),
        OUTCOME_OK, OUTCOME_TASK, "went over its memory limit");
    end_job(&run);
}

FIBER_TEST(what_an_agent_left_that_is_not_known_is_not_scored)
{
    struct job run = run_steps(
        TASK("\"limits\":{\"memory_mib\":64},",
             RIGHT "," STEP("b", "python3 -c 'import time; x = \\\"x\\\" * (1 << 28); time.sleep(9)'", "")),
        OUTCOME_AGENT, OUTCOME_AGENT, "step b: what the agent left is not known");
    end_job(&run);
    run = run_steps(TASK("", STEP("a", "perl -e 'for (1..300) { mkdir q(d); chdir q(d) }'", "") "," NEXT), OUTCOME_OK,
                    OUTCOME_AGENT, "step a: the files cannot be packed: directories more than 256 deep");
    end_job(&run);
}

FIBER_TEST(what_is_collected_is_so_before_the_files_are_taken)
{
    static const char json[] = "{\"task\":\"t\"," EVALUATED(
        "\"artifacts\":[\"all\"],\"collect\":[{\"command\":\"echo >> all\"}],\"command\":\"wc -l "
        "< all > /logs/verifier/reward.txt\",",
        "") ",\"steps\":[" STEP("a", "true", "") "," STEP("b", "true",
                                                          OWN("\"collect\":[{\"command\":\"echo >> all\"}]")) "]}";
    expect_rewards(json, 2, "a 1, b 3");
}

FIBER_TEST(what_the_agent_touched_is_evidence)
{
    struct job run = run_steps(TASK("", STEP("a", "touch .gitconfig; echo right > f", "") "," NEXT), OUTCOME_OK,
                               OUTCOME_OK, "");
    struct record record;
    struct refusal no = {0};
    assert_true(record_decode(buffer_peek(&run.result.record), &record, &no));
    assert_non_null(record.tamper);
    record_finish(&record);
    assert_string_equal(run.result.layer.digest, ""); /* nobody needs it any more */
    end_job(&run);
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_kinds, tear_down_kinds)
    const struct CMUnitTest tests[] = {
        TEST(each_verifier_sees_what_the_agent_has_left_so_far),
        TEST(processes_live_on_and_no_verifier_has_them),
        TEST(the_agent_finds_nothing_of_an_evaluation),
        TEST(what_the_agent_leaves_for_its_verifier_does_not_count),
        TEST(what_is_written_meanwhile_is_seen_as_of_one_moment),
        TEST(who_was_stopped_stays_so_and_who_waits_for_children_sees_nothing),
        TEST(a_step_names_artifacts_in_place_of_the_tasks),
        TEST(a_step_stands_on_an_image_of_its_own),
        TEST(some_steps_are_evaluated_there_and_others_apart),
        TEST(a_step_below_its_least_reward_is_the_last),
        TEST(a_verifier_that_breaks_or_never_ends_is_no_reward_and_ends_it),
        TEST(what_an_agent_left_that_is_not_known_is_not_scored),
        TEST(what_is_collected_is_so_before_the_files_are_taken),
        TEST(what_the_agent_touched_is_evidence),
    };
    int failed = cmocka_run_group_tests_name("steps evaluated apart", tests, NULL, NULL);
    free(agent_output);
    agent_output = NULL;
    return failed;
}

int main(void)
{
    evaluated_in = "";
    run_bash = run_leaving;
    has_steps = true;
    return run_as_everyone(group);
}
