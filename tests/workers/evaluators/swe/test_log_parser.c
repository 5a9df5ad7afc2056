/*
 * What the parsers of logs make of what test runners print. With a parser and a file it prints that file's tests as
 * JSON; with lists of tests besides, how they are graded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>

#include "common/base/cleanup.h"
#include "workers/evaluators/swe/grading.h"
#include "workers/evaluators/swe/log_parser.h"

static const struct {
    const char *parser, *log, *tests; /* "NAME=STATUS|..." in order */
} rows[] = {
    {"pytest",
     "collected 3\nPASSED a.py::t[x-1]\nFAILED a.py::u - assert 1 == 2\nERROR a.py::v\nXFAIL b.py::w\nSKIPPED [3] "
     "a.py:7: no\n",
     "a.py::t[x-1]=PASSED|a.py::u=FAILED|a.py::v=ERROR|b.py::w=XFAIL"},
    {"pytest", "PASSED a\nFAILED a - b\r\nPASSEDx c\nPASSED\n passed d\n", "a=FAILED|c=OTHER"},
    {"pytest", "FAILED - a.py::t\n", "a.py::t=FAILED"},
    {"pytest_options", "PASSED a.py::t[/x/y/z.txt]\nPASSED a.py::u[//x/y]\nPASSED a.py::v[/a/*]\nPASSED a.py::w\n",
     "a.py::t[/z.txt]=PASSED|a.py::u[//x/y]=PASSED|a.py::v[/a/*]=PASSED|a.py::w=PASSED"},
    {"pytest_v2",
     "\x1b[32mPASSED\x1b[0m a.py::\x1b[1mt[a b]\x1b[0m\na.py::u PASSED\nFAILED a.py::v[x - y] - why\nb.py::w  skipped  "
     "SKIPPED\n",
     "a.py::t[a b]=PASSED|a.py::u=PASSED|a.py::v[x=FAILED|b.py::w skipped=SKIPPED"},
    {"matplotlib", "PASSED a.py::t[MouseButton.LEFT-MouseButton.RIGHT]\n", "a.py::t[1-3]=PASSED"},
    {"seaborn", "FAILED a.py::t - x\na.py::u PASSED [ 10%]\nPASSED a.py::v\n",
     "a.py::t=FAILED|a.py::u=PASSED|a.py::v=PASSED"},
    {"r2e",
     "PASSED no\n=== short test summary info ===\n\x1b[32mPASSED\x1b[0m r2e_tests/t.py::C::\x1b[1mm\x1b[0m\nFAILED "
     "r2e_tests/t.py::f - why - not\n",
     "C.m=PASSED|f=FAILED"},
    {"django",
     "test_a (m.C) ... ok\ntest_b (m.C) ... FAIL\ntest_c (m.C) ... skipped 'x'\ntest_d (m.C) ... ERROR\ntest_e (m.C) "
     "... noise\nok\nFAIL: test_b (m.C)\n",
     "test_a (m.C)=PASSED|test_b (m.C)=FAILED|test_c (m.C)=SKIPPED|test_d (m.C)=ERROR|test_e "
     "(m.C)=PASSED|test_b=FAILED"},
    {"django", "test_f (m.C) ... Testing against Django installed in '/x' (1 silenced).\nok\n", "test_f (m.C)=PASSED"},
    {"sympy", "test_a ok\ntest_b F\ntest_c E\n____ sympy/core/x.py:test_b ____\n",
     "sympy/core/x.py:test_b=FAILED|test_a=PASSED|test_b=FAILED|test_c=ERROR"},
    {"gotest", "=== RUN A\n--- PASS: A (0.00s)\n    --- FAIL: A/b (0.01s)\n--- SKIP: C (0.00s)\n",
     "A=PASSED|A/b=FAILED|C=SKIPPED"},
    {"maven", "+ mvn test -Dtest=a.B#c -q\n[INFO] BUILD SUCCESS\n+ mvn -Dtest=D\nBUILD FAILURE\n",
     "a.B#c=PASSED|D=FAILED"},
    {"ant", "  [junit] [PASS] a b\n [junit] [ERR] c\n", "a b=PASSED|c=FAILED"},
    {"gradle", "a.B > c PASSED\na.B > d\nnoise of it\nFAILED\n> Task :test PASSED\n", "a.B > c=PASSED|a.B > d=FAILED"},
    {"jest", "  ✓ adds (3 ms)\n  ✕ takes away\n  ○ skipped x\n", "adds=PASSED|takes away=FAILED|skipped x=SKIPPED"},
    {"jest_json", "[PASSED] a > b\n[FAILED] c\n", "a > b=PASSED|c=FAILED"},
    {"jest_files", "PASS src/a.test.js (5.2 s)\nFAIL src/b.test.js\n", "src/a.test.js=PASSED|src/b.test.js=FAILED"},
    {"vitest", " ✓ a > b 12ms\n × c\n ↓ d [skipped]\n", "a > b=PASSED|c=FAILED|d=SKIPPED"},
    {"karma", "x\nStarting browser\n  Suite\n    ✔ one\n    ✖ two\nSUMMARY:\n    ✔ three\n",
     "Suite > one=PASSED|Suite > two=FAILED"},
    {"tap", "ok 1 a b\nnot ok 2 c # why\n", "a b=PASSED|c # why=FAILED"},
    {"phpunit", "My Suite (Tests\\My)\n ✔ One\n ✘ Two\n ↩ Three\n",
     "My Suite > One=PASSED|My Suite > Two=FAILED|My Suite > Three=SKIPPED"},
    {"minitest", "T#test_a. = 0.01 s = .\nT#test_b. = 0.01 s = F\n", "T#test_a=PASSED|T#test_b=FAILED"},
    {"cucumber", "a.feature ....\nb.feature ..F\n", "a.feature=PASSED|b.feature=FAILED"},
    {"ruby_unit", "test: adds:   .: (0.1)\n  takes:  F\n  omits:  O\n", "adds=PASSED|takes=FAILED|omits=SKIPPED"},
    {"rspec", "A b - passed\nA c - failed\n", "A b=PASSED|A c=FAILED"},
    {"cargo", "test a::b ... ok\ntest c ... FAILED\ntest d ... ignored\n", "a::b=PASSED|c=FAILED"},
    {"redis", "[ok]: A (3 ms)\n[err]: B in tests/unit/x.tcl\n[skip]: C\n", "A=PASSED|B=FAILED|C=SKIPPED"},
    {"jq", "PASS: a\n FAIL: b\n", "a=PASSED|b=FAILED"},
    {"micropython", "pass  a.py\nFAIL  b.py\nskip  c.py\n", "a.py=PASSED|b.py=FAILED|c.py=SKIPPED"},
    {"googletest", "[       OK ] S.a (0 ms)\n[  FAILED  ] S.b (1 ms)\n", "S.a=PASSED|S.b=FAILED"},
};

static void format(const struct test_log *log, struct buffer *out)
{
    for (size_t i = 0; i < log->count; i++)
        buffer_printf(out, "%s%s=%s", i ? "|" : "", log->tests[i]->name, log_status_word(log->tests[i]->status));
    buffer_append(out, "", 1);
}

static void each_runner_is_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        AUTO_TEST_LOG log = {0};
        AUTO_BUFFER out = {0};
        log_parser_read(log_parser_find(rows[i].parser), slice_from_str(rows[i].log), &log);
        format(&log, &out);
        if (strcmp((char *)out.data, rows[i].tests) != 0)
            fail_msg("row %zu, %s: %s, and not %s", i, rows[i].parser, (char *)out.data, rows[i].tests);
    }
}

/* Lines of what patterns try again and again, and one without an end. */
static void a_hostile_log_takes_time_by_its_length(void **state)
{
    static const char *const parsers[] = {"pytest",     "pytest_v2", "django", "sympy",
                                          "googletest", "minitest",  "rspec",  "gradle"};
    const size_t size = 4 << 20;
    (void)state;
    uint8_t *log = malloc(size);
    for (size_t i = 0; i < size; i++)
        log[i] = (uint8_t)(i % 256 == 255 ? '\n' : "PASSED [= .\t-)(: E"[(i * 7 + i / 640) % 18]);
    memset(log, ' ', size / 4);
    for (size_t i = 0; i < sizeof(parsers) / sizeof(*parsers); i++) {
        AUTO_TEST_LOG tests = {0};
        log_parser_read(log_parser_find(parsers[i]), slice_of(log, size), &tests);
        assert_true(tests.count <= TEST_LOG_MAX && tests.bytes <= TEST_LOG_BYTES_MAX);
    }
    free(log);
}

static void a_log_whose_lines_take_a_pattern_too_long_has_overflown(void **state)
{
    AUTO_TEST_LOG log = {0};
    AUTO_BUFFER text = {0};
    (void)state;
    for (size_t i = 0; i < 20000; i++) {
        for (size_t k = 0; k < 200; k++)
            buffer_append_str(&text, k < 100 ? ". " : "=");
        buffer_append_str(&text, "\n");
    }
    log_parser_read(log_parser_find("minitest"), buffer_peek(&text), &log);
    assert_true(log.has_overflown);
    assert_int_equal(log.count, 0);
}

static void a_log_of_too_many_names_has_overflown(void **state)
{
    AUTO_TEST_LOG log = {0};
    AUTO_BUFFER text = {0};
    (void)state;
    for (size_t i = 0; i <= TEST_LOG_MAX; i++)
        buffer_printf(&text, "PASSED %zu\n", i);
    log_parser_read(log_parser_find("pytest"), buffer_peek(&text), &log);
    assert_true(log.has_overflown);
    assert_int_equal(log.count, TEST_LOG_MAX);
}

/* ---- for tests/system/service/test_swe_agreement.py ---------------------------------------------------- */

static void read_log(const char *parser, const char *path, struct test_log *ret)
{
    AUTO_BUFFER text = {0};
    AUTO_FCLOSE FILE *file = fopen(path, "re");
    for (size_t got = 1; file && got > 0; text.len += got)
        got = fread(buffer_reserve(&text, 65536), 1, 65536, file);
    log_parser_read(log_parser_find(parser), buffer_peek(&text), ret);
}

static int print(const char *parser, const char *path)
{
    AUTO_TEST_LOG log = {0};
    json_t *tests = json_object();
    read_log(parser, path, &log);
    for (size_t i = 0; i < log.count; i++)
        json_object_set_new(tests, log.tests[i]->name, json_string(log_status_word(log.tests[i]->status)));
    json_dumpf(tests, stdout, 0);
    json_decref(tests);
    return 0;
}

static const char **names_of(const json_t *list, size_t *count)
{
    const char **names = calloc(json_array_size(list) + 1, sizeof(*names));
    for (*count = 0; *count < json_array_size(list); ++*count)
        names[*count] = json_string_value(json_array_get(list, *count));
    return names;
}

/* `lists`: {"fail_to_pass": [...], "pass_to_pass": [...], "eval_type": "..."} */
static int print_grade(const char *parser, const char *path, const char *lists)
{
    AUTO_TEST_LOG log = {0};
    AUTO_VERDICT verdict = {0};
    struct swe_grade grade;
    json_t *all = json_loads(lists, 0, NULL);
    struct task_swe swe = {.eval_type = json_string_value(json_object_get(all, "eval_type"))};
    swe.fail_to_pass = names_of(json_object_get(all, "fail_to_pass"), &swe.fail_to_pass_count);
    swe.pass_to_pass = names_of(json_object_get(all, "pass_to_pass"), &swe.pass_to_pass_count);
    read_log(parser, path, &log);
    swe_grade(&swe, &log, NULL, &verdict, &grade);
    printf("%zu %zu %d", grade.fail_to_pass_good, grade.pass_to_pass_good, grade.is_resolved);
    free(swe.fail_to_pass);
    free(swe.pass_to_pass);
    json_decref(all);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_runner_is_read),
        cmocka_unit_test(a_hostile_log_takes_time_by_its_length),
        cmocka_unit_test(a_log_whose_lines_take_a_pattern_too_long_has_overflown),
        cmocka_unit_test(a_log_of_too_many_names_has_overflown),
    };
    if (argc > 2)
        return argc == 3 ? print(argv[1], argv[2]) : print_grade(argv[1], argv[2], argv[3]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
