/* From what a run of tests printed to a verdict: SWE-bench's rules, and what is no proof of anything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "workers/evaluators/swe/swe_verdict.h"

#define NONCE "00112233445566778899aabbccddeeff"
#define BEGIN "+ : '>>>>> Start Test Output " NONCE "'\n"
#define END(status) "+ : '>>>>> End Test Output " NONCE " '" status "\n"

static const char *must_pass[] = {"a::t", "a::u"}, *must_not_fail[] = {"a::v"};

static struct task_swe task_of(const char *parser, const char *type)
{
    return (struct task_swe){.fail_to_pass = must_pass,
                             .fail_to_pass_count = 2,
                             .pass_to_pass = must_not_fail,
                             .pass_to_pass_count = 1,
                             .log_parser = parser,
                             .eval_type = type,
                             .witness = "none"};
}

static void judge(const struct task_swe *swe, struct swe_run run, struct verdict *verdict)
{
    memcpy(run.nonce, NONCE, sizeof(run.nonce));
    memcpy(run.witness_nonce, NONCE, sizeof(run.nonce));
    swe_judge(swe, &run, verdict);
}

/* 1, 0, or -1: no reward; and the verdict's words. */
static int reward_of(const struct task_swe *swe, struct swe_run run, const char *words)
{
    AUTO_VERDICT verdict = {0};
    judge(swe, run, &verdict);
    if (!strstr(verdict_why(&verdict), words))
        fail_msg("\"%s\" does not say \"%s\"", verdict_why(&verdict), words);
    return verdict.has_reward ? (int)verdict.reward : -1;
}

static struct swe_run run_of(const char *log) { return (struct swe_run){.log = slice_from_str(log)}; }

#define ALL "PASSED a::t\nPASSED a::u\nPASSED a::v\n"

static void tests_that_are_as_they_must_be_resolve(void **state)
{
    const struct task_swe swe = task_of("pytest", "pass_and_fail");
    (void)state;
    assert_int_equal(reward_of(&swe, run_of("noise\n" BEGIN ALL END("0")), "resolved: 2 of 2"), 1);
    assert_int_equal(reward_of(&swe, run_of(BEGIN "PASSED a::t\nXFAIL a::u\nSKIPPED a::v\n" END("0")), "resolved"), 1);
    assert_int_equal(reward_of(&swe, run_of(BEGIN ALL "FAILED b::w - other\n" END("1")), "resolved"), 1);
}

static void each_that_is_not_is_named(void **state)
{
    const struct task_swe swe = task_of("pytest", "pass_and_fail");
    (void)state;
    assert_int_equal(reward_of(&swe, run_of(BEGIN "PASSED a::t\nSKIPPED a::u\nPASSED a::v\n" END("0")), "a::u SKIPPED"),
                     0);
    assert_int_equal(reward_of(&swe, run_of(BEGIN "PASSED a::t\nPASSED a::u\n" END("0")), "a::v is missing"), 0);
    assert_int_equal(reward_of(&swe, run_of(BEGIN "PASSED a::t\nPASSED a::u\nERROR a::v\n" END("1")), "a::v ERROR"), 0);
}

static void fail_only_asks_for_no_more_than_no_failure(void **state)
{
    const struct task_swe swe = task_of("pytest", "fail_only");
    (void)state;
    assert_int_equal(reward_of(&swe, run_of(BEGIN "PASSED b::x\nERROR a::v\n" END("1")), "resolved"), 1);
    assert_int_equal(reward_of(&swe, run_of(BEGIN "FAILED a::t\n" END("1")), "a::t FAILED"), 0);
    assert_int_equal(reward_of(&swe, run_of(BEGIN END("0")), "the log names no test"), 0);
}

static void a_name_that_was_cut_stands_for_those_that_agree(void **state)
{
    const char *cut[] = {"a::t[log(ph"};
    struct task_swe swe = task_of("pytest_v2", "pass_and_fail");
    (void)state;
    swe.fail_to_pass = cut;
    swe.fail_to_pass_count = 1;
    swe.pass_to_pass_count = 0;
    assert_int_equal(
        reward_of(&swe, run_of(BEGIN "PASSED a::t[log(ph x)]\nXFAIL a::t[log(ph y)]\n" END("0")), "resolved"), 1);
    assert_int_equal(
        reward_of(&swe, run_of(BEGIN "PASSED a::t[log(ph x)]\nFAILED a::t[log(ph y)]\n" END("1")), "missing"), 0);
    cut[0] = "a::t";
    assert_int_equal(reward_of(&swe, run_of(BEGIN "PASSED a::t2\n" END("0")), "missing"), 0);
}

static void expected_tests_are_all_there_are(void **state)
{
    const char *expected[] = {"t\tPASSED", "u\tFAILED"};
    struct task_swe swe = task_of("r2e", "pass_and_fail");
    (void)state;
    swe.expected = expected;
    swe.expected_count = 2;
#define R2E(more) BEGIN "= short test summary info =\nPASSED a.py::t\nFAILED a.py::u - x\n" more END("1")
    assert_int_equal(reward_of(&swe, run_of(R2E("")), "resolved"), 1);
    assert_int_equal(reward_of(&swe, run_of(R2E("PASSED a.py::w\n")), "3 tests, and 2 are expected"), 0);
    assert_int_equal(reward_of(&swe, run_of(R2E("PASSED a.py::u\n")), "u PASSED"), 0);
}

static void marks_count_once(void **state)
{
    const struct task_swe swe = task_of("pytest", "pass_and_fail");
    struct swe_run late = run_of(BEGIN ALL);
    (void)state;
    late.timed_out = true;
    assert_int_equal(reward_of(&swe, run_of(BEGIN ALL END("0") BEGIN ALL END("0")), "printed twice"), 0);
    assert_int_equal(reward_of(&swe, run_of(BEGIN ALL END("0") END("0")), "printed twice"), 0);
    assert_int_equal(reward_of(&swe, run_of(BEGIN ALL), "ended their script"), 0);
    assert_int_equal(reward_of(&swe, late, "time was up"), 0);
    assert_int_equal(
        reward_of(&swe, run_of(">>>>> Start Test Output\n" ALL ">>>>> End Test Output\n"), "did not begin"), -1);
    assert_int_equal(reward_of(&swe, run_of("bash: conda: command not found\n"), "conda"), -1);
    assert_int_equal(reward_of(&swe,
                               run_of("+ echo '>>>>> Start Test Output " NONCE "'\n>>>>> Start Test Output " NONCE
                                      "\n" ALL END("0")),
                               "resolved"),
                     1);
}

static void an_exit_status_must_agree_with_the_log(void **state)
{
    const struct task_swe swe = task_of("pytest", "pass_and_fail");
    (void)state;
    assert_int_equal(reward_of(&swe, run_of(BEGIN ALL END("1")), "exit status"), 0);
    assert_int_equal(reward_of(&swe, run_of(BEGIN ALL END("0") ">>>>> Test Exit Code: 2\n"), "exit status"), 0);
    assert_int_equal(reward_of(&swe, run_of(BEGIN ALL END("1") ">>>>> Test Exit Code: 0\n"), "exit status"), 0);
    assert_int_equal(reward_of(&swe, run_of(BEGIN ALL "Cannot allocate memory\n" END("1")), "out of memory"), 0);
}

static void a_runner_that_counts_must_have_counted(void **state)
{
    struct task_swe swe = task_of("django", "pass_and_fail");
    (void)state;
#define OK "a::t ... ok\na::u ... ok\na::v ... ok\n"
    assert_int_equal(reward_of(&swe, run_of(BEGIN OK "Ran 3 tests in 0.1s\n\nOK\n" END("0")), "resolved"), 1);
    assert_int_equal(reward_of(&swe, run_of(BEGIN OK END("0")), "counts no tests"), 0);
}

static void a_witness_must_have_seen_it(void **state)
{
    const struct task_swe swe = task_of("pytest", "pass_and_fail");
    struct swe_run run = run_of(BEGIN ALL END("0"));
    (void)state;
    run.has_witness = true;
    assert_int_equal(reward_of(&swe, run, "has not loaded the witness"), 0);
    run.has_begun = true;
    assert_int_equal(reward_of(&swe, run, "did not come to its end"), 0);
    run.witness = slice_from_str("ffffffffffffffffffffffffffffffff 0\n" ALL);
    assert_int_equal(reward_of(&swe, run, "did not come to its end"), 0);
    run.witness = slice_from_str(NONCE " 0\n" ALL);
    assert_int_equal(reward_of(&swe, run, "resolved"), 1);
    run.witness = slice_from_str(NONCE " 0\nPASSED a::t\nPASSED a::v\n");
    assert_int_equal(reward_of(&swe, run, "a::u PASSED in the log, and for pytest it did not run"), 0);
    run.witness = slice_from_str(NONCE " 1\nPASSED a::t\nFAILED a::u\nPASSED a::v\n");
    assert_int_equal(reward_of(&swe, run, "and for pytest it FAILED"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tests_that_are_as_they_must_be_resolve),
        cmocka_unit_test(each_that_is_not_is_named),
        cmocka_unit_test(fail_only_asks_for_no_more_than_no_failure),
        cmocka_unit_test(a_name_that_was_cut_stands_for_those_that_agree),
        cmocka_unit_test(expected_tests_are_all_there_are),
        cmocka_unit_test(marks_count_once),
        cmocka_unit_test(an_exit_status_must_agree_with_the_log),
        cmocka_unit_test(a_runner_that_counts_must_have_counted),
        cmocka_unit_test(a_witness_must_have_seen_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
