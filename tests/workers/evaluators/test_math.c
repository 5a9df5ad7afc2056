/* Answers in \boxed{}: found, and equal or not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/base/buffer.h"
#include "common/base/clock.h"
#include "workers/evaluators/math/answer.h"

struct pair {
    const char *a, *b;
};

/* clang-format off */
static const struct pair equal[] = {
    /* whole numbers */
    {"5", "5"}, {" 5 ", "5"}, {"$5$", "5"}, {"+5", "5"}, {"-5", "\u22125"}, {"--5", "5"},
    {"007", "7"}, {"5.", "5"}, {"5.0", "5"}, {"{5}", "5"}, {"\\boxed{5}", "5"}, {"0", "-0"},
    {"\\mathbf{5}", "5"}, {"\\(5\\)", "5"},
    {"170141183460469231731687303715884105729", "170141183460469231731687303715884105729.0"},
    {"0099999999999999999999999999999999999999999999", "99999999999999999999999999999999999999999999"},
    /* thousands */
    {"1,000", "1000"}, {"1{,}000", "1000"}, {"1\\,000", "1000"}, {"1 000 000", "1000000"},
    {"-12,345.67", "-12345.67"}, {"\\$1,234", "1234"}, {"1,000,000", "1e6"},
    /* decimals and fractions */
    {"0.5", "1/2"}, {".5", "0.50"}, {"\\frac{1}{2}", "1/2"}, {"\\dfrac{1}{2}", "0.5"},
    {"\\tfrac12", "\\frac{1}{2}"}, {"\\frac1{2}", "2/4"}, {"-\\frac{1}{2}", "\\frac{-1}{2}"},
    {"\\frac{1}{-2}", "-0.5"}, {"\\frac{-1}{-2}", "1/2"}, {"\\frac{6}{3}", "2"},
    {"\\frac{1,000}{4}", "250"}, {"1/3", "2/6"}, {"\\frac{1.5}{2}", "3/4"}, {"\\cfrac{7}{8}", ".875"},
    {"22/7", "\\frac{ 22 }{ 7 }"}, {"0.1", "1/10"}, {"\\left(\\frac{1}{2}\\right)", "(1/2)"},
    /* mixed */
    {"1\\frac{1}{2}", "3/2"}, {"1 1/2", "1.5"}, {"-2\\frac13", "-7/3"}, {"2 \\tfrac{3}{4}", "2.75"},
    /* percent */
    {"50\\%", "50%"}, {"50%", "0.5"}, {"50", "50\\%"}, {"12.5\\%", "\\frac{1}{8}"}, {"5 percent", "5%"},
    /* scientific */
    {"1.5e3", "1500"}, {"1.5 \\times 10^3", "1500"}, {"1.5\\cdot10^{-3}", "0.0015"},
    {"6.02\u00d710^{23}", "6.02e23"}, {"3E2", "300"}, {"2 \\times 10^{0}", "2"},
    /* units */
    {"5 \\text{ cm}", "5"}, {"5\\text{ cm}", "5 cm"}, {"5 cm^2", "5\\text{ cm}^2"}, {"90^\\circ", "90"},
    {"90^{\\circ}", "90 \\text{ degrees}"}, {"90\u00b0", "90"}, {"\\$5", "5"}, {"5 dollars", "\\$5"},
    {"3 hours", "3\\text{ hour}"}, {"10 \\mathrm{m/s}", "10 m/s"}, {"7 \\text{ apples}", "7"},
    {"12 inches", "12 inch"}, {"5 centimeters", "5 cm"}, {"4\\text{ square units}", "4"},
    {"4 \\text{ m}^{2}", "4 m^2"},
    /* text */
    {"\\text{yes}", "yes"}, {"Yes", "\\text{yes}"}, {"\\text{(A)}", "A"}, {"(B)", "B"},
    {"\\mathrm{True}", "true"}, {"\\text{Monday}", "Monday"},
    /* expressions, by their normal form */
    {"\\sqrt{2}", "\\sqrt2"}, {"\\frac{\\sqrt{3}}{2}", "\\sqrt{3}/2"}, {"2\\pi", "2 \\pi"}, {"\u03c0", "\\pi"},
    {"x^{2}+1", "x^2 + 1"}, {"\\frac{x+1}{2}", "(x+1)/2"}, {"\\dfrac{\\pi}{4}", "\\frac{\\pi}{4}"},
    {"2\\times x", "2 \\cdot x"}, {"\\left|x\\right|", "|x|"}, {"x \\leq 3", "x\\le3"},
    {"\\sqrt[3]{5}", "\\sqrt[3]5"}, {"10^{12}", "10^{ 12 }"},
    {"\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}", "\\begin{pmatrix}1\\\\2\\end{pmatrix}"},
    {"x = 5", "5"}, {"x=5", "x = 5.0"}, {"y = \\frac12", "0.5"}, {"x \\in [0,1]", "[0,1]"},
    /* lists */
    {"(1,2)", "( 1, 2.0 )"}, {"(\\frac12, 3)", "(0.5,3)"}, {"[1,2)", "[1.0,2)"}, {"\\{1,2\\}", "\\{2,1\\}"},
    {"1,2", "2, 1"}, {"\\left\\{1, 2\\right\\}", "1,2"}, {"1 \\text{ and } 2", "1,2"},
    {"((1,2),(3,4))", "((1,2.0),(3,4))"}, {"(-\\infty, 2]", "\\left(-\\infty,2\\right]"},
    {"\\{5\\}", "\\{5.0\\}"}, {"x=1,x=2", "1,2"}, {"(1,\\{2,3\\})", "(1,\\{3,2\\})"},
};
/* clang-format on */

/* clang-format off */
static const struct pair different[] = {
    {"5", "6"}, {"5", "-5"}, {"5", ""}, {"", ""}, {"5", "5.0001"}, {"1/3", "0.333"}, {"1/3", "0.3333333333"},
    {"2\\frac{1}{3}", "21/3"}, {"\\frac{1}{23}", "\\frac{1}{2}3"}, {"1/0", "1/0.0"}, {"0/0", "5"},
    {"2+2", "4"}, {"2*3", "6"}, {"2^{10}", "1024"}, {"12345*6789", "83810205"}, {"8/2/2", "2"},
    {"1,00", "100"}, {"1,000", "1,0000"}, {"1000,1", "10001"}, {"1 2", "12"}, {"12 34", "1234"},
    {"5x", "5"}, {"5", "5y"}, {"5 cm", "5 m"}, {"5\\text{ cm}", "5\\text{ cm}^2"}, {"5 apples", "5"},
    {"50%", "51"}, {"50%", "0.05"}, {"50%", "5000"}, {"1e3", "1e4"}, {"10^3", "10^4"},
    {"(1,2)", "(2,1)"}, {"(1,2)", "[1,2]"}, {"(0,1]", "(0,1)"}, {"(1,2)", "1,2"}, {"\\{1,2\\}", "\\{1,2,2\\}"},
    {"(1,000)", "1000"}, {"1,2,3", "1,2"}, {"1,1,2", "1,2,2"}, {"\\{1\\}", "1,1"},
    {"x=5", "y=5"}, {"x", "X"}, {"A", "B"}, {"yes", "no"}, {"\\text{(A)}", "(B)"},
    {"\\sqrt{2}", "\\sqrt{3}"}, {"\\frac{x}{2y}", "\\frac{x}{2}y"}, {"\\pi", "3.14"}, {"-\\infty", "\\infty"},
    {"99999999999999999999999999999999999999999999", "99999999999999999999999999999999999999999998"},
    {"nan", "5"}, {"inf", "1e9999"}, {"0x10", "16"}, {"1e-9", "0"}, {"\\frac{1}{2", "0.5"}, {"}{", "5"},
    {"f\\circ g", "fg"}, {"5 dollars", "5 cents"}, {"1.2.3", "1.23"}, {"\\text{5", "5"},
};
/* clang-format on */

static bool is_equal(const char *a, const char *b) { return math_answer_equal(slice_from_str(a), slice_from_str(b)); }

/* Both ways; names every pair that is wrong. */
static void assert_all(const struct pair *pairs, size_t count, bool wanted)
{
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_equal(pairs[i].a, pairs[i].b) == wanted && is_equal(pairs[i].b, pairs[i].a) == wanted)
            continue;
        print_error("%s and %s should %s\n", pairs[i].a, pairs[i].b, wanted ? "be equal" : "differ");
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

static void answers_that_mean_the_same_are_equal_both_ways(void **state)
{
    (void)state;
    assert_all(equal, sizeof(equal) / sizeof(equal[0]), true);
}

static void answers_that_differ_are_not_equal(void **state)
{
    (void)state;
    assert_all(different, sizeof(different) / sizeof(different[0]), false);
}

static void an_answer_equals_itself(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(equal) / sizeof(equal[0]); i++)
        assert_true(is_equal(equal[i].a, equal[i].a) && is_equal(equal[i].b, equal[i].b));
}

static void assert_found(const char *text, const char *wanted)
{
    struct slice found;
    bool any = math_answer_find(slice_from_str(text), &found);
    if (!any)
        found = slice_from_str("nothing");
    if (any != (wanted != NULL) || (any && !slice_is(found, wanted)))
        fail_msg("in %s: %.*s", text, SLICE_ARG(found));
}

static void the_last_closed_box_is_the_answer(void **state)
{
    (void)state;
    assert_found("so \\boxed{4}", "4");
    assert_found("\\boxed{1} no, \\boxed{2}.", "2");
    assert_found("\\boxed{\\frac{1}{2}}", "\\frac{1}{2}");
    assert_found("\\boxed{\\boxed{3}}", "3");
    assert_found("\\boxed {7}", "7");
    assert_found("\\boxed{\\{1,2\\}}", "\\{1,2\\}");
    assert_found("\\boxed{\\}}", "\\}");
    assert_found("\\boxed{5} and then \\boxed{6", "5");
    assert_found("\\boxed{}", "");
    assert_found("the answer is 5", NULL);
    assert_found("\\boxed 5", NULL);
    assert_found("\\boxed{5", NULL);
    assert_found("\\boxed{5\\", NULL);
    assert_found("", NULL);
}

/* `count` times `text`; the caller frees. */
static char *repeat(const char *text, size_t count)
{
    struct buffer all = {0};
    for (size_t i = 0; i < count; i++)
        buffer_append_str(&all, text);
    return buffer_take_str(&all);
}

static void hostile_text_costs_little_and_equals_nothing(void **state)
{
    (void)state;
    static const char *const parts[] = {"{",        "\\frac", "\\frac{", "\\text{", "(",       ",", "1,",
                                        "\\boxed{", "-",      "\\{",     "^",       "\\sqrt[", "9", "1,000",
                                        "((1,",     "x=",     "\\",      "\xff",    "1/"};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        char *text = repeat(parts[i], MATH_TEXT_MAX / strlen(parts[i]));
        struct slice found;
        int64_t start_ms = clock_ms();
        math_answer_find(slice_from_str(text), &found);
        assert_false(is_equal(text, "5"));
        if (clock_ms() - start_ms > 5000)
            fail_msg("%s repeated took %lld ms", parts[i], (long long)(clock_ms() - start_ms));
        free(text);
    }
}

static void deep_nesting_is_refused_not_followed(void **state)
{
    (void)state;
    char *open = repeat("{", 20000), *close = repeat("}", 20000);
    char *both = malloc(40002);
    snprintf(both, 40002, "%s5%s", open, close);
    assert_false(is_equal(both, "5"));
    free(open);
    free(close);
    free(both);
}

static void an_input_over_the_limit_has_no_answer(void **state)
{
    (void)state;
    char *blanks = repeat(" ", MATH_TEXT_MAX);
    char *text = malloc(MATH_TEXT_MAX + 16);
    snprintf(text, MATH_TEXT_MAX + 16, "%s\\boxed{5}", blanks);
    struct slice found;
    assert_false(math_answer_find(slice_from_str(text), &found));
    free(blanks);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_that_mean_the_same_are_equal_both_ways),
        cmocka_unit_test(answers_that_differ_are_not_equal),
        cmocka_unit_test(an_answer_equals_itself),
        cmocka_unit_test(the_last_closed_box_is_the_answer),
        cmocka_unit_test(hostile_text_costs_little_and_equals_nothing),
        cmocka_unit_test(deep_nesting_is_refused_not_followed),
        cmocka_unit_test(an_input_over_the_limit_has_no_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
