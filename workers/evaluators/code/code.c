/*
 * The evaluator "code": the program that the agent wrote is run on each test in a sandbox of its own (code_driver.py),
 * and what it gives is compared out here: what is expected never gets in, but with asserts, which run where the program
 * runs.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "workers/evaluators/code/checker.h"
#include "workers/evaluators/code/checker_program.h"
#include "workers/evaluators/code/program_file.h"
#include "workers/evaluators/code/source.h"
#include "workers/evaluators/evaluators.h"
#include "workers/inside/driver.h"
#include "workers/inside/inside.h"
#include "common/loop/loop_now.h"
#include "workers/sandbox/requests.h"
#include "workers/stages/sandbox/stage_confirm.h"
#include "workers/stages/sandbox/stage_sandbox.h"

enum {
    OUTPUT_MAX = 16 << 20, /* bytes that a test may write */
    SHOWN_MAX = 100,
    READY_MS = 60000, /* a cold image on a slow file system */
    WALL_TIMES = 4,   /* CPU seconds of a test, in seconds that it may last ... */
    WALL_MORE_S = 2,  /* ... and these */
    ANSWER_MS = 5000, /* the driver's, beyond that */
    CHECKER_FAILED = 2
};

static const double TOLERANCE = 1e-6; /* of floats, where the task says none */

static const struct program code_driver = {"code_driver.py", code_driver_py, &code_driver_py_len};

struct tests {
    json_t *root;
    const json_t *inputs, *outputs; /* the asserts are inputs without outputs */
    const char *mode, *name;
    size_t count;
};

struct judging {
    struct job *job;
    struct stage_sandbox stage;
    struct driver driver;
    struct tests tests;
    struct buffer text; /* the program */
    struct verdict verdict;
    size_t run, passed;
    bool is_checkers_failure; /* the last failure was of the checker's sandbox */
    double cpu_s;
    enum checker checker;
    struct checker_program program; /* where that is what it is */
};

/* ---- the program and its tests ------------------------------------------------------------------ */

static bool read_tests(const char *text, struct tests *ret)
{
    ret->root = json_loads(text, 0, NULL);
    const json_t *asserts = json_object_get(ret->root, "asserts");
    const json_t *call = json_object_get(ret->root, asserts ? "entry_point" : "fn_name");
    ret->inputs = asserts ? asserts : json_object_get(ret->root, "inputs");
    ret->outputs = asserts ? NULL : json_object_get(ret->root, "outputs");
    ret->name = json_string_value(call);
    ret->mode = asserts ? "assert" : call ? "call" : "stdin";
    ret->count = json_array_size(ret->inputs);
    return ret->count > 0;
}

static int put(struct judging *judging, const char *name, const void *data, size_t len, struct fail *fail)
{
    const struct program file = {name, data, &len};
    return driver_install(judging->driver.sandbox, &file, fail);
}

static void lack_program(struct judging *judging, const char *why)
{
    verdict_set_reward(&judging->verdict, 0, NULL);
    verdict_say(&judging->verdict, "%s", why);
    evaluator_end(judging->job, &judging->verdict);
}

/* Whether there is one; if not, the job has ended. */
static bool take_program(struct judging *judging)
{
    char why[512] = "there is no fenced block in the answer";
    struct slice source;
    if (!judging->job->task->eval_source) {
        const bool has = source_find(judging->job->start.answer, &source);
        buffer_append(&judging->text, source.data, has ? source.len : 0);
        if (!has)
            lack_program(judging, why);
        return has;
    }
    const enum program_file end = program_file_take(judging->job, &judging->text, why, sizeof(why));
    if (end == PROGRAM_LACKS)
        lack_program(judging, why);
    return end == PROGRAM_TAKEN;
}

/* ---- one test ----------------------------------------------------------------------------------- */

struct test_end {
    const char *end, *error; /* of the message */
    double seconds;
    bool passed;
    char why[512];
};

/* A text as it is, another value as JSON; the caller frees it. */
static char *text_of(const json_t *value)
{
    return json_is_string(value) ? strdup(json_string_value(value)) : json_dumps(value, JSON_ENCODE_ANY);
}

static int put_input(struct judging *judging, size_t i, struct fail *fail)
{
    AUTO_FREE char *text = text_of(json_array_get(judging->tests.inputs, i));
    return text ? put(judging, "input", text, strlen(text), fail) : fail_memory(fail);
}

static bool is_accepted(const struct judging *judging, size_t i, struct slice given)
{
    const double given_tolerance = judging->job->task->eval_tolerance;
    const double tolerance = given_tolerance > 0 ? given_tolerance : TOLERANCE;
    const json_t *expected = json_array_get(judging->tests.outputs, i);
    if (strcmp(judging->tests.mode, "stdin") == 0)
        return checker_accepts(judging->checker, tolerance, slice_from_str(json_string_value(expected)), given);
    json_t *value = json_loadb((const char *)given.data, given.len, JSON_DECODE_ANY, NULL);
    json_t *parsed = json_is_string(expected) ? json_loads(json_string_value(expected), JSON_DECODE_ANY, NULL) : NULL;
    bool accepted = value && ((parsed && checker_accepts_value(judging->checker, tolerance, parsed, value)) ||
                              checker_accepts_value(judging->checker, tolerance, expected, value));
    json_decref(parsed);
    json_decref(value);
    return accepted;
}

/* What the test wrote; the file is empty then. */
static char *take_output(struct judging *judging, size_t *len)
{
    struct output output;
    output_init(&output, 2 * OUTPUT_MAX);
    driver_collect(&judging->driver, &output);
    if (ftruncate(judging->driver.output, 0) == 0)
        judging->driver.seen = 0;
    return output_take(&output, len);
}

/* 0; 1: the checker is itself at fault, and there will be no reward; negative errno. */
static int ask_checker(struct judging *judging, size_t i, struct slice given, struct test_end *ret, struct fail *fail)
{
    AUTO_FREE char *input = text_of(json_array_get(judging->tests.inputs, i));
    AUTO_FREE char *expected = text_of(json_array_get(judging->tests.outputs, i));
    if (!input || !expected)
        return fail_memory(fail);
    int code = checker_program_ask(&judging->program, judging->job->task, slice_from_str(input), given,
                                   slice_from_str(expected), ret->why, sizeof(ret->why), fail);
    judging->is_checkers_failure = code < 0;
    ret->passed = code == CHECKER_RIGHT;
    return code < 0 ? code : code == CHECKER_AT_FAULT;
}

static void compare(struct judging *judging, size_t i, struct slice given, struct test_end *ret)
{
    char shown[SHOWN_MAX + 1];
    ret->passed = !judging->tests.outputs || is_accepted(judging, i, given);
    if (ret->passed)
        return;
    snprintf(shown, sizeof(shown), "%.*s", SLICE_ARG(given));
    text_repair(shown);
    for (size_t len = strlen(shown); len > 0 && isspace((unsigned char)shown[len - 1]);)
        shown[--len] = '\0';
    snprintf(ret->why, sizeof(ret->why), "wrong output: %s%s", shown, given.len > SHOWN_MAX ? "..." : "");
}

static void say_end(const char *end, const char *error, struct test_end *ret)
{
    static const struct {
        const char *end, *words;
    } rows[] = {{"cpu", "its CPU time is used up"},
                {"wall", "it lasted too long"},
                {"output", "it wrote too much"},
                {"signal", "it was killed by a signal"},
                {"exit", "it ended early"}};
    const char *words = error;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (strcmp(rows[i].end, end) == 0)
            words = rows[i].words;
    snprintf(ret->why, sizeof(ret->why), "%.300s", *words ? words : "an exception");
}

/* How long a test may last. */
static double wall_seconds(const struct task *task) { return task->eval_test_s * WALL_TIMES + WALL_MORE_S; }

static bool wants_all(const struct task *task) { return strcmp(task->eval_score, "all") == 0; }

static bool ask(struct judging *judging)
{
    const struct task *task = judging->job->task;
    json_t *test = json_pack("{s:s, s:f, s:f, s:i, s:I, s:s?}", "mode", judging->tests.mode, "cpu_s", task->eval_test_s,
                             "wall_s", wall_seconds(task), "bytes", OUTPUT_MAX, "memory",
                             (json_int_t)task->limits.memory_mib << 20, "name", judging->tests.name);
    bool sent = test && driver_send(&judging->driver, test);
    json_decref(test);
    return sent;
}

/* Whether what is left of limits.eval_s is what ends the evaluation takes. */
static bool is_time_up(const struct judging *judging)
{
    return stage_command_ms(judging->job->task->limits.eval_s) <= 1;
}

/* 1: it has an end; CHECKER_FAILED; 0: the driver is no more, by the program's doing, or silent; negative errno. */
static int run_test(struct judging *judging, size_t i, struct test_end *ret, struct fail *fail)
{
    const int64_t wall_ms = (int64_t)(wall_seconds(judging->job->task) * 1000) + ANSWER_MS;
    const int64_t left_ms = stage_command_ms(judging->job->task->limits.eval_s);
    json_t *said = NULL;
    int status;
    int code = put_input(judging, i, fail);
    if (code < 0)
        return code;
    if (!ask(judging))
        return 0;
    code = driver_await(&judging->driver, loop_now_ms() + (wall_ms < left_ms ? wall_ms : left_ms), &said, &status,
                        fail);
    if (code < 0)
        return code;
    const char *end = json_string_value(json_object_get(said, "end"));
    const char *error = json_string_value(json_object_get(said, "error"));
    ret->seconds = json_number_value(json_object_get(said, "wall_s"));
    judging->cpu_s += json_number_value(json_object_get(said, "cpu_s"));
    size_t len;
    AUTO_FREE char *text = take_output(judging, &len);
    const struct slice given = slice_of(text, text ? len : 0);
    code = end ? 1 : 0;
    if (end && strcmp(end, "ok") != 0)
        say_end(end, error ? error : "", ret);
    else if (end && judging->checker != CHECKER_PROGRAM)
        compare(judging, i, given, ret);
    else if (end && (code = ask_checker(judging, i, given, ret, fail)) >= 0)
        code = code ? CHECKER_FAILED : 1;
    json_decref(said);
    return code;
}

/* ---- all of them -------------------------------------------------------------------------------- */

static void count(struct judging *judging, size_t i, const struct test_end *end)
{
    char name[32];
    snprintf(name, sizeof(name), "%zu", i + 1);
    judging->run++;
    judging->passed += end->passed;
    verdict_add_test(&judging->verdict, name, end->passed ? TEST_PASSED : TEST_FAILED, end->passed ? NULL : end->why,
                     &end->seconds, NULL);
    if (!end->passed && judging->run == judging->passed + 1)
        verdict_say(&judging->verdict, "test %s of %zu: %.400s", name, judging->tests.count, end->why);
}

static int start_driver(struct judging *judging, struct fail *fail)
{
    json_t *hello = NULL;
    int end = -1, status;
    driver_finish(&judging->driver);
    int code = driver_make_ends(&judging->driver, &end, fail);
    if (code == 0)
        code = driver_execute(&judging->driver, &code_driver, NULL, end, fail);
    if (end >= 0)
        close(end);
    if (code == 0)
        code = driver_await(&judging->driver, loop_now_ms() + READY_MS, &hello, &status, fail);
    const bool is_ready = code == DRIVER_SAID;
    json_decref(hello);
    return is_ready ? 0 : code < 0 ? code : fail_set(fail, -ENOEXEC, "python3 does not run in the sandbox");
}

/* The program has ended what judges it, the sandbox by a limit, or the time of all tests: this one is not passed. */
static int survive(struct judging *judging, struct test_end *end, bool *is_over, struct fail *fail)
{
    const char *breach = sandbox_breach(judging->stage.sandbox);
    *is_over = breach || is_time_up(judging);
    snprintf(end->why, sizeof(end->why),
             breach     ? "it went over the sandbox's %s limit"
             : *is_over ? "limits.eval_s is used up"
                        : "it killed what judges it",
             breach);
    return *is_over ? 0 : start_driver(judging, fail);
}

/* 0; 1: the checker is at fault, and the verdict says so; negative errno. */
static int run_tests(struct judging *judging, struct fail *fail)
{
    bool is_over = false;
    for (size_t i = 0; i < judging->tests.count && !is_over; i++) {
        struct test_end end = {0};
        int code = run_test(judging, i, &end, fail);
        if (code == CHECKER_FAILED) {
            verdict_say(&judging->verdict, "test %zu of %zu: %.400s", i + 1, judging->tests.count, end.why);
            return 1;
        }
        if (code == 0 || (code < 0 && !judging->is_checkers_failure && sandbox_breach(judging->stage.sandbox)))
            code = survive(judging, &end, &is_over, fail);
        if (code < 0)
            return code;
        count(judging, i, &end);
        is_over |= wants_all(judging->job->task) && !end.passed;
    }
    return 0;
}

static void score(struct judging *judging)
{
    const size_t total = judging->tests.count;
    const bool has_all = judging->passed == total;
    verdict_set_reward(&judging->verdict,
                       has_all                         ? 1
                       : wants_all(judging->job->task) ? 0
                                                       : (double)judging->passed / (double)total,
                       NULL);
    verdict_add_metric(&judging->verdict, "tests", (double)total, NULL);
    verdict_add_metric(&judging->verdict, "tests_passed", (double)judging->passed, NULL);
    verdict_add_metric(&judging->verdict, "cpu_seconds", judging->cpu_s, NULL);
    if (has_all)
        verdict_say(&judging->verdict, "all of %zu tests pass", total);
}

static int open_sandbox(struct judging *judging, struct fail *fail)
{
    int code = stage_sandbox_find_image(&judging->stage, judging->job, fail);
    if (code == 0)
        code = stage_sandbox_add_init(&judging->stage, judging->job, fail);
    if (code == 0)
        code = stage_sandbox_open(&judging->stage, judging->job, fail);
    if (code == 0)
        driver_init(&judging->driver, judging->stage.sandbox);
    return code;
}

/* The checker's sandbox, where it is a program. */
static int open_checker(struct judging *judging, struct fail *fail)
{
    if (judging->checker != CHECKER_PROGRAM)
        return 0;
    int code = checker_program_open(&judging->program, judging->job, fail);
    judging->is_checkers_failure = code < 0;
    return code;
}

static void judge(struct judging *judging)
{
    struct fail fail = {0};
    int code = open_sandbox(judging, &fail);
    if (code == 0)
        code = put(judging, "code.py", judging->text.data, judging->text.len, &fail);
    if (code == 0)
        code = open_checker(judging, &fail);
    job_begin_work(judging->job);
    if (code == 0)
        code = start_driver(judging, &fail);
    if (code == 0)
        code = run_tests(judging, &fail);
    if (code == 0)
        score(judging);
    if (code < 0)
        stage_end_failed(judging->job, judging->is_checkers_failure ? &judging->program.stage : &judging->stage,
                         BLAME_EVALUATOR, code, &fail);
    else
        evaluator_end(judging->job, &judging->verdict);
}

static void code_run(struct job *job)
{
    struct judging judging = {.job = job, .stage = {.part = STAGE_EVALUATORS}, .driver = {.socket = -1, .output = -1}};
    if (job->task->eval_source && evaluator_lacks_files(job))
        return;
    judging.checker = checker_find(job->task->eval_checker);
    if (!read_tests(job->task->eval_tests, &judging.tests))
        job_set_outcome(job, OUTCOME_TASK, "the task has no tests");
    else if (take_program(&judging))
        judge(&judging);
    driver_finish(&judging.driver);
    stage_confirm(job, &judging.stage);
    if (judging.checker == CHECKER_PROGRAM)
        stage_confirm(job, &judging.program.stage);
    checker_program_close(&judging.program);
    stage_sandbox_close(&judging.stage);
    verdict_finish(&judging.verdict);
    buffer_finish(&judging.text);
    json_decref(judging.tests.root);
}

const struct evaluator evaluator_code = {.run = code_run};
