/* sluice-grade swe: a log that tests have printed, and the change that was tested, come to a verdict without a
 * sandbox. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/cleanup.h"
#include "workers/grading/grading_swe.h"

#define TASK                                                                                                           \
    "{\"task\":\"add\",\"prompt\":\"p\",\"eval\":{\"kind\":\"swe\",\"swe\":{\"test_command\":\"pytest\","              \
    "\"test_patch\":\"diff --git a/test_a.py b/test_a.py\\n--- a/test_a.py\\n+++ b/test_a.py\\n@@ -1 +1 @@\\n-a\\n"    \
    "+b\\n\",\"fail_to_pass\":[\"test_a.py::new\"],\"pass_to_pass\":[\"test_a.py::old\"]}}}\n"
#define CHANGE(file) "diff --git a/" file " b/" file "\n--- a/" file "\n+++ b/" file "\n@@ -1 +1 @@\n-a\n+b\n"
#define GOOD "PASSED test_a.py::new\nPASSED test_a.py::old\n"

static char directory[] = "/tmp/sluice-test-XXXXXX";

static const char *path_of(const char *name)
{
    static char paths[4][128];
    static size_t next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
    return path;
}

static const char *put(const char *name, const char *text)
{
    const char *path = path_of(name);
    AUTO_FCLOSE FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fputs(text, file) < 0, 0);
    return path;
}

/* What is printed must hold `words`. */
static void expect(const struct grading_options *options, enum grading_status wanted, const char *words)
{
    AUTO_FREE char *printed = NULL;
    size_t size;
    FILE *out = open_memstream(&printed, &size);
    assert_non_null(out);
    const enum grading_status status = grading_swe(options, out);
    fclose(out);
    if (status != wanted || !strstr(printed, words))
        fail_msg("%d: %s, not %d: %s", status, printed, wanted, words);
}

static void expect_log(const char *log, const char *patch, enum grading_status wanted, const char *words)
{
    struct grading_options options = {.task = put("task.json", TASK), .eval_log = put("log", log)};
    if (patch)
        options.patch = put("patch", patch);
    expect(&options, wanted, words);
}

static void a_log_without_marks_is_all_of_it(void **state)
{
    (void)state;
    expect_log(GOOD, NULL, GRADING_RIGHT, "verdict  add: reward 1\n");
    expect_log(GOOD, NULL, GRADING_RIGHT, "why      resolved: 1 of 1 tests that must pass, and 1 of 1");
    expect_log("FAILED test_a.py::new - x\nPASSED test_a.py::old\n", NULL, GRADING_WRONG,
               "1 passed, 1 failed, 0 with errors, 0 skipped; not passed: test_a.py::new\n");
    expect_log("", NULL, GRADING_WRONG, "test_a.py::new is missing");
}

static void of_a_log_with_marks_what_stands_between_them_counts(void **state)
{
    (void)state;
    expect_log("FAILED test_a.py::old\n+ : '>>>>> Start Test Output'\n" GOOD "+ : '>>>>> End Test Output'\nFAILED "
               "test_a.py::new\n",
               NULL, GRADING_RIGHT, "resolved: 1 of 1");
    expect_log(">>>>> Start Test Output\n" GOOD, NULL, GRADING_WRONG, "the tests ended their script");
    expect_log(">>>>> Start Test Output\n>>>>> Start Test Output\n" GOOD ">>>>> End Test Output\n", NULL, GRADING_WRONG,
               "a mark around the tests was printed twice");
    expect_log(GOOD ">>>>> End Test Output\n", NULL, GRADING_UNREAD, "no reward, outcome task\n");
    expect_log(">>>>> Start Test Output\n" GOOD ">>>>> End Test Output\n>>>>> Test Exit Code: 1\n", NULL, GRADING_WRONG,
               "the tests' exit status is that of a failure, and the log has none");
}

static void a_log_of_a_run_that_came_to_nothing_resolves_nothing(void **state)
{
    (void)state;
    expect_log(GOOD ">>>>> Tests Timed Out\n", NULL, GRADING_WRONG,
               "not resolved: the log says '>>>>> Tests Timed Out'");
    expect_log(">>>>> Patch Apply Failed:\n>>>>> Start Test Output\n" GOOD ">>>>> End Test Output\n", NULL,
               GRADING_WRONG, "not resolved: the log says '>>>>> Patch Apply Failed'");
    expect_log(">>>>> Tests Errored\n" GOOD, NULL, GRADING_WRONG, "Tests Errored");
    expect_log(">>>>> Reset Failed\n" GOOD, NULL, GRADING_WRONG, "Reset Failed");
}

static void a_log_of_more_tests_than_can_be_says_so(void **state)
{
    enum { TESTS = 300000 };
    AUTO_FREE char *log = NULL;
    size_t size;
    FILE *out = open_memstream(&log, &size);
    (void)state;
    assert_non_null(out);
    for (int i = 0; i < TESTS; i++)
        fprintf(out, "PASSED test_b.py::t%d\n", i);
    fputs(GOOD, out);
    fclose(out);
    expect_log(log, NULL, GRADING_WRONG, "not resolved: the log names more tests than can be");
}

static void a_patch_of_which_nothing_counts_resolves_nothing(void **state)
{
    (void)state;
    expect_log(GOOD, CHANGE("add.py"), GRADING_RIGHT, "patch_files 1, changed_test_files 0");
    expect_log(GOOD, CHANGE("test_a.py") CHANGE("conftest.py"), GRADING_WRONG,
               "why      not resolved: it changes nothing but files of the tests or protected ones");
    expect_log(GOOD, "", GRADING_WRONG, "why      not resolved: the patch is empty");
}

static void as_json_it_is_one_line(void **state)
{
    (void)state;
    const struct grading_options options = {.task = put("task.json", TASK), .eval_log = put("log", GOOD), .json = true};
    expect(&options, GRADING_RIGHT, "{\"task\":\"add\",\"outcome\":\"ok\",\"reward\":1.0,\"parts\":[],\"metrics\":[");
    expect(&options, GRADING_RIGHT, "{\"name\":\"test_a.py::new\",\"status\":\"passed\",\"message\":\"fail_to_pass\"}");
}

static void of_several_tasks_one_is_named(void **state)
{
    (void)state;
    struct grading_options options = {.task = put("tasks", TASK "{\"task\":\"other\",\"prompt\":\"p\"}\n"),
                                      .eval_log = put("log", GOOD)};
    expect(&options, GRADING_UNREAD, "");
    options.id = "add";
    expect(&options, GRADING_RIGHT, "verdict  add");
    options.id = "other"; /* of another evaluator */
    expect(&options, GRADING_UNREAD, "");
    options.id = "none";
    expect(&options, GRADING_UNREAD, "");
}

static void what_cannot_be_read_is_no_verdict(void **state)
{
    (void)state;
    struct grading_options options = {.task = put("task.json", TASK), .eval_log = "/no/such/file"};
    expect(&options, GRADING_UNREAD, "");
    options.eval_log = put("log", GOOD);
    options.patch = "/";
    expect(&options, GRADING_UNREAD, "");
    options.patch = NULL;
    const char *const bad[] = {"", "{", "[1]", "{\"task\":\"add\"}", TASK "{"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        options.task = put("bad", bad[i]);
        expect(&options, GRADING_UNREAD, "");
    }
}

static void what_does_not_go_with_it_is_refused_by_name(void **state)
{
    (void)state;
    struct grading_options options = {.task = "t"};
    const char *why;
    assert_false(grading_swe_read(&options, &why));
    assert_non_null(strstr(why, "--eval-log"));
    options.eval_log = "l";
    assert_true(grading_swe_read(&options, &why));
    options.rows = "r";
    assert_false(grading_swe_read(&options, &why));
    assert_non_null(strstr(why, "--rows"));
}

static int make(void **state)
{
    (void)state;
    return mkdtemp(directory) ? 0 : -1;
}

static int clean(void **state)
{
    static const char *const names[] = {"task.json", "tasks", "bad", "log", "patch"};
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unlink(path_of(names[i]));
    return rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_log_without_marks_is_all_of_it),
        cmocka_unit_test(of_a_log_with_marks_what_stands_between_them_counts),
        cmocka_unit_test(a_log_of_a_run_that_came_to_nothing_resolves_nothing),
        cmocka_unit_test(a_log_of_more_tests_than_can_be_says_so),
        cmocka_unit_test(a_patch_of_which_nothing_counts_resolves_nothing),
        cmocka_unit_test(as_json_it_is_one_line),
        cmocka_unit_test(of_several_tasks_one_is_named),
        cmocka_unit_test(what_cannot_be_read_is_no_verdict),
        cmocka_unit_test(what_does_not_go_with_it_is_refused_by_name),
    };
    return cmocka_run_group_tests_name("logs of tests, graded", tests, make, clean);
}
