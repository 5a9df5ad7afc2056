/* Answers that are the same as mathematics, and answers that are not: the pairs of math_answers.txt. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/base/buffer.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/text.h"
#include "workers/evaluators/math/answer.h"
#include "workers/evaluators/math/parse/scan.h"

static const struct math_options exact = {0};

static enum math_verdict compare(const char *wanted, const char *given)
{
    return math_compare(slice_from_str(wanted), slice_from_str(given), &exact);
}

/* ---- the table --------------------------------------------------------------------------------- */

struct pair {
    const char *mark;
    char *a, *b;
};

/* Cuts `line` at its mark; false: it is blank or a comment. */
static bool read_pair(char *line, struct pair *ret)
{
    static const char *const marks[] = {"  ===  ", "  =/=  ", "  <==  ", "  =~=  "};
    line[strcspn(line, "\n")] = '\0';
    if (line[0] == '#' || line[0] == '\0')
        return false;
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        char *at = strstr(line, marks[i]);
        if (!at)
            continue;
        *at = '\0';
        *ret = (struct pair){marks[i], line, at + strlen(marks[i])};
        return true;
    }
    fail_msg("no mark in: %s", line);
    return false;
}

static size_t complain(const struct pair *pair, const char *wanted, const char *given, enum math_verdict verdict)
{
    print_error("%s %s %s: the verdict on the second, where the first is the task's, is %d\n", wanted, pair->mark,
                given, (int)verdict);
    return 1;
}

static size_t check_pair(const struct pair *pair)
{
    const struct math_options near = {.relative = 0.01};
    enum math_verdict there = compare(pair->a, pair->b), back = compare(pair->b, pair->a);
    bool same = strstr(pair->mark, "==="), finished = strstr(pair->mark, "<==");
    size_t wrong = 0;
    if ((there == MATH_EQUAL) != (same || finished))
        wrong += complain(pair, pair->a, pair->b, there);
    if (finished ? back != MATH_UNFINISHED : (back == MATH_EQUAL) != same)
        wrong += complain(pair, pair->b, pair->a, back);
    if (strstr(pair->mark, "=~=") &&
        math_compare(slice_from_str(pair->a), slice_from_str(pair->b), &near) != MATH_EQUAL)
        wrong += complain(pair, pair->a, pair->b, MATH_DIFFERENT);
    return wrong;
}

static void every_pair_of_the_table_is_judged_as_it_says(void **state)
{
    (void)state;
    char path[4096];
    snprintf(path, sizeof(path), "%s/tests/workers/evaluators/math_answers.txt", getenv("SLUICE_SOURCE_DIR"));
    AUTO_FCLOSE FILE *file = fopen(path, "r");
    AUTO_FREE char *line = NULL;
    size_t size = 0, count = 0, wrong = 0;
    struct pair pair;
    assert_non_null(file);
    while (getline(&line, &size, file) > 0)
        if (read_pair(line, &pair)) {
            wrong += check_pair(&pair);
            wrong += compare(pair.a, pair.a) != MATH_EQUAL || compare(pair.b, pair.b) != MATH_EQUAL;
            count++;
        }
    assert_true(count > 350);
    assert_int_equal(wrong, 0);
}

/* ---- what is not in it --------------------------------------------------------------------------- */

static void what_is_empty_equals_nothing(void **state)
{
    (void)state;
    assert_int_not_equal(compare("", ""), MATH_EQUAL);
    assert_int_not_equal(compare("5", ""), MATH_EQUAL);
    assert_int_not_equal(compare("", "5"), MATH_EQUAL);
    assert_int_not_equal(compare("$$", "$$ $$"), MATH_EQUAL);
}

static void a_tolerance_is_kept_to_its_end_and_no_further(void **state)
{
    (void)state;
    struct math_options tenth = {.absolute = 0.1}, percent = {.relative = 0.01},
                        both = {.relative = 0.01, .absolute = 5};
    assert_int_equal(math_compare(slice_from_str("2"), slice_from_str("2.1"), &tenth), MATH_EQUAL);
    assert_int_equal(math_compare(slice_from_str("2"), slice_from_str("2.1001"), &tenth), MATH_DIFFERENT);
    assert_int_equal(math_compare(slice_from_str("200"), slice_from_str("202"), &percent), MATH_EQUAL);
    assert_int_equal(math_compare(slice_from_str("200"), slice_from_str("202.01"), &percent), MATH_DIFFERENT);
    assert_int_equal(math_compare(slice_from_str("200"), slice_from_str("204"), &both), MATH_EQUAL);
    assert_int_equal(math_compare(slice_from_str("0"), slice_from_str("0.001"), &percent), MATH_DIFFERENT);
    assert_int_equal(math_compare(slice_from_str("2x"), slice_from_str("2.001x"), &percent), MATH_DIFFERENT);
}

static void what_cannot_be_read_equals_its_own_text_alone(void **state)
{
    (void)state;
    assert_int_equal(compare("\\weird{", "\\weird{"), MATH_EQUAL);
    assert_int_equal(compare("5", "\\weird{5"), MATH_NOT_UNDERSTOOD);
    assert_int_equal(compare("5", "5}"), MATH_NOT_UNDERSTOOD);
    assert_int_equal(compare("5", "5 6"), MATH_NOT_UNDERSTOOD);
}

/* ---- hostile answers -------------------------------------------------------------------------------- */

/* `count` times `text`; the caller frees. */
static char *repeat(const char *text, size_t count)
{
    struct buffer all = {0};
    for (size_t i = 0; i < count; i++)
        buffer_append_str(&all, text);
    return buffer_take_str(&all);
}

/* What takes 5 ms takes more with sanitizers, and more yet on a busy machine; what hangs takes hours. */
enum { PATIENCE_MS = 20000 };

static void assert_cheap(const char *wanted, const char *given)
{
    int64_t start_ms = clock_ms();
    assert_int_not_equal(compare(wanted, given), MATH_EQUAL);
    assert_int_not_equal(compare(given, wanted), MATH_EQUAL);
    int64_t took_ms = clock_ms() - start_ms;
    if (took_ms > PATIENCE_MS)
        fail_msg("%.40s... took %lld ms", given, (long long)took_ms);
}

static void hostile_text_costs_little_and_equals_nothing(void **state)
{
    (void)state;
    static const char *const parts[] = {
        "{",
        "(",
        "\\{",
        "\\frac",
        "\\frac{",
        "\\frac{1}{",
        "\\text{",
        "\\sqrt[",
        "\\sqrt{",
        "|",
        ",",
        "1,",
        "-",
        "+-",
        "\\pm ",
        "1\\pm2,",
        "^",
        "2^",
        "x_",
        "9",
        "1,000",
        "((1,",
        "x=",
        "\\",
        "1/",
        "\xff",
        "!",
        "7!",
        "sin ",
        "\\sin",
        "a",
        "x,",
        "(1,2),",
        "1 ",
        "\\cup",
        "'",
        "%",
        "1.5e9",
        "0.1",
        "\\binom{9}{4}",
        "\\begin{pmatrix}",
        "\\sum_{",
        "x^{",
        "(x,\\sqrt{y}),",
        "\\text{a}",
    };
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        AUTO_FREE char *text = repeat(parts[i], (MATH_TEXT_MAX - 1) / strlen(parts[i]));
        AUTO_FREE char *other = NULL;
        assert_true(asprintf(&other, "%s7", text) > 0);
        assert_cheap("\\sqrt{2}x+1", text);
        if (compare(text, text) == MATH_EQUAL && strlen(other) <= MATH_TEXT_MAX)
            compare(text, other);
    }
}

static void towers_of_powers_and_factorials_are_not_computed(void **state)
{
    (void)state;
    static const char *const towers[] = {"10^{10^{10}}",
                                         "9^{9^{9^{9^{9}}}}",
                                         "(((9!)!)!)!",
                                         "99999999!",
                                         "\\binom{9999999}{4999999}",
                                         "2^{99999999999999}",
                                         "1e9999",
                                         "10^{4000}",
                                         "0.5^{-99999999999}"};
    for (size_t i = 0; i < sizeof(towers) / sizeof(towers[0]); i++)
        assert_cheap("5", towers[i]);
}

static void nesting_of_ten_thousand_levels_is_refused_not_followed(void **state)
{
    (void)state;
    static const char *const open[] = {"{", "(", "\\{", "\\frac{1}{", "\\sqrt{", "-("};
    static const char *const close[] = {"}", ")", "\\}", "}", "}", ")"};
    for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++)
        for (size_t levels = 100; levels <= 10000; levels *= 10) {
            AUTO_FREE char *before = repeat(open[i], levels);
            AUTO_FREE char *after = repeat(close[i], levels);
            AUTO_FREE char *both = NULL;
            assert_true(asprintf(&both, "%s5%s", before, after) > 0);
            assert_cheap("5", both);
        }
}

/* Of every way to nest, each depth up to one that is refused; and chains that lean to one side. */
static void *nest(void *unused)
{
    static const char *const open[] = {"{",      "(", "\\{", "\\frac{1}{", "\\sqrt{", "-(", "x^{",
                                       "\\sin(", "|", "[1,", "\\{1,\\pm ", "1<(",     "-",  "\\sum_{"};
    static const char *const close[] = {"}", ")", "\\}", "}", "}", ")", "}", ")", "|", ")", "\\}", ")", "", "}x"};
    static const char *const chains[] = {"x/",     "x'",      "x!", "2^", "x_1", "1\\setminus ",
                                         "\\sin ", "\\sum x", "x<", "x:", "x%"};
    for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++)
        for (size_t levels = 1; levels < 50; levels++) {
            AUTO_FREE char *before = repeat(open[i], levels);
            AUTO_FREE char *after = repeat(close[i], levels);
            AUTO_FREE char *a = NULL, *b = NULL;
            if (asprintf(&a, "%ssqrt(y+2)%s", before, after) > 0 && asprintf(&b, "%ssqrt(y+3)%s", before, after) > 0)
                compare(a, b);
        }
    for (size_t i = 0; i < sizeof(chains) / sizeof(chains[0]); i++)
        for (size_t links = 1; links < 1000; links += links < 60 ? 1 : 100) {
            AUTO_FREE char *chain = repeat(chains[i], links);
            AUTO_FREE char *a = NULL, *b = NULL;
            if (asprintf(&a, "%s2", chain) > 0 && asprintf(&b, "%s3", chain) > 0)
                compare(a, b);
        }
    return unused;
}

static void the_stack_of_a_fiber_is_enough_for_whatever_is_read(void **state)
{
    (void)state;
    enum { STACK_BYTES = 224 * 1024 }; /* of 256 KiB (runtime/fiber.c), with sanitizers */
    pthread_attr_t attributes;
    pthread_t thread;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, STACK_BYTES), 0);
    assert_int_equal(pthread_create(&thread, &attributes, nest, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
}

static void an_answer_of_a_megabyte_is_not_read(void **state)
{
    (void)state;
    AUTO_FREE char *long_text = repeat("1+", 524288);
    assert_int_equal(compare("5", long_text), MATH_TOO_LONG);
    assert_int_equal(compare(long_text, long_text), MATH_EQUAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_of_the_table_is_judged_as_it_says),
        cmocka_unit_test(what_is_empty_equals_nothing),
        cmocka_unit_test(a_tolerance_is_kept_to_its_end_and_no_further),
        cmocka_unit_test(what_cannot_be_read_equals_its_own_text_alone),
        cmocka_unit_test(hostile_text_costs_little_and_equals_nothing),
        cmocka_unit_test(towers_of_powers_and_factorials_are_not_computed),
        cmocka_unit_test(nesting_of_ten_thousand_levels_is_refused_not_followed),
        cmocka_unit_test(the_stack_of_a_fiber_is_enough_for_whatever_is_read),
        cmocka_unit_test(an_answer_of_a_megabyte_is_not_read),
    };
    return cmocka_run_group_tests_name("math", tests, NULL, NULL);
}
