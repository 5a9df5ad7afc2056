/* What an exit status and the last words on standard error say of an evaluator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "workers/evaluators/exit_status.h"

static struct task *parse(const char *more)
{
    char json[1024];
    struct refusal no = {0};
    snprintf(json, sizeof(json),
             "{\"task\":\"t\",\"prompt\":\"p\",\"eval\":{\"kind\":\"command\",\"command\":\"c\","
             "\"files\":{\"/eval/test.py\":\"\",\"hidden.py\":\"\"}%s}}",
             more);
    struct task *task = task_parse(slice_from_str(json), &no);
    if (!task)
        fail_msg("%s: %s", no.field, no.text);
    return task;
}

static void expect(const struct task *task, int status, const char *errors, double reward)
{
    AUTO_VERDICT verdict = {0};
    exit_status_judge(task, status, errors, &verdict);
    if (!verdict.has_reward || verdict.reward != reward)
        fail_msg("%d \"%s\": %g, %s", status, errors, verdict.reward, verdict_why(&verdict));
}

static void expect_broken(const struct task *task, int status, const char *errors, const char *why)
{
    AUTO_VERDICT verdict = {0};
    exit_status_judge(task, status, errors, &verdict);
    if (verdict.has_reward || !strstr(verdict_why(&verdict), why))
        fail_msg("%d \"%s\": %g, %s", status, errors, verdict.reward, verdict_why(&verdict));
}

static void zero_and_one_are_verdicts_and_no_other_status(void **state)
{
    (void)state;
    struct task *task = parse("");
    expect(task, 0, "", 1.0);
    expect(task, 1, "", 0.0);
    expect(task, 1, "3 of 4 tests failed\n", 0.0);
    for (int status = 2; status < 126; status++)
        expect_broken(task, status, "", "eval.verdict_statuses");
    expect_broken(task, 126, "", "cannot be executed");
    expect_broken(task, 127, "bash: line 1: foo: command not found\n", "not found");
    expect_broken(task, 137, "", "signal 9");
    expect_broken(task, 2, "bash: -c: line 1: syntax error near unexpected token `)'\n", "syntax error");
    task_destroy(task);
}

static void a_task_says_which_statuses_are_verdicts(void **state)
{
    (void)state;
    struct task *task = parse(",\"verdict_statuses\":[0,2,5]");
    expect(task, 0, "", 1.0);
    expect(task, 2, "", 0.0);
    expect(task, 5, "", 0.0);
    expect_broken(task, 1, "", "eval.verdict_statuses");
    expect_broken(task, 2, "/eval/run.sh: line 3: syntax error near unexpected token `fi'\n", "syntax error");
    task_destroy(task);
}

#define TRACEBACK(path)                                                                                                \
    "Traceback (most recent call last):\n  File \"" path "\", line 1, in <module>\n    import nosuch\n"

static void an_uncaught_exception_of_the_evaluators_own_code_is_no_verdict(void **state)
{
    (void)state;
    struct task *task = parse("");
    expect_broken(task, 1, TRACEBACK("/eval/test.py") "ModuleNotFoundError: No module named 'nosuch'\n",
                  "an uncaught exception of Python (ModuleNotFoundError: No module named 'nosuch')");
    expect_broken(task, 1, "warming up\n" TRACEBACK("/workspace/hidden.py") "KeyError: 'x'\n\n", "KeyError");
    expect_broken(task, 1, TRACEBACK("<string>") "json.decoder.JSONDecodeError: no\n", "JSONDecodeError");
    expect_broken(task, 1,
                  "Traceback (most recent call last):\n  File \"/eval/test.py\", line 1, in <module>\n"
                  "  File \"/usr/lib/python3.13/json/__init__.py\", line 9, in loads\nKeyboardInterrupt\n",
                  "KeyboardInterrupt");
    expect_broken(task, 1, "  File \"/eval/test.py\", line 1\n    def\n       ^\nSyntaxError: invalid syntax\n",
                  "SyntaxError");
    expect_broken(task, 1,
                  TRACEBACK("/eval/test.py") "KeyError: 1\n\nDuring handling of the above exception, another "
                                             "exception "
                                             "occurred:\n\n" TRACEBACK("/eval/test.py") "ValueError: 2\n",
                  "ValueError: 2");
    expect_broken(task, 1, "/usr/bin/python3: No module named pytest\n", "No module named pytest");
    /* and whatever follows */
    expect_broken(task, 1, TRACEBACK("/eval/test.py") "RuntimeError: a\n\nb\n", "RuntimeError: a");
    expect_broken(task, 1, TRACEBACK("/eval/test.py") "KeyError: 1\na note\n", "KeyError: 1");
    expect_broken(task, 1, TRACEBACK("/eval/test.py") "KeyError: 1\nINFO: closing\n", "KeyError: 1");
    expect_broken(task, 1,
                  "  + Exception Group Traceback (most recent call last):\n  |   File "
                  "\"/eval/test.py\", line 1, in <module>\n"
                  "  |     raise e\n  | ExceptionGroup: eg (1 sub-exception)\n  "
                  "+-+---------------- 1 ----------------\n"
                  "    | ValueError: 1\n    +------------------------------------\n",
                  "ExceptionGroup: eg");
    task_destroy(task);
}

static void an_assertion_and_an_exception_of_the_agents_code_are_verdicts(void **state)
{
    (void)state;
    struct task *task = parse("");
    expect(task, 1, TRACEBACK("/eval/test.py") "AssertionError\n", 0.0);
    expect(task, 1, TRACEBACK("/eval/test.py") "AssertionError: 3 != 4\n", 0.0);
    expect(task, 1,
           "Traceback (most recent call last):\n  File \"/eval/test.py\", line 1, in <module>\n"
           "    from stats import mean\n  File \"/workspace/stats.py\", line 2, in <module>\n    1 "
           "/ 0\n"
           "ZeroDivisionError: division by zero\n",
           0.0);
    expect(task, 1,
           "  + Exception Group Traceback (most recent call last):\n  |   File "
           "\"/workspace/stats.py\", line 1, in f\n"
           "  | ExceptionGroup: eg (1 sub-exception)\n",
           0.0);
    expect(task, 1,
           "Traceback (most recent call last):\n  File \"/eval/test.py\", line 1, in <module>\n"
           "  File \"/workspace/stats.py\", line 2\n    def\n       ^\nSyntaxError: invalid syntax\n",
           0.0);
    expect(task, 1, "  File \"/workspace/stats.py\", line 2\n    def\n       ^\nSyntaxError: invalid syntax\n", 0.0);
    task_destroy(task);
}

static void an_exception_that_was_caught_and_told_of_is_a_verdict(void **state)
{
    (void)state;
    struct task *task = parse("");
    expect(task, 1, TRACEBACK("/eval/test.py") "ValueError: 2\nFAILED (errors=1)\n", 0.0);
    expect(task, 1, "Traceback (most recent call last):\n", 0.0);
    expect(task, 1, "Traceback (most recent call last):\n  File \"", 0.0);
    expect(task, 1, "the agent wrote: No module named pytest\n", 0.0);
    expect(task, 0, TRACEBACK("/eval/test.py") "ValueError: 2\n", 1.0); /* 0 is what it said */
    task_destroy(task);
}

static void expect_refused(const char *eval, enum refusal_reason reason, const char *field)
{
    char json[512];
    struct refusal no = {0};
    snprintf(json, sizeof(json), "{\"task\":\"t\",\"prompt\":\"p\",\"eval\":{%s}}", eval);
    assert_null(task_parse(slice_from_str(json), &no));
    assert_int_equal(no.reason, reason);
    assert_string_equal(no.field, field);
}

static void statuses_that_cannot_be_are_refused(void **state)
{
    (void)state;
#define COMMAND "\"kind\":\"command\",\"command\":\"c\",\"verdict_statuses\":"
    expect_refused(COMMAND "[]", REFUSAL_TOO_SMALL, "eval.verdict_statuses");
    expect_refused(COMMAND "1", REFUSAL_WRONG_TYPE, "eval.verdict_statuses");
    expect_refused(COMMAND "[0,126]", REFUSAL_TOO_LARGE, "eval.verdict_statuses[1]");
    expect_refused(COMMAND "[0,-1]", REFUSAL_TOO_SMALL, "eval.verdict_statuses[1]");
    expect_refused(COMMAND "[0,\"1\"]", REFUSAL_WRONG_TYPE, "eval.verdict_statuses[1]");
    expect_refused(COMMAND "[0,1,1]", REFUSAL_BAD_TASK, "eval.verdict_statuses[2]");
    expect_refused(COMMAND "[1,2]", REFUSAL_BAD_TASK, "eval.verdict_statuses");
    expect_refused(COMMAND "[0,1],\"reward_file\":\"r\"", REFUSAL_AMBIGUOUS, "eval.verdict_statuses");
    expect_refused("\"kind\":\"math\",\"answer\":\"1\",\"verdict_statuses\":[0]", REFUSAL_BAD_TASK,
                   "eval.verdict_statuses");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zero_and_one_are_verdicts_and_no_other_status),
        cmocka_unit_test(a_task_says_which_statuses_are_verdicts),
        cmocka_unit_test(an_uncaught_exception_of_the_evaluators_own_code_is_no_verdict),
        cmocka_unit_test(an_assertion_and_an_exception_of_the_agents_code_are_verdicts),
        cmocka_unit_test(an_exception_that_was_caught_and_told_of_is_a_verdict),
        cmocka_unit_test(statuses_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests_name("verdict", tests, NULL, NULL);
}
