/* The evaluator "code": programs on tests in real sandboxes, and what they try instead. */
#include "tests/workers/stages/kinds_world.h"

/* A program, as an answer, on tests, with more fields of eval. */
static struct job judge_with(const char *program, const char *tests, const char *more, const char *limits)
{
    AUTO_BUFFER json = {0}, answer = {0};
    buffer_printf(
        &json,
        "{\"task\":\"t\",\"prompt\":\"p\",\"agent\":{\"kind\":\"none\"},\"eval\":{\"kind\":\"code\",\"tests\":%s%s}%s}",
        tests, more, limits);
    buffer_printf(&answer, "So it is:\n```python\n%s\n```\n", program);
    assert_true(buffer_append(&json, "", 1) && buffer_append(&answer, "", 1));
    return run_stage(STAGE_EVAL, (const char *)json.data, NULL, NULL, (const char *)answer.data);
}

static void expect_score(const char *program, const char *tests, const char *more, double reward, const char *words)
{
    struct job eval = judge_with(program, tests, more, "");
    expect(&eval, OUTCOME_OK, words);
    assert_true(eval.result.verdict.has_reward);
    if (eval.result.verdict.reward != reward)
        fail_msg("%g (%s), not %g", eval.result.verdict.reward, eval.result.detail, reward);
    end_job(&eval);
}

#define SUMS "{\"inputs\":[\"1 2\\n\",\"3 4\\n\",\"5 6\\n\"],\"outputs\":[\"3\\n\",\"7\\n\",\"11\\n\"]}"
#define ADD "a, b = map(int, input().split())\n"

FIBER_TEST(a_program_is_run_on_each_input)
{
    expect_score(ADD "print(a + b)", SUMS, "", 1, "all of 3 tests pass");
    expect_score("import sys\nprint(sum(int(x) for x in sys.stdin.read().split()))", SUMS, "", 1,
                 "all of 3 tests pass");
    expect_score("import os, subprocess\nsubprocess.run(['sh', '-c', 'read a b; echo $((a + b))'])", SUMS, "", 1, "");
    expect_score(ADD "print(a + b if a < 5 else 0)", SUMS, "", 0, "test 3 of 3: wrong output: 0");
    expect_score(ADD "print(a + b if a < 5 else 0)", SUMS, ",\"score\":\"fraction\"", 2.0 / 3, "test 3 of 3");
    expect_score("1/0", SUMS, "", 0, "test 1 of 3: ZeroDivisionError: division by zero");
    expect_score("def (", SUMS, "", 0, "SyntaxError");
    expect_score("import sys\nsys.exit(3)", SUMS, "", 0, "test 1 of 3: it ended early");
    expect_score("import os\nos.kill(os.getpid(), 11)", SUMS, "", 0, "it was killed by a signal");
}

FIBER_TEST(an_answer_without_a_program_is_a_reward_of_0)
{
    struct job eval = run_stage(STAGE_EVAL,
                                "{\"task\":\"t\",\"prompt\":\"p\",\"eval\":{\"kind\":\"code\",\"tests\":" SUMS "}}",
                                NULL, NULL, "It is 3.");
    expect(&eval, OUTCOME_OK, "there is no fenced block in the answer");
    assert_true(eval.result.verdict.has_reward && eval.result.verdict.reward == 0);
    end_job(&eval);
}

#define CALLS "{\"fn_name\":\"add\",\"inputs\":[[1,2],\"3\\n4\"],\"outputs\":[3,\"7\"]}"

FIBER_TEST(a_function_is_called_with_each_input)
{
    expect_score("def add(a, b): return a + b", CALLS, "", 1, "all of 2 tests pass");
    expect_score("class Solution:\n    def add(self, a: List[int], b): return a + b", CALLS, "", 1, "");
    expect_score("def add(a, b): print('noise'); return a + b", CALLS, "", 1, "");
    expect_score("def add(a, b): return 3", CALLS, "", 0, "test 2 of 2: wrong output: 3");
    expect_score("def sub(a, b): return a + b", CALLS, "", 0, "test 1 of 2: KeyError: 'Solution'");
    expect_score("def f(x): return 1 << 70",
                 "{\"fn_name\":\"f\",\"inputs\":[[7]],\"outputs\":[\"1180591620717411303424\"]}", "", 1, "");
    expect_score("def f(x): return float('inf')", "{\"fn_name\":\"f\",\"inputs\":[[7]],\"outputs\":[\"Infinity\"]}", "",
                 1, "");
    expect_score("def f(x): return (x, {2, 1})", "{\"fn_name\":\"f\",\"inputs\":[[7]],\"outputs\":[[7,[1,2]]]}", "", 1,
                 "");
}

#define ASSERTS                                                                                                        \
    "{\"entry_point\":\"add\",\"asserts\":[\"def check(f):\\n    assert f(1, 2) == 3\\n\",\"assert add(2, 2) == 4\"]}"

FIBER_TEST(asserts_are_run_after_the_program)
{
    expect_score("def add(a, b): return a + b", ASSERTS, "", 1, "all of 2 tests pass");
    expect_score("def add(a, b): return 3", ASSERTS, "", 0, "test 2 of 2: AssertionError");
    expect_score("import os\nos._exit(0)", ASSERTS, "", 0, "test 1 of 2: it ended early");
    expect_score("def add(a, b):\n    import os\n    os._exit(0)", ASSERTS, "", 0, "it ended early");
    expect_score("import sys\nsys.exit(0)", ASSERTS, "", 0, "it ended early");
}

FIBER_TEST(what_is_expected_is_not_inside)
{
    expect_score("import gc, glob, os, sys\n"
                 "for path in glob.glob('/run/sluice/*') + glob.glob('/proc/[0-9]*/environ'):\n"
                 "    try:\n        print(open(path, 'rb').read())\n    except OSError: pass\n"
                 "frame = sys._getframe()\n"
                 "while frame:\n    print(frame.f_locals); frame = frame.f_back\n",
                 "{\"inputs\":[\"x\"],\"outputs\":[\"the-expected-word\"]}", ",\"checker\":\"words\"", 0,
                 "wrong output");
    struct job eval = judge_with(
        "import glob\n"
        "for path in glob.glob('/run/sluice/*') + glob.glob('/workspace/*') + glob.glob('/tmp/*'):\n"
        "    try: assert 'the-expected' + '-word' not in open(path, errors='replace').read()\n"
        "    except OSError: pass\n"
        "for path in glob.glob('/proc/[0-9]*/mem'):\n"
        "    if path.split('/')[2] != str(__import__('os').getpid()):\n"
        "        try: open(path, 'rb'); print('read', path)\n"
        "        except OSError: pass\n"
        "print('nothing')",
        "{\"inputs\":[\"x\"],\"outputs\":[\"nothing\"]}", "", "");
    expect(&eval, OUTCOME_OK, "all of 1 tests pass");
    end_job(&eval);
}

#define ONE "{\"inputs\":[\"1 2\",\"1 2\"],\"outputs\":[\"3\",\"3\"]}"
#define FIRST_ELSE(bomb)                                                                                               \
    ADD "import os\nif not os.path.exists('/tmp/seen'):\n    open('/tmp/seen', 'w')\n    " bomb "\nprint(a + b)"

FIBER_TEST(a_bomb_fails_its_own_test_and_no_other)
{
    const char *more = ",\"score\":\"fraction\",\"test_s\":0.5";
    expect_score(FIRST_ELSE("while True: pass"), ONE, more, 0.5, "test 1 of 2: its CPU time is used up");
    expect_score(FIRST_ELSE("import time; time.sleep(100)"), ONE, more, 0.5, "test 1 of 2: it lasted too long");
    expect_score(FIRST_ELSE("while True: print('x' * 65536)"), ONE, more, 0.5, "test 1 of 2: it wrote too much");
    expect_score(FIRST_ELSE("x = ' ' * (1 << 40)"), ONE, more, 0.5, "test 1 of 2: MemoryError");
    expect_score(FIRST_ELSE("os.fork() or os.setsid() or __import__('time').sleep(100)"), ONE, more, 1, "all of 2");
    expect_score(FIRST_ELSE("os.kill(os.getppid(), 9)"), ONE, more, 0.5, "test 1 of 2: it killed what judges it");
    expect_score(FIRST_ELSE("os.kill(-1, 9)"), ONE, more, 0.5, "test 1 of 2");
}

/* It ends by its time, or by the sandbox's limit, and then with it what would come after. */
FIBER_TEST(a_fork_bomb_is_a_reward_and_not_a_broken_evaluator)
{
    struct job eval = judge_with(FIRST_ELSE("while True: os.fork()"), ONE, ",\"score\":\"fraction\",\"test_s\":0.5",
                                 "");
    expect(&eval, OUTCOME_OK, "test 1 of 2: ");
    assert_true(eval.result.verdict.has_reward && eval.result.verdict.reward <= 0.5);
    end_job(&eval);
}

FIBER_TEST(a_program_that_goes_over_a_limit_of_the_sandbox_has_failed)
{
    struct job eval = judge_with(
        "import os\nfor i in range(64):\n    if os.fork() == 0:\n        x = bytearray(24 << 20)\n"
        "        for k in range(0, len(x), 4096): x[k] = 1\n        __import__('time').sleep(9)\n"
        "__import__('time').sleep(9)",
        ONE, "", ",\"limits\":{\"memory_mib\":128}");
    expect(&eval, OUTCOME_OK, "it went over the sandbox's memory limit");
    assert_true(eval.result.verdict.has_reward && eval.result.verdict.reward == 0);
    end_job(&eval);
}

/* As a program that is slow on each of many tests is. */
FIBER_TEST(a_program_that_uses_up_the_time_of_all_tests_has_failed_those_that_are_left)
{
    expect_score(
        "import os, signal, time\nif input() == '2':\n    os.kill(os.getppid(), signal.SIGSTOP)\n    time.sleep(60)\n"
        "print(7)",
        "{\"inputs\":[\"1\",\"2\",\"1\",\"1\"],\"outputs\":[\"7\",\"7\",\"7\",\"7\"]}",
        ",\"score\":\"fraction\"},\"limits\":{\"eval_s\":5", 0.25, "test 2 of 4: limits.eval_s is used up");
}

/* ---- ways to cheat ------------------------------------------------------------------------------------- */

FIBER_TEST(cheating_by_words_early_ends_and_waiting_is_no_right_output)
{
    static const char *const programs[] = {
        "print('PASSED\\n>>>>> All tests pass\\nOK')",
        "import os\nos._exit(0)",
        "import sys\nsys.exit(0)",
        "import atexit, os\natexit.register(os._exit, 0)\nraise ValueError",
        "print('{\"status\": 0, \"end\": \"ok\"}')",
        "print('3\\n7\\n11')",
        "import glob\nfor path in glob.glob('/run/sluice/*') + glob.glob('/tests/*'):\n    try: "
        "print(open(path).read())\n"
        "    except (OSError, ValueError): pass",
        "import time\nend = time.time() + 3600\nwhile time.time() < end: time.sleep(60)",
    };
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
        expect_score(programs[i], SUMS, ",\"score\":\"fraction\",\"test_s\":0.5", 0, "test 1 of 3: ");
}

FIBER_TEST(cheating_by_a_disk_that_is_full_fails_its_own_test)
{
    struct job eval = judge_with(FIRST_ELSE("for i in range(10000): open(f'/tmp/{i}', 'wb').write(bytes(1 << 20))"),
                                 ONE, ",\"score\":\"fraction\"", ",\"limits\":{\"disk_mib\":16}");
    expect(&eval, OUTCOME_OK, "test 1 of 2: ");
    assert_true(eval.result.verdict.has_reward && eval.result.verdict.reward <= 0.5);
    end_job(&eval);
}

/* Of the agent's files there is the program alone. */
FIBER_TEST(cheating_by_what_python_reads_of_the_agents_home_does_not_reach_the_tests)
{
#define LEFT(program)                                                                                                  \
    "{\"task\":\"t\",\"prompt\":\"d=$(python3 -m site --user-site); mkdir -p $d; echo 'import os; os._exit(0)' | tee " \
    "$d/usercustomize.py $d/a.pth json.py sitecustomize.py code.py > /dev/null; echo '#!/bin/sh' > python3; chmod "    \
    "755 "                                                                                                             \
    "python3; echo '" program "' > main.py\",\"eval\":{\"kind\":\"code\",\"source\":\"main.py\",\"tests\":" SUMS "}}"
    expect_reward(LEFT("print(3)"), 0.0, "test 2 of 3: wrong output: 3");
    expect_reward(LEFT("print(sum(map(int, input().split())))"), 1.0, "all of 3 tests pass");
}

/* They run where the program does: what is expected belongs into outputs. */
FIBER_TEST(cheating_by_reading_the_asserts_counts)
{
    expect_score("import re\ntold = open('/run/sluice/input').read()\n"
                 "def add(a, b): return int(re.search(rf'{a}, {b}\\) == (\\d+)', told)[1])",
                 ASSERTS, "", 1, "all of 2 tests pass");
}

FIBER_TEST(a_program_may_be_a_file_that_the_agent_left)
{
    const char *json = "{\"task\":\"t\",\"prompt\":\"echo 'print(sum(map(int, input().split())))' > main.py\","
                       "\"eval\":{\"kind\":\"code\",\"source\":\"main.py\",\"tests\":" SUMS "}}";
    expect_reward(json, 1.0, "all of 3 tests pass");
    expect_reward(
        "{\"task\":\"t\",\"prompt\":\"true\",\"eval\":{\"kind\":\"code\",\"source\":\"main.py\",\"tests\":" SUMS "}}",
        0.0, "there is no program: main.py");
    expect_reward("{\"task\":\"t\",\"prompt\":\"mkfifo "
                  "main.py\",\"eval\":{\"kind\":\"code\",\"source\":\"main.py\",\"tests\":" SUMS "}}",
                  0.0, "main.py");
}

FIBER_TEST(each_test_is_in_the_verdict)
{
    struct job eval = judge_with(ADD "print(a + b if a < 5 else 0)", SUMS, ",\"score\":\"fraction\"", "");
    const struct verdict *verdict = &eval.result.verdict;
    assert_non_null(verdict->tests);
    assert_int_equal(verdict->tests->passed, 2);
    assert_int_equal(verdict->tests->failed, 1);
    assert_string_equal(verdict->tests->list[2].name, "3");
    assert_string_equal(verdict->tests->list[2].message, "wrong output: 0");
    assert_string_equal(verdict->metrics[1].name, "tests_passed");
    assert_true(verdict->metrics[1].value == 2);
    end_job(&eval);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_kinds, tear_down_kinds)

/* ---- checkers that come with the task ---------------------------------------------------------------- */

/* Right are two numbers whose sum is the expected one. */
#define PAIRS "{\"inputs\":[\"5\\n\",\"9\\n\"],\"outputs\":[\"5\\n\",\"9\\n\"]}"
#define CHECKED(path, text, mode)                                                                                      \
    ",\"checker\":\"program\",\"checker_program\":\"" path "\",\"files\":[{\"path\":\"" path "\",\"mode\":\"" mode     \
    "\",\"text\":\"" text "\"}]"
#define SUM_PY                                                                                                         \
    "import sys\\nasked, given, expected = (open(path).read() for path in sys.argv[1:])\\n"                            \
    "if expected.strip() == '9' and 'broken' in given: 1/0\\n"                                                         \
    "words = given.split()\\nif len(words) != 2: sys.exit(2)\\n"                                                       \
    "if 'slow' in given:\\n    import time; time.sleep(60)\\n"                                                         \
    "if sum(map(int, words)) != int(expected): print('the sum is', sum(map(int, words))); sys.exit(1)\\n"              \
    "assert asked == expected\\n"
#define SUM CHECKED("/eval/sum.py", SUM_PY, "0644")

FIBER_TEST(a_checker_of_the_task_accepts_many_answers)
{
    expect_score("n = int(input())\nprint(n - 1, 1)", PAIRS, SUM, 1, "all of 2 tests pass");
    expect_score("n = int(input())\nprint(n + 2, -2)", PAIRS, SUM, 1, "all of 2 tests pass");
    expect_score("n = int(input())\nprint(n, 1)", PAIRS, SUM, 0, "test 1 of 2: wrong output: the sum is 6");
    expect_score("print(input())", PAIRS, SUM, 0, "test 1 of 2: wrong form of output");
    expect_score("n = int(input())\nprint(n if n < 9 else 0, 0)", PAIRS, SUM ",\"score\":\"fraction\"", 0.5,
                 "test 2 of 2");
    expect_score("def f(n): return [n, 0]", "{\"fn_name\":\"f\",\"inputs\":[[4]],\"outputs\":[4]}",
                 CHECKED("c.py",
                         "import json, sys\\nasked, given, expected = (json.load(open(p)) for p in sys.argv[1:])\\n"
                         "sys.exit(int(sum(given) != expected or asked != [4]))",
                         "0644"),
                 1, "all of 1 tests pass");
}

FIBER_TEST(a_checker_may_be_any_executable)
{
    expect_score("print(input())", PAIRS,
                 CHECKED("bin/it's $(a) checker", "#!/bin/bash\\ncmp -s \\\"$2\\\" \\\"$3\\\"\\n", "0755"), 1,
                 "all of 2 tests pass");
    expect_score("print(0)", PAIRS, CHECKED("/eval/check", "#!/bin/bash\\ncmp -s \\\"$2\\\" \\\"$3\\\"\\n", "0755"), 0,
                 "test 1 of 2: wrong output");
}

static void expect_fault(const char *program, const char *more, const char *limits, const char *words)
{
    struct job eval = judge_with(program, PAIRS, more, limits);
    expect(&eval, OUTCOME_TASK, words);
    assert_false(eval.result.verdict.has_reward);
    end_job(&eval);
}

FIBER_TEST(a_checker_at_fault_is_no_reward)
{
    expect_fault("n = int(input())\nprint(n, 0 if n < 9 else 'broken')", SUM, "",
                 "test 2 of 2: eval.checker_program is at fault, its exit status is 3: ZeroDivisionError");
    expect_fault("print(1)", CHECKED("/eval/c", "#!/bin/bash\\necho no gold; exit 3", "0755"), "",
                 "eval.checker_program is at fault, its exit status is 3: no gold");
    expect_fault("print(1)", CHECKED("/eval/c", "#!/bin/bash\\nexit 7", "0755"), "", "its exit status is 7");
    expect_fault("print(1)", CHECKED("/eval/c", "#!/bin/bash\\nkill -9 $$", "0755"), "",
                 "eval.checker_program is at fault");
    expect_fault("print(1)", CHECKED("/eval/c", "no program", "0644"), "", "eval.checker_program is at fault");
    expect_fault("print(1)", CHECKED("/eval/c", "#!/bin/bash\\nsleep 60", "0755"), ",\"limits\":{\"command_s\":1}",
                 "eval.checker_program was stopped after");
}

FIBER_TEST(neither_the_checker_nor_what_is_expected_is_where_the_candidate_runs)
{
    expect_score("import glob, os\nfound = [p for p in glob.glob('/run/sluice/*') + ['/eval/sum.py'] if 'expected' in "
                 "p or 'sum' in p and "
                 "os.path.exists(p)]\nn = int(input())\nprint(n if not found else 10**6, 0)",
                 PAIRS, SUM, 1, "all of 2 tests pass");
}

static int group(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_program_is_run_on_each_input),
        TEST(an_answer_without_a_program_is_a_reward_of_0),
        TEST(a_function_is_called_with_each_input),
        TEST(asserts_are_run_after_the_program),
        TEST(what_is_expected_is_not_inside),
        TEST(a_bomb_fails_its_own_test_and_no_other),
        TEST(a_fork_bomb_is_a_reward_and_not_a_broken_evaluator),
        TEST(a_program_that_goes_over_a_limit_of_the_sandbox_has_failed),
        TEST(a_program_that_uses_up_the_time_of_all_tests_has_failed_those_that_are_left),
        TEST(cheating_by_words_early_ends_and_waiting_is_no_right_output),
        TEST(cheating_by_a_disk_that_is_full_fails_its_own_test),
        TEST(cheating_by_what_python_reads_of_the_agents_home_does_not_reach_the_tests),
        TEST(cheating_by_reading_the_asserts_counts),
        TEST(a_program_may_be_a_file_that_the_agent_left),
        TEST(each_test_is_in_the_verdict),
        TEST(a_checker_of_the_task_accepts_many_answers),
        TEST(a_checker_may_be_any_executable),
        TEST(a_checker_at_fault_is_no_reward),
        TEST(neither_the_checker_nor_what_is_expected_is_where_the_candidate_runs),
    };
    int failed = cmocka_run_group_tests_name("code", tests, NULL, NULL);
    free(agent_output);
    agent_output = NULL;
    return failed;
}

int main(void) { return run_as_everyone(group); }
