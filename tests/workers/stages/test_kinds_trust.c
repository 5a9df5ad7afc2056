/* What an evaluator has of the agent: its files, where nothing of the task's own lies, and no more. */
#include "tests/workers/stages/kinds_world.h"

#define EVAL(command, files) "\"eval\":{\"kind\":\"command\",\"command\":\"" command "\",\"files\":{" files "}}}"

/* An image of the task's own, a directory, with bash, coreutils' usual and what they are linked to. */
static void make_plain_image(char *ret, size_t size)
{
    char script[1024];
    snprintf(ret, size, "%s/image", directory);
    snprintf(script, sizeof(script),
             "mkdir -p %s/usr/bin && cd %s && ln -s usr/bin bin && "
             "for p in bash cat chmod ls mv ln rm mkdir cp true; do cp -L --parents /usr/bin/$p . && "
             "for file in $(ldd /usr/bin/$p | grep -o '/[^ ]*\\.so[^ ]*'); do cp -L --parents $file .; "
             "done; done",
             ret, ret);
    assert_int_equal(system(script), 0);
}

FIBER_TEST(no_process_descriptor_or_variable_of_the_agent_reaches_the_evaluator)
{
    struct job eval = run_task(
        "{\"task\":\"t\",\"prompt\":\"export PATH=/workspace:$PATH BASH_ENV=/workspace/e "
        "LD_PRELOAD=/workspace/x.so; echo 'echo taken' > e;"
        " cp e .bashrc; cp e .profile; cp e .bash_profile; (setsid sleep 1000 &); exec "
        "77>/tmp/left; sleep 0.01\"," EVAL("env | sort; echo /proc/self/fd/*; ls -d /proc/[0-9]* | wc -l", ""));
    expect(&eval, OUTCOME_OK,
           "HOME=/workspace\nLANG=C.UTF-8\n"
           "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nPWD=/"
           "workspace\nSHLVL=1\nSLUICE_WORKSPACE=/workspace\nTERM=dumb\n_=/usr/bin/env\n"
           "/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 /proc/self/fd/3\n4\n");
    end_job(&eval);
}

/* What the agent left in the way: links out, links between, hidden and locked directories. */
FIBER_TEST(nothing_that_the_agent_left_covers_a_file_of_the_evaluators)
{
    static const char *const tricks[] = {
        "ln -s /etc tests",
        "ln -s ../../../../tmp tests",
        "mkdir -p tests/check",
        "mkdir tests; mkfifo tests/check",
        "mkdir tests; echo exit 0 > tests/check; chmod 0 tests/check tests",
        "mkdir -p a/tests; echo exit 0 > a/tests/check; ln -s a/tests tests",
        "mkdir tests; echo exit 0 > tests/check; ln tests/check hard; chmod 444 tests/check; chmod "
        "555 tests",
        "echo exit 0 > check; mkdir tests; ln check tests/check",
        "rm -rf tests; echo > tests",
        "cd /; rm -rf /workspace/*; mkdir /workspace/tests; ln -s /dev/full "
        "/workspace/tests/check"};
    for (size_t i = 0; i < sizeof(tricks) / sizeof(tricks[0]); i++) {
        char json[1024];
        snprintf(json, sizeof(json),
                 "{\"task\":\"t\",\"prompt\":\"%s\",\"files\":{\"tests/check\":\"exit 0\"}," EVAL(
                     "cat tests/check; bash tests/check", "\"tests/check\":\"exit 1 # mine\""),
                 tricks[i]);
        expect_reward(json, 0.0, "exited with 1: exit 1 # mine");
    }
}

/* Programs of the host's cannot be replaced; nor can anything else be put in their way. */
FIBER_TEST(on_the_hosts_image_the_evaluators_programs_are_the_hosts)
{
    expect_reward("{\"task\":\"t\",\"prompt\":\"for d in /usr/local/sbin /usr/local/bin /usr/bin /bin; do "
                  "printf 'exit 0' > $d/false; done;"
                  " rm -f /bin/bash /usr/bin/bash; ln -s /bin/true /bin/false; echo /x > /etc/ld.so.preload; "
                  "echo ok\"," EVAL("type -P false; ls /etc/ld.so.preload /usr/local/bin/false; false", ""),
                  0.0, "exited with 1");
    assert_non_null(strstr(agent_output, "ok"));
}

/* The links at the top of the host's root (/bin, /lib64 ...) lie in no directory of the host's:
 * they hold all the same. */
FIBER_TEST(no_name_at_the_top_of_the_hosts_image_can_be_replaced_or_removed)
{
    static const char *const tricks[] = {
        "rm /bin; mkdir /bin; cp /usr/bin/true /bin/bash",
        "mv /bin /gone; ln -s /workspace /bin; cp /usr/bin/true bash",
        "for n in bin sbin lib lib32 lib64 libx32 usr etc opt; do rm -f /$n; rmdir /$n; mv /$n "
        "/gone-$n; done",
        "ln -s /workspace /new; mv -T /new /bin; cp /usr/bin/true bash",
        "rm /lib64; mkdir /lib64; cp /usr/bin/true /lib64/ld-linux-x86-64.so.2; rm /lib; mkdir "
        "/lib",
        "ln -sfn /workspace /bin; ln -sfn /workspace /lib64; cp /usr/bin/true bash"};
    for (size_t i = 0; i < sizeof(tricks) / sizeof(tricks[0]); i++) {
        char json[1024];
        snprintf(json, sizeof(json), "{\"task\":\"t\",\"prompt\":\"%s\"," EVAL("echo judged; exit 1", ""), tricks[i]);
        expect_reward(json, 0.0, "exited with 1: judged");
    }
}

/* What a layer says of them decides nothing either: one may come from elsewhere, and have been made otherwise. */
FIBER_TEST(what_a_layer_says_of_the_hosts_names_is_not_seen)
{
    char image[160], with_image[1024];
    make_plain_image(image, sizeof(image));
    snprintf(with_image, sizeof(with_image),
             "{\"task\":\"t\",\"image\":\"%s\",\"prompt\":\"cd /; mkdir lib32 sbin new; echo > "
             "lib32/own; echo > sbin/own; rm -r etc;"
             " mkdir etc; echo > etc/own; cp usr/bin/true new/bash; rm bin; PATH=/usr/bin; mv new "
             "bin; rm -rf lib64; echo > lib64; echo done\"}",
             image);
    struct job run = run_stage(STAGE_RUN, with_image, NULL, NULL, NULL);
    expect(&run, OUTCOME_OK, "ended by itself");
    assert_string_equal(agent_output, "done\n");
    struct job eval = run_stage(
        STAGE_EVAL,
        "{\"task\":\"t\",\"prompt\":\"p\"," EVAL(
            "ls -d /etc/own /sbin/own /lib32/own 2>/dev/null; readlink /bin; type -P bash; exit 1", ""),
        NULL, &run.result.layer, NULL);
    char link[64] = "", expected[128];
    if (readlink("/bin", link, sizeof(link) - 1) > 0)
        strcat(link, "\n");
    snprintf(expected, sizeof(expected), "exited with 1: %s/usr/bin/bash\n", link);
    expect(&eval, OUTCOME_OK, expected);
    assert_true(eval.result.verdict.has_reward && eval.result.verdict.reward == 0);
    end_job(&run);
    end_job(&eval);
}

/* Nor can what a grader runs of the agent's take the next of the grader's programs from under it. */
FIBER_TEST(the_hosts_names_hold_while_the_evaluator_runs_the_agents_code)
{
    expect_reward("{\"task\":\"t\",\"prompt\":\"echo 'rm /bin /lib64; mkdir /bin /lib64; cp /usr/bin/true "
                  "/bin/bash' > code\"," EVAL("bash code; /bin/bash -c 'echo judged; exit 1'", ""),
                  0.0, "judged");
}

/* An image of the task's own is the agent's to write: what must hold, the evaluator brings. */
FIBER_TEST(on_an_image_of_its_own_the_evaluator_brings_what_it_trusts)
{
    char script[1024], json[2048];
    snprintf(script, sizeof(script),
             "cd %s && mkdir -p image/usr/bin && cd image && ln -s usr/bin bin && cp -L --parents "
             "/usr/bin/bash /usr/bin/cat . && "
             "for file in $(ldd /usr/bin/bash /usr/bin/cat | grep -o '/[^ ]*\\.so[^ ]*'); do cp -L "
             "--parents $file .; done && "
             "printf '#!/bin/bash\\nexit 1\\n' > usr/bin/check && chmod 755 usr/bin/check",
             directory);
    assert_int_equal(system(script), 0);
#define TAKE_OVER                                                                                                      \
    "{\"task\":\"t\",\"image\":\"%s/image\",\"prompt\":\"printf '#!/bin/bash\\nexit 0\\n' > "                          \
    "/usr/bin/check\","
    snprintf(json, sizeof(json), TAKE_OVER EVAL("check", ""), directory);
    expect_reward(json, 1.0, "exited with 0");
    snprintf(json, sizeof(json),
             TAKE_OVER "\"eval\":{\"kind\":\"command\",\"command\":\"check\",\"files\":[{\"path\":"
                       "\"/usr/bin/check\","
                       "\"text\":\"#!/bin/bash\\nexit 1\\n\",\"mode\":\"0755\"}]}}",
             directory);
    expect_reward(json, 0.0, "exited with 1");
}

#define TRUST_IMAGE(command) "\"eval\":{\"kind\":\"command\",\"trust\":\"image\",\"command\":\"" command "\"}}"

/* With eval.trust the image's own programs judge, as set-up left them. */
FIBER_TEST(an_evaluator_that_trusts_the_image_has_its_programs_whatever_the_agent_did_to_them)
{
    static const char *const tricks[] = {
        "printf '#!/bin/bash\\nexit 0\\n' > /usr/bin/check",
        "cd /usr/bin; cp true bash2; mv bash2 bash",
        "cp /usr/bin/true /tmp/bash; PATH=/usr/bin; cd /; rm bin; mkdir bin; cp tmp/bash bin",
        "cd /; ln usr/bin/true workspace/twin; rm -rf lib64 etc usr",
        "cd /; mkdir lib32 opt/x; mv usr gone; ln -s gone usr",
        "mkdir -p /etc; echo /workspace/x.so > /etc/ld.so.preload; rm -rf /usr/bin; ln -s "
        "/workspace /usr/bin"};
    char image[160], json[2048];
    make_plain_image(image, sizeof(image));
    write_host_file(image, "usr/bin/check", "#!/bin/bash\nexit 0\n", 0755);
    for (size_t i = 0; i < sizeof(tricks) / sizeof(tricks[0]); i++) {
        snprintf(json, sizeof(json),
                 "{\"task\":\"t\",\"image\":\"%s\",\"setup\":[\"printf '#!/bin/bash\\nls "
                 "/etc/ld.so.preload; echo judged; exit 1\\n' > /usr/bin/check\"],"
                 "\"prompt\":\"%s\"," TRUST_IMAGE("check 2>/dev/null"),
                 image, tricks[i]);
        expect_reward(json, 0.0, "exited with 1: judged");
    }
}

/* The rest is what the agent left, and what runs in the evaluator's sandbox cannot change the image's there either. */
FIBER_TEST(an_evaluator_that_trusts_the_image_has_the_agents_other_files_and_cannot_lose_its_own)
{
    char image[160], json[1024];
    make_plain_image(image, sizeof(image));
    snprintf(json, sizeof(json),
             "{\"task\":\"t\",\"image\":\"%s\",\"prompt\":\"echo made > work; mkdir -p /var/x "
             "/usr/x; echo kept > /var/x/f\"," TRUST_IMAGE(
                 "cat work /var/x/f; rm -rf /bin /usr /lib64 2>/dev/null; mv /bin /gone "
                 "2>/dev/null; [ -e /usr/x ] || echo dropped; exit 1"),
             image);
    expect_reward(json, 0.0, "made\nkept\ndropped\n");
}

/* "KIND PATH" of each, in the order in which they were packed, and how many there are in all. */
static void take_tamper(const char *json, char *ret, size_t size, uint64_t *ret_count)
{
    struct record record;
    struct refusal no = {0};
    struct job run = run_stage(STAGE_RUN, json, NULL, NULL, NULL);
    expect(&run, OUTCOME_OK, "");
    if (!record_decode(buffer_peek(&run.result.record), &record, &no))
        fail_msg("%s", no.text);
    size_t len = 0;
    ret[0] = '\0';
    *ret_count = record.tamper ? record.tamper->count : 0;
    for (size_t i = 0; record.tamper && i < record.tamper->file_count; i++)
        len += (size_t)snprintf(ret + len, size - len, "%s %s\n", record.tamper->files[i].what,
                                record.tamper->files[i].path);
    record_finish(&record);
    end_job(&run);
}

FIBER_TEST(a_trajectory_says_which_files_that_decide_what_runs_the_agent_touched)
{
    char image[160], json[1024], seen[8192];
    uint64_t count;
    static const struct {
        const char *command, *expected;
    } rows[] = {
        {"echo a > a; mkdir -p lib/python3 .cache; echo > .cache/x; echo > /tmp/bash; mkdir -p "
         "/var/x; echo > /var/x/ld-y; cat /usr/bin/cat > /dev/null",
         ""},
        {"printf x > /usr/bin/cat", "program usr/bin/cat\n"},
        {"PATH=/usr/bin; cd /; rm bin; echo > usr/bin/python3.11; mkdir -p etc; echo > "
         "etc/ld.so.preload; echo > etc/x",
         "program bin\nloader etc/ld.so.preload\nsetting etc/x\ninterpreter usr/bin/python3.11\n"},
        {"mkdir -p .local/lib/python3.11/site-packages; echo > "
         ".local/lib/python3.11/site-packages/usercustomize.py; echo > .gitconfig",
         "setting workspace/.gitconfig\nimport "
         "workspace/.local/lib/python3.11/site-packages/usercustomize.py\n"},
        {"cd /; mkdir new; cp usr/bin/bash usr/bin/mv new; rm -rf usr/bin; new/mv new usr/bin",
         "program usr/bin\nshell usr/bin/bash\nprogram usr/bin/mv\n"},
        {"cd /usr/bin; mv bash b; mv b bash; rm -f mkdir; ln -s /tmp/x dash; chmod 0 /usr/bin",
         "program usr/bin\nshell usr/bin/bash\nshell usr/bin/dash\nprogram usr/bin/mkdir\n"},
    };
    make_plain_image(image, sizeof(image));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(json, sizeof(json), "{\"task\":\"t\",\"image\":\"%s\",\"prompt\":\"%s\"}", image, rows[i].command);
        take_tamper(json, seen, sizeof(seen), &count);
        assert_string_equal(seen, rows[i].expected);
    }
    snprintf(json, sizeof(json),
             "{\"task\":\"t\",\"image\":\"%s\",\"prompt\":\"cd /usr; mkdir -p lib/python3; "
             "for i in {1..300}; do echo > bin/a$i; echo > lib/python3/$i; done; echo > bin/sh\"}",
             image);
    take_tamper(json, seen, sizeof(seen), &count); /* many of one kind hide none of another */
    assert_int_equal(count, 601);
    assert_non_null(strstr(seen, "shell usr/bin/sh\n"));
    assert_non_null(strstr(seen, "import usr/lib/python3/"));
    take_tamper("{\"task\":\"t\",\"prompt\":\"echo a > a; rm /bin; echo > /var/x\"}", seen, sizeof(seen), &count);
    assert_int_equal(count, 0); /* of the host nothing can be touched */
}

/* The directories that every sandbox needs: /run cannot be moved away, and in place of /workspace the
 * evaluator's files lie all the same. */
FIBER_TEST(no_link_that_the_agent_left_keeps_the_evaluators_container_shut)
{
    char script[1024], json[1024];
    snprintf(script, sizeof(script),
             "cd %s && mkdir -p image/usr/bin && cd image && ln -s usr/bin bin && "
             "cp -L --parents /usr/bin/bash /usr/bin/cat /usr/bin/mv /usr/bin/ln /usr/bin/rm . && "
             "for file in $(ldd /usr/bin/bash /usr/bin/cat /usr/bin/mv | grep -o '/[^ ]*\\.so[^ "
             "]*'); do cp -L --parents $file .; done",
             directory);
    assert_int_equal(system(script), 0);
    static const char *const left[] = {"/proc", "/dev", "/proc/self/root", "/nowhere"};
    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
        snprintf(
            json, sizeof(json),
            "{\"task\":\"t\",\"image\":\"%s/image\",\"prompt\":\"cd /; mv run gone; ln -s %s "
            "run; rm -rf workspace; ln -s %s workspace\"," EVAL("cat tests/check; exit 1", "\"tests/check\":\"mine\""),
            directory, left[i], left[i]);
        expect_reward(json, 0.0, "exited with 1: mine");
        assert_non_null(strstr(agent_output, "mv: cannot remove 'run/sluice/out'"));
    }
}

/* Pipes, sockets and devices are not carried over, so that reading them waits for nobody;
 * size is the task's to limit. */
FIBER_TEST(what_the_agent_left_holds_no_evaluator_up)
{
    expect_reward("{\"task\":\"t\",\"prompt\":\"mkfifo pipe result.txt; python3 -c 'import socket; "
                  "socket.socket(socket.AF_UNIX).bind(\\\"sock\\\")';"
                  " ln -s /dev/stdin in; echo kept > kept\"," EVAL("ls; cat pipe result.txt in; cat kept; exit 1", ""),
                  0.0, "kept\n");
    expect_no_reward("{\"task\":\"t\",\"prompt\":\"truncate -s 4G huge\",\"limits\":{\"command_s\":1}," EVAL(
                         "while :; do cat huge; done | cat > /dev/null", ""),
                     OUTCOME_TASK, "the evaluator is broken");
}

/* Why a grader is told to call python3 -I: the other runs what lies in its directory and its home. */
FIBER_TEST(an_isolated_python_runs_nothing_that_the_agent_left)
{
#define LEAVE                                                                                                          \
    "{\"task\":\"t\",\"prompt\":\"d=$(python3 -m site --user-site); mkdir -p $d; echo 'import "                        \
    "os; os._exit(0)' |"                                                                                               \
    " tee json.py sitecustomize.py $d/usercustomize.py > $d/sitecustomize.py; echo 'import os; "                       \
    "os._exit(0)' > $d/a.pth\","
    expect_reward(LEAVE EVAL("python3 -I -c 'import json, sys; sys.exit(1)'", ""), 0.0, "exited with 1");
    expect_reward(LEAVE EVAL("python3 -c 'import json, sys; sys.exit(1)'", ""), 1.0, "exited with 0");
}

FIBER_TEST(what_an_evaluator_prints_steers_no_terminal)
{
    expect_reward("{\"task\":\"t\",\"prompt\":\"true\"," EVAL(
                      "printf 'a\\\\033]52;c;eA==\\\\007\\\\233b\\\\342\\\\200\\\\256\\\\nc'; exit 1", ""),
                  0.0, "exited with 1: a?]52;c;eA==??b?\nc");
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_kinds, tear_down_kinds)
    const struct CMUnitTest tests[] = {
        TEST(no_process_descriptor_or_variable_of_the_agent_reaches_the_evaluator),
        TEST(nothing_that_the_agent_left_covers_a_file_of_the_evaluators),
        TEST(on_the_hosts_image_the_evaluators_programs_are_the_hosts),
        TEST(no_name_at_the_top_of_the_hosts_image_can_be_replaced_or_removed),
        TEST(what_a_layer_says_of_the_hosts_names_is_not_seen),
        TEST(the_hosts_names_hold_while_the_evaluator_runs_the_agents_code),
        TEST(on_an_image_of_its_own_the_evaluator_brings_what_it_trusts),
        TEST(an_evaluator_that_trusts_the_image_has_its_programs_whatever_the_agent_did_to_them),
        TEST(an_evaluator_that_trusts_the_image_has_the_agents_other_files_and_cannot_lose_its_own),
        TEST(a_trajectory_says_which_files_that_decide_what_runs_the_agent_touched),
        TEST(no_link_that_the_agent_left_keeps_the_evaluators_container_shut),
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
