/* What an evaluator has of the agent: its files, where nothing of the task's own lies, and no more. */
#include "tests/workers/kinds_world.h"

#define EVAL(command, files)                                                                       \
    "\"eval\":{\"kind\":\"command\",\"command\":\"" command "\",\"files\":{" files "}}}"

FIBER_TEST(no_process_descriptor_or_variable_of_the_agent_reaches_the_evaluator)
{
    struct job eval = run_task(
        "{\"task\":\"t\",\"prompt\":\"export PATH=/workspace:$PATH BASH_ENV=/workspace/e LD_PRELOAD=/workspace/x.so; echo 'echo taken' > e;"
        " cp e .bashrc; cp e .profile; cp e .bash_profile; (setsid sleep 1000 &); exec 77>/tmp/left; sleep 0.01\","
        EVAL("env | sort; echo /proc/self/fd/*; ls -d /proc/[0-9]* | wc -l", ""));
    expect(&eval, OUTCOME_OK,
           "HOME=/workspace\nLANG=C.UTF-8\n"
           "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nPWD=/workspace\nSHLVL=1\nSLUICE_WORKSPACE=/workspace\nTERM=dumb\n_=/usr/bin/env\n"
           "/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 /proc/self/fd/3\n4\n");
    end_job(&eval);
}

/* What the agent left in the way: links out, links between, hidden and locked directories. */
FIBER_TEST(nothing_that_the_agent_left_covers_a_file_of_the_evaluators)
{
    static const char *const tricks[] = {
        "ln -s /etc tests", "ln -s ../../../../tmp tests", "mkdir -p tests/check", "mkdir tests; mkfifo tests/check",
        "mkdir tests; echo exit 0 > tests/check; chmod 0 tests/check tests",
        "mkdir -p a/tests; echo exit 0 > a/tests/check; ln -s a/tests tests",
        "mkdir tests; echo exit 0 > tests/check; ln tests/check hard; chmod 444 tests/check; chmod 555 tests",
        "echo exit 0 > check; mkdir tests; ln check tests/check", "rm -rf tests; echo > tests",
        "cd /; rm -rf /workspace/*; mkdir /workspace/tests; ln -s /dev/full /workspace/tests/check"};
    for (size_t i = 0; i < sizeof(tricks) / sizeof(tricks[0]); i++) {
        char json[1024];
        snprintf(json, sizeof(json),
                 "{\"task\":\"t\",\"prompt\":\"%s\",\"files\":{\"tests/check\":\"exit 0\"},"
                 EVAL("cat tests/check; bash tests/check", "\"tests/check\":\"exit 1 # mine\""),
                 tricks[i]);
        expect_reward(json, 0.0, "exited with 1: exit 1 # mine");
    }
}

/* Programs of the host's cannot be replaced; nor can anything else be put in their way. */
FIBER_TEST(on_the_hosts_image_the_evaluators_programs_are_the_hosts)
{
    expect_reward("{\"task\":\"t\",\"prompt\":\"for d in /usr/local/sbin /usr/local/bin /usr/bin /bin; do printf 'exit 0' > $d/false; done;"
                  " rm -f /bin/bash /usr/bin/bash; ln -s /bin/true /bin/false; echo /x > /etc/ld.so.preload; echo ok\","
                  EVAL("type -P false; ls /etc/ld.so.preload /usr/local/bin/false; false", ""),
                  0.0, "exited with 1");
    assert_non_null(strstr(agent_output, "ok"));
}

/* An image of the task's own is the agent's to write: what must hold, the evaluator brings. */
FIBER_TEST(on_an_image_of_its_own_the_evaluator_brings_what_it_trusts)
{
    char script[1024], json[2048];
    snprintf(script, sizeof(script),
             "cd %s && mkdir -p image/usr/bin && cd image && ln -s usr/bin bin && cp -L --parents /usr/bin/bash /usr/bin/cat . && "
             "for file in $(ldd /usr/bin/bash /usr/bin/cat | grep -o '/[^ ]*\\.so[^ ]*'); do cp -L --parents $file .; done && "
             "printf '#!/bin/bash\\nexit 1\\n' > usr/bin/check && chmod 755 usr/bin/check",
             directory);
    assert_int_equal(system(script), 0);
#define TAKE_OVER                                                                                  \
    "{\"task\":\"t\",\"image\":\"%s/image\",\"prompt\":\"printf '#!/bin/bash\\nexit 0\\n' > /usr/bin/check\","
    snprintf(json, sizeof(json), TAKE_OVER EVAL("check", ""), directory);
    expect_reward(json, 1.0, "exited with 0");
    snprintf(json, sizeof(json),
             TAKE_OVER "\"eval\":{\"kind\":\"command\",\"command\":\"check\",\"files\":[{\"path\":\"/usr/bin/check\","
                       "\"text\":\"#!/bin/bash\\nexit 1\\n\",\"mode\":\"0755\"}]}}",
             directory);
    expect_reward(json, 0.0, "exited with 1");
}

/* The directories that every sandbox needs: /run cannot be moved away, and in place of /workspace the
 * evaluator's files lie all the same. */
FIBER_TEST(no_link_that_the_agent_left_keeps_the_evaluators_room_shut)
{
    char script[1024], json[1024];
    snprintf(script, sizeof(script),
             "cd %s && mkdir -p image/usr/bin && cd image && ln -s usr/bin bin && "
             "cp -L --parents /usr/bin/bash /usr/bin/cat /usr/bin/mv /usr/bin/ln /usr/bin/rm . && "
             "for file in $(ldd /usr/bin/bash /usr/bin/cat /usr/bin/mv | grep -o '/[^ ]*\\.so[^ ]*'); do cp -L --parents $file .; done",
             directory);
    assert_int_equal(system(script), 0);
    static const char *const left[] = {"/proc", "/dev", "/proc/self/root", "/nowhere"};
    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
        snprintf(json, sizeof(json),
                 "{\"task\":\"t\",\"image\":\"%s/image\",\"prompt\":\"cd /; mv run gone; ln -s %s run; rm -rf workspace; ln -s %s workspace\","
                 EVAL("cat tests/check; exit 1", "\"tests/check\":\"mine\""),
                 directory, left[i], left[i]);
        expect_reward(json, 0.0, "exited with 1: mine");
        assert_non_null(strstr(agent_output, "mv: cannot remove 'run/sluice/out'"));
    }
}

/* Pipes, sockets and devices are not carried over, so that reading them waits for nobody; size is the task's to limit. */
FIBER_TEST(what_the_agent_left_holds_no_evaluator_up)
{
    expect_reward("{\"task\":\"t\",\"prompt\":\"mkfifo pipe result.txt; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\\\"sock\\\")';"
                  " ln -s /dev/stdin in; echo kept > kept\","
                  EVAL("ls; cat pipe result.txt in; cat kept; exit 1", ""), 0.0, "kept\n");
    expect_no_reward("{\"task\":\"t\",\"prompt\":\"truncate -s 4G huge\",\"limits\":{\"command_s\":1},"
                     EVAL("while :; do cat huge; done | cat > /dev/null", "") , OUTCOME_TASK, "the evaluator is broken");
}

/* Why a grader is told to call python3 -I: the other runs what lies in its directory and its home. */
FIBER_TEST(an_isolated_python_runs_nothing_that_the_agent_left)
{
#define LEAVE                                                                                      \
    "{\"task\":\"t\",\"prompt\":\"d=$(python3 -m site --user-site); mkdir -p $d; echo 'import os; os._exit(0)' |"      \
    " tee json.py sitecustomize.py $d/usercustomize.py > $d/sitecustomize.py; echo 'import os; os._exit(0)' > $d/a.pth\","
    expect_reward(LEAVE EVAL("python3 -I -c 'import json, sys; sys.exit(1)'", ""), 0.0, "exited with 1");
    expect_reward(LEAVE EVAL("python3 -c 'import json, sys; sys.exit(1)'", ""), 1.0, "exited with 0");
}

FIBER_TEST(what_an_evaluator_prints_steers_no_terminal)
{
    expect_reward("{\"task\":\"t\",\"prompt\":\"true\","
                  EVAL("printf 'a\\\\033]52;c;eA==\\\\007\\\\233b\\\\342\\\\200\\\\256\\\\nc'; exit 1", ""),
                  0.0, "exited with 1: a?]52;c;eA==??b?\nc");
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_kinds, tear_down_kinds)
    const struct CMUnitTest tests[] = {
        TEST(no_process_descriptor_or_variable_of_the_agent_reaches_the_evaluator),
        TEST(nothing_that_the_agent_left_covers_a_file_of_the_evaluators),
        TEST(on_the_hosts_image_the_evaluators_programs_are_the_hosts),
        TEST(on_an_image_of_its_own_the_evaluator_brings_what_it_trusts),
        TEST(no_link_that_the_agent_left_keeps_the_evaluators_room_shut),
        TEST(what_the_agent_left_holds_no_evaluator_up),
        TEST(an_isolated_python_runs_nothing_that_the_agent_left),
        TEST(what_an_evaluator_prints_steers_no_terminal),
    };
    int failed = cmocka_run_group_tests_name("what an evaluator trusts", tests, NULL, NULL);
    free(agent_output);
    agent_output = NULL;
    return failed;
}

int main(void) { return run_as_everyone(group); }
