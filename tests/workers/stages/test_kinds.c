/* Kinds of task end to end: init, run and eval in real sandboxes; agents are scripted. */
#include "tests/workers/stages/kinds_world.h"

#include <dirent.h>

/* ---- init
 * ---------------------------------------------------------------------------------------------- */

FIBER_TEST(init_writes_files_runs_set_up_and_leaves_a_layer)
{
    const char *json = "{\"task\":\"t\",\"prompt\":\"true\",\"files\":{\"a/b\":\"in\",\"/tmp/c\":\"abs\"},"
                       "\"setup\":[\"cat a/b /tmp/c > both\",\"test -s both && echo ok > done\"],"
                       "\"eval\":{\"kind\":\"command\",\"command\":\"cat both done | tr -d '\\\\n'; test $(stat "
                       "-c %a a/b) = 644\"}}";
    expect_reward(json, 1.0, "exited with 0: inabsok");
}

FIBER_TEST(init_with_nothing_to_do_leaves_no_layer_but_looks_for_the_image)
{
    expect_init("{\"task\":\"t\",\"prompt\":\"true\"}", OUTCOME_OK, "");
    expect_init("{\"task\":\"t\",\"prompt\":\"true\",\"image\":\"/does/not/exist\"}", OUTCOME_TASK, "/does/not/exist");
    expect_init("{\"task\":\"t\",\"prompt\":\"true\",\"image\":\"/etc/passwd\"}", OUTCOME_TASK, "/etc/passwd");
    expect_init("{\"task\":\"t\",\"prompt\":\"true\",\"image\":\"/does/not/exist\",\"setup\":[\"true\"]}", OUTCOME_TASK,
                "/does/not/exist");
}

FIBER_TEST(a_set_up_that_fails_is_the_tasks_fault_and_says_how)
{
    expect_init("{\"task\":\"t\",\"prompt\":\"true\",\"setup\":[\"true\",\"echo why >&2; exit 7\"]}", OUTCOME_TASK,
                "the set-up command echo why >&2; exit 7 exited with 7: why");
    expect_init("{\"task\":\"t\",\"prompt\":\"true\",\"setup\":[\"kill -9 $$\"]}", OUTCOME_TASK,
                "was killed by signal 9");
    expect_init("{\"task\":\"t\",\"prompt\":\"true\",\"setup\":[\"echo started; sleep "
                "100\"],\"limits\":{\"init_s\":1}}",
                OUTCOME_TASK, "s: started");
    expect_init("{\"task\":\"t\",\"prompt\":\"true\",\"setup\":[\"printf '\\\\377\\\\376bad'; exit 1\"]}", OUTCOME_TASK,
                "??bad");
    expect_init("{\"task\":\"t\",\"prompt\":\"true\",\"setup\":[\"x=x; while :; do x=$x$x; "
                "done\"],\"limits\":{\"memory_mib\":64}}",
                OUTCOME_TASK, "set-up went over its memory limit (limits.memory_mib)");
}

FIBER_TEST(a_file_that_cannot_be_written_is_the_tasks_fault)
{
    expect_init("{\"task\":\"t\",\"prompt\":\"true\",\"files\":{\"/usr/x\":\"\"}}", OUTCOME_TASK, "/usr/x");
    expect_init("{\"task\":\"t\",\"prompt\":\"true\",\"files\":[{\"path\":\"a\",\"text\":\"\"},{"
                "\"path\":\"a/b\",\"text\":\"\"}]}",
                OUTCOME_TASK, "a/b");
}

/* ---- run
 * -------------------------------------------------------------------------------------------------
 */

FIBER_TEST(runs_of_a_group_start_from_the_same_layer_and_not_from_each_other)
{
    const char *json = "{\"task\":\"t\",\"prompt\":\"ls; touch mine-$RANDOM$RANDOM; rm "
                       "given\",\"files\":{\"given\":\"x\"}}";
    struct job init = run_stage(STAGE_INIT, json, NULL, NULL, NULL);
    struct job a = run_stage(STAGE_RUN, json, &init.result.layer, NULL, NULL);
    assert_string_equal(agent_output, "given\n");
    struct job b = run_stage(STAGE_RUN, json, &init.result.layer, NULL, NULL);
    assert_string_equal(agent_output, "given\n");
    expect(&a, OUTCOME_OK, "ended by itself");
    assert_string_not_equal(a.result.layer.digest, b.result.layer.digest);
    assert_string_equal(a.result.answer, "done");
    assert_true(a.result.record.len > 0);
    end_job(&init);
    end_job(&a);
    end_job(&b);
}

FIBER_TEST(an_agent_over_its_memory_ends_as_agent_and_what_it_left_is_not_known)
{
    const char *json = "{\"task\":\"t\",\"prompt\":\"x=x; while :; do x=$x$x; "
                       "done\",\"limits\":{\"memory_mib\":64}}";
    struct job run = run_stage(STAGE_RUN, json, NULL, NULL, NULL);
    expect(&run, OUTCOME_AGENT, "memory limit");
    assert_string_equal(run.result.layer.digest, LAYER_UNKNOWN);
    end_job(&run);
}

FIBER_TEST(an_agent_out_of_time_ends_as_agent_and_what_it_left_is_kept)
{
    const char *json = "{\"task\":\"t\",\"prompt\":\"touch early; sleep 100\",\"limits\":{\"run_s\":1}}";
    struct job run = run_stage(STAGE_RUN, json, NULL, NULL, NULL);
    expect(&run, OUTCOME_AGENT, "");
    assert_string_not_equal(run.result.layer.digest, "");
    assert_true(run.result.record.len > 0);
    end_job(&run);
}

FIBER_TEST(a_tree_too_deep_to_pack_is_the_agents_fault)
{
    const char *json = "{\"task\":\"t\",\"prompt\":\"for i in $(seq 400); do mkdir d; cd d; done\"}";
    struct job run = run_stage(STAGE_RUN, json, NULL, NULL, NULL);
    expect(&run, OUTCOME_AGENT, "cannot be packed");
    end_job(&run);
}

FIBER_TEST(files_without_rights_are_packed_all_the_same)
{
    expect_reward("{\"task\":\"t\",\"prompt\":\"mkdir d; echo a > d/f; chmod 0 d/f d; chmod 0 .\","
                  "\"eval\":{\"kind\":\"command\",\"command\":\"chmod 700 /workspace d; chmod 600 "
                  "d/f; cat d/f\"}}",
                  1.0, "a");
}

FIBER_TEST(a_run_without_its_layer_or_engine_is_infra)
{
    const char *json = "{\"task\":\"t\",\"prompt\":\"true\"}";
    struct layer absent = {.digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"};
    struct job run = run_stage(STAGE_RUN, json, &absent, NULL, NULL);
    expect(&run, OUTCOME_INFRA, "No such file");
    end_job(&run);
    struct layer damaged = absent;
    buffer_append_str(&damaged.inlined, "not this");
    run = run_stage(STAGE_RUN, json, &damaged, NULL, NULL);
    expect(&run, OUTCOME_INFRA, "damaged");
    buffer_finish(&damaged.inlined);
    end_job(&run);
    run = run_stage(STAGE_RUN, "{\"task\":\"t\",\"prompt\":\"1+1?\",\"agent\":{\"kind\":\"chat\"}}", NULL, NULL, NULL);
    expect(&run, OUTCOME_INFRA, "engine");
    end_job(&run);
}

static struct job cancelled;
static bool cancel_ended;

static void run_cancelled(void *arg)
{
    (void)arg;
    cancelled = run_stage(STAGE_RUN, "{\"task\":\"t\",\"prompt\":\"touch f; sleep 100\"}", NULL, NULL, NULL);
}

static void cancelled_end(void *arg)
{
    (void)arg;
    cancel_ended = true;
    fiber_wake(agent_observer);
}

FIBER_TEST(a_cancelled_run_returns_at_once)
{
    cancel_ended = false;
    agent_observer = fiber_current();
    struct fiber *fiber = fiber_start(loop, run_cancelled, cancelled_end, NULL);
    assert_int_equal(await_wake(-1), 0);
    assert_false(cancel_ended);
    int64_t start_ms = clock_ms();
    fiber_cancel(fiber);
    while (!cancel_ended)
        assert_int_equal(await_wake(-1), 0);
    agent_observer = NULL;
    assert_true(clock_ms() - start_ms < 2000);
    expect(&cancelled, OUTCOME_CANCELLED, "");
    assert_string_equal(cancelled.result.layer.digest, "");
    end_job(&cancelled);
}

/* ---- eval
 * ------------------------------------------------------------------------------------------------
 */

FIBER_TEST(the_evaluator_sees_what_init_and_agent_left_in_a_fresh_container)
{
    expect_reward("{\"task\":\"t\",\"prompt\":\"rm b; echo run > c; setsid sleep 1000 & setsid cat "
                  "< /dev/zero > /dev/null & echo x > /dev/shm/x\","
                  "\"files\":{\"a\":\"init\",\"b\":\"gone\"},"
                  "\"eval\":{\"kind\":\"command\",\"command\":\"test $(cat a) = init && test ! -e "
                  "b && test $(cat c) = run && ! grep -lE 'sleep|cat' /proc/[1-9]*/comm && test -z "
                  "\\\"$(ls /dev/shm)\\\" && echo all fresh\"}}",
                  1.0, "all fresh");
}

FIBER_TEST(the_agent_does_not_see_the_evaluators_files)
{
    struct job eval = run_task("{\"task\":\"t\",\"prompt\":\"find /workspace /tmp /opt2 /run /dev -name 'held-back*' "
                               "2>/dev/null; echo looked\","
                               "\"eval\":{\"kind\":\"command\",\"command\":\"cat held-back1 /opt2/held-back2 "
                               "sub/held-back3\",\"files\":"
                               "{\"held-back1\":\"s1\",\"/opt2/held-back2\":\"s2\",\"sub/held-back3\":\"s3\"}}}");
    expect(&eval, OUTCOME_OK, "s1s2s3");
    assert_string_equal(agent_output, "looked\n");
    end_job(&eval);
}

FIBER_TEST(what_an_agent_leaves_in_the_evaluators_places_decides_nothing)
{
#define SCORED                                                                                                         \
    "\"eval\":{\"kind\":\"command\",\"command\":\"bash "                                                               \
    "tests/check.sh\",\"files\":{\"tests/check.sh\":\"test -e solved\"}}}"
    expect_reward("{\"task\":\"t\",\"prompt\":\"mkdir tests; ln -s /dev/null tests/check.sh\"," SCORED, 0.0,
                  "exited with 1");
    expect_reward("{\"task\":\"t\",\"prompt\":\"mkdir tests; echo true > tests/check.sh; chmod 0 "
                  "tests\"," SCORED,
                  0.0, "exited with 1");
    expect_reward("{\"task\":\"t\",\"prompt\":\"ln -s /dev tests\"," SCORED, 0.0, "exited with 1");
    expect_reward("{\"task\":\"t\",\"prompt\":\"echo > tests; touch solved\"," SCORED, 1.0, "exited with 0");
    expect_reward("{\"task\":\"t\",\"prompt\":\"mkdir -p tests/check.sh/x\"," SCORED, 0.0, "exited with 1");
}

#define COMMAND_WITHIN(limits, command)                                                                                \
    "{\"task\":\"t\",\"agent\":{\"kind\":\"none\"},\"limits\":{" limits                                                \
    "},\"eval\":{\"kind\":\"command\",\"command\":\"" command "\"}}"
#define COMMAND(command) COMMAND_WITHIN("\"command_s\":1", command)

FIBER_TEST(the_exit_status_is_the_reward_and_others_are_a_broken_evaluator)
{
    expect_reward(COMMAND("echo good"), 1.0, "the evaluator exited with 0: good");
    expect_reward(COMMAND("echo bad; false"), 0.0, "the evaluator exited with 1: bad");
    expect_no_reward(COMMAND("grep word no-such-file"), OUTCOME_TASK,
                     "broken, it exited with 2, which is not a verdict (eval.verdict_statuses): grep: "
                     "no-such-file");
    expect_reward("{\"task\":\"t\",\"agent\":{\"kind\":\"none\"},\"eval\":{\"kind\":\"command\","
                  "\"command\":\"grep word "
                  "no-such-file\",\"verdict_statuses\":[0,1,2]}}",
                  0.0, "the evaluator exited with 2");
    expect_no_reward(COMMAND("echo odd; exit 126"), OUTCOME_TASK,
                     "broken, it exited with 126, a program that cannot be executed: odd");
    expect_no_reward(COMMAND("no-such-program"), OUTCOME_TASK, "exited with 127");
    expect_no_reward(COMMAND("kill -9 $$"), OUTCOME_TASK, "was killed by signal 9");
    expect_no_reward(COMMAND("echo slow; sleep 100"), OUTCOME_TASK, "was stopped after");
    expect_no_reward(COMMAND_WITHIN("\"memory_mib\":64", "x=x; while :; do x=$x$x; done"), OUTCOME_TASK,
                     "the evaluator went over its memory limit (limits.memory_mib)");
}

static void expect_end(const struct job *job, const char *end)
{
    const size_t len = strlen(job->result.detail);
    if (len < strlen(end) || strcmp(job->result.detail + len - strlen(end), end) != 0)
        fail_msg("'%s' does not end with '%s'", job->result.detail, end);
}

FIBER_TEST(a_command_that_says_nothing_is_told_of_without_a_colon)
{
    static const struct {
        const char *command, *end;
    } rows[] = {{"exit 2", "it exited with 2, which is not a verdict (eval.verdict_statuses)"},
                {"kill -9 $$", "was killed by signal 9"},
                {"true", "the evaluator exited with 0"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char json[512];
        snprintf(json, sizeof(json), COMMAND("%s"), rows[i].command);
        struct job eval = run_task(json);
        expect_end(&eval, rows[i].end);
        end_job(&eval);
    }
    struct job eval = run_task(COMMAND("sleep 100"));
    assert_non_null(strstr(eval.result.detail, "was stopped after"));
    assert_int_not_equal(eval.result.detail[strlen(eval.result.detail) - 1], ' ');
    end_job(&eval);
    struct job init = run_stage(STAGE_INIT, "{\"task\":\"t\",\"prompt\":\"p\",\"setup\":[\"exit 7\"]}", NULL, NULL,
                                NULL);
    expect_end(&init, "the set-up command exit 7 exited with 7");
    end_job(&init);
}

#define PYTHON(code)                                                                                                   \
    "{\"task\":\"t\",\"agent\":{\"kind\":\"none\"},\"files\":{\"theirs.py\":\"1 / "                                    \
    "0\"},\"eval\":{\"kind\":\"command\",\"command\":"                                                                 \
    "\"python3 -I /eval/check.py\",\"files\":{\"/eval/check.py\":\"" code "\"}}}"

/* What it printed comes after the traceback: it was in a buffer. */
FIBER_TEST(an_evaluator_that_breaks_with_status_1_gives_no_reward)
{
    expect_no_reward(PYTHON("print('looking')\\nimport no_such_module\\n"), OUTCOME_TASK,
                     "broken, it exited with 1, an uncaught exception of Python "
                     "(ModuleNotFoundError: No module named 'no_such_module')");
    expect_reward(PYTHON("print('looking')\\nassert 1 == 2, 'wrong'\\n"), 0.0, "exited with 1");
    expect_reward(PYTHON("exec(compile(open('theirs.py').read(), '/workspace/theirs.py', 'exec'))\\n"), 0.0,
                  "ZeroDivisionError");
}

#define REWARD(agent, command)                                                                                         \
    "{\"task\":\"t\",\"prompt\":\"" agent "\",\"eval\":{\"kind\":\"command\",\"reward_file\":"                         \
    "\"out/reward\",\"command\":\"mkdir -p out; " command "\"}}"

FIBER_TEST(a_reward_file_holds_one_finite_number_or_the_evaluator_is_broken)
{
    expect_reward(REWARD("true", "echo 0.25 > out/reward"), 0.25, "0.25");
    expect_reward(REWARD("true", "printf ' -3e-2\\\\n' > out/reward"), -0.03, "-0.03");
    static const char *const garbage[] = {
        REWARD("true", "true"),
        REWARD("true", ": > out/reward"),
        REWARD("true", "echo good > out/reward"),
        REWARD("true", "echo nan > out/reward"),
        REWARD("true", "echo inf > out/reward"),
        REWARD("true", "echo 1e999 > out/reward"),
        REWARD("true", "echo 1 2 > out/reward"),
        REWARD("true", "echo 0x10 > out/reward"),
        REWARD("true", "printf '1\\\\0' > out/reward"),
        REWARD("true", "printf '1%0100d' 0 > out/reward"),
        REWARD("true", "yes 1 | head -1000 > out/reward"),
        REWARD("true", "mkdir out/reward"),
        REWARD("true", "mkfifo out/reward"),
        REWARD("true", "ln -s /dev/zero out/reward"),
        REWARD("true", "ln -s reward out/reward"),
        REWARD("true", "echo 1 > out/other; ln -s other out/reward"),
        REWARD("true", "echo 1 > out/reward; exit 1"),
    };
    for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++)
        expect_no_reward(garbage[i], OUTCOME_TASK, "");
}

FIBER_TEST(a_reward_file_that_the_agent_wrote_does_not_count)
{
    expect_no_reward(REWARD("mkdir out; echo 1 > out/reward", "true"), OUTCOME_TASK, "left no reward");
    expect_reward(REWARD("mkdir out; echo 1 > out/reward; chmod 0 out/reward out", "echo 0 > out/reward"), 0.0, "");
    expect_reward(REWARD("mkdir -p out/reward/x", "echo 0.5 > out/reward"), 0.5, "");
    expect_reward(REWARD("ln -s /tmp out; echo 1 > out/reward", "echo 0.5 > out/reward"), 0.5, "");
}

FIBER_TEST(an_image_of_ones_own_with_merged_usr_keeps_its_programs)
{
    char script[1024], json[1024];
    snprintf(script, sizeof(script),
             "set -e; umask 022; cd %s; mkdir -p image/usr/bin image/usr/lib image/usr/lib64; cd image;"
             "ln -s usr/bin bin; ln -s usr/lib lib; ln -s usr/lib64 lib64; cp /usr/bin/bash "
             "/usr/bin/cat bin;"
             "for file in $(ldd /usr/bin/bash /usr/bin/cat | grep -o '/[^ ]*\\.so[^ ]*'); do cp -L "
             "--parents $file .; done",
             directory);
    assert_int_equal(system(script), 0);
    snprintf(json, sizeof(json),
             "{\"task\":\"t\",\"image\":\"%s/"
             "image\",\"agent\":{\"kind\":\"none\"},\"eval\":{\"kind\":\"command\",\"command\":"
             "\"/bin/check && test -x "
             "/bin/cat\",\"files\":[{\"path\":\"/bin/check\",\"text\":\"#!/bin/bash\\nexec cat "
             "/etc/in\",\"mode\":\"0755\"},"
             "{\"path\":\"/etc/in\",\"text\":\"read\"}]}}",
             directory);
    expect_reward(json, 1.0, "exited with 0: read");
}

FIBER_TEST(math_compares_the_last_box_of_the_answer)
{
#define MATH                                                                                                           \
    "{\"task\":\"t\",\"prompt\":\"1+1?\",\"eval\":{\"kind\":\"math\",\"answer\":\"\\\\boxed{2.0}"                      \
    "\"}}"
    struct job eval = run_stage(STAGE_EVAL, MATH, NULL, NULL, "so \\boxed{2}");
    expect(&eval, OUTCOME_OK, "2 equals 2.0");
    assert_true(eval.result.verdict.has_reward && eval.result.verdict.reward == 1.0);
    end_job(&eval);
    eval = run_stage(STAGE_EVAL, MATH, NULL, NULL, "\\boxed{2} no, \\boxed{3}");
    expect(&eval, OUTCOME_OK, "3 does not equal 2.0");
    assert_true(eval.result.verdict.has_reward && eval.result.verdict.reward == 0.0);
    end_job(&eval);
    eval = run_stage(STAGE_EVAL, MATH, NULL, NULL, NULL);
    expect(&eval, OUTCOME_OK, "no \\boxed{} in the answer");
    assert_true(eval.result.verdict.has_reward && eval.result.verdict.reward == 0.0);
    end_job(&eval);
}

FIBER_TEST(no_evaluator_is_no_reward)
{
    expect_no_reward("{\"task\":\"t\",\"agent\":{\"kind\":\"none\"}}", OUTCOME_OK, "no reward");
}

FIBER_TEST(noop_does_nothing_and_gives_one)
{
    const char *json = "{\"task\":\"t\",\"kind\":\"noop\",\"prompt\":\"x\"}";
    struct job run = run_stage(STAGE_RUN, json, NULL, NULL, NULL);
    assert_string_equal(run.result.answer, "noop");
    assert_int_equal(run.result.record.len, 0);
    end_job(&run);
    expect_reward(json, 1.0, "noop");
}

FIBER_TEST(nothing_stays_in_the_cache_but_the_layers_of_init)
{
    size_t count = 0;
    expect_reward(REWARD("touch f", "echo 1 > out/reward"), 1.0, "");
    DIR *stream = opendir(cache);
    const struct dirent *entry;
    while ((entry = readdir(stream)))
        count += entry->d_name[0] != '.'; /* the cache's own count stays */
    closedir(stream);
    assert_int_equal(count, 0);
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_kinds, tear_down_kinds)
    const struct CMUnitTest tests[] = {
        TEST(init_writes_files_runs_set_up_and_leaves_a_layer),
        TEST(init_with_nothing_to_do_leaves_no_layer_but_looks_for_the_image),
        TEST(a_set_up_that_fails_is_the_tasks_fault_and_says_how),
        TEST(a_file_that_cannot_be_written_is_the_tasks_fault),
        TEST(runs_of_a_group_start_from_the_same_layer_and_not_from_each_other),
        TEST(an_agent_over_its_memory_ends_as_agent_and_what_it_left_is_not_known),
        TEST(an_agent_out_of_time_ends_as_agent_and_what_it_left_is_kept),
        TEST(a_tree_too_deep_to_pack_is_the_agents_fault),
        TEST(files_without_rights_are_packed_all_the_same),
        TEST(a_run_without_its_layer_or_engine_is_infra),
        TEST(a_cancelled_run_returns_at_once),
        TEST(the_evaluator_sees_what_init_and_agent_left_in_a_fresh_container),
        TEST(the_agent_does_not_see_the_evaluators_files),
        TEST(what_an_agent_leaves_in_the_evaluators_places_decides_nothing),
        TEST(the_exit_status_is_the_reward_and_others_are_a_broken_evaluator),
        TEST(a_command_that_says_nothing_is_told_of_without_a_colon),
        TEST(an_evaluator_that_breaks_with_status_1_gives_no_reward),
        TEST(a_reward_file_holds_one_finite_number_or_the_evaluator_is_broken),
        TEST(a_reward_file_that_the_agent_wrote_does_not_count),
        TEST(an_image_of_ones_own_with_merged_usr_keeps_its_programs),
        TEST(math_compares_the_last_box_of_the_answer),
        TEST(no_evaluator_is_no_reward),
        TEST(noop_does_nothing_and_gives_one),
        TEST(nothing_stays_in_the_cache_but_the_layers_of_init),
    };
    int failed = cmocka_run_group_tests_name("kinds", tests, NULL, NULL);
    free(agent_output);
    agent_output = NULL;
    return failed;
}

int main(void) { return run_as_everyone(group); }
