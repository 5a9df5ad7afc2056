/* When an output is the expected one, and which part of an answer is the program. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/buffer.h"
#include "common/base/cleanup.h"
#include "workers/evaluators/code/checker.h"
#include "workers/evaluators/code/source.h"

struct row {
    const char *checker, *expected, *given;
    bool accepted;
};

static void outputs_are_compared_as_the_checker_says(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"lines", "3\n", "3", true},
        {"lines", "3", " 3 \n\n", true},
        {"lines", "1 2\n3", "1  2\n3", true},
        {"lines", "1 2\n3", "1 2 3", false},
        {"lines", "1\n\n2", "1\n2", false},
        {"lines", "1.50", "1.5", true},
        {"lines", "2", "2.000", true},
        {"lines", "-0", "0.0", true},
        {"lines", "1e3", "1000", true},
        {"lines", "10000000000000000000001", "1e22", false},
        {"lines", "9007199254740993", "9007199254740992e0", false},
        {"lines", "0.00012", "1.2e-4", true},
        {"lines", "0", "0e9", true},
        {"lines", "1e", "1", false},
        {"lines", "1e9999999", "1e9999999", true},
        {"lines", "5", "-5", false},
        {"lines", "0.1", "0.10000000000000001", false},
        {"lines", "12345678901234567890", "12345678901234567891", false},
        {"lines", "yes", "Yes", false},
        {"lines", "1 2", "2 1", false},
        {"lines", "", "\n", true},
        {"lines", "", "0", false},
        {"lines", "0x10", "16", false},
        {"lines", "nan", "nan", true},
        {"lines", "1.", "1", true},
        {"lines", ".", "0", false},
        {"lines", "-", "0", false},
        {"lines", "10", "1", false},
        {"lines", "100", "10", false},
        {"exact", "3\n", "3", true},
        {"exact", "3", " 3", false},
        {"exact", "a\nb", "a\nb\n\n", true},
        {"words", "1 2\n3", "1 2 3", true},
        {"words", "1.0", "1", false},
        {"words", "1 2", "1 2 3", false},
        {"floats", "0.333333333", "0.3333333", true},
        {"floats", "1000000000", "1000000500", true},
        {"floats", "1000000000", "1000005000", false},
        {"floats", "0.0005", "0.001", false},
        {"floats", "inf", "1e999", false},
        {"floats", "x 1", "x 1.0000001", true},
        {"floats", "x 1", "y 1", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct row *row = &rows[i];
        bool accepted = checker_accepts(checker_find(row->checker), 1e-6, slice_from_str(row->expected),
                                        slice_from_str(row->given));
        if (accepted != row->accepted)
            fail_msg("%s: '%s' and '%s'", row->checker, row->expected, row->given);
    }
}

static void a_number_before_a_nul_is_no_number(void **state)
{
    (void)state;
    static const char *const checkers[] = {"lines", "words", "floats", "exact"};
    for (size_t i = 0; i < sizeof(checkers) / sizeof(*checkers); i++) {
        const enum checker checker = checker_find(checkers[i]);
        assert_false(checker_accepts(checker, 1e-6, slice_from_str("3"), slice_of("3\0", 2)));
        assert_false(checker_accepts(checker, 1e-6, slice_from_str("3"), slice_of("3e0\0x", 5)));
        assert_false(checker_accepts(checker, 1e-6,
                                     slice_of("1 3\0"
                                              "4",
                                              5),
                                     slice_from_str("1 3")));
        assert_true(checker_accepts(checker, 1e-6, slice_of("3\0", 2), slice_of("3\0", 2)));
    }
}

static void results_are_compared_by_value(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"lines", "[1, 2]", "[1, 2]", true},
        {"lines", "[1, 2]", "[2, 1]", false},
        {"lines", "1", "1.0", true},
        {"lines", "true", "1", true},
        {"lines", "true", "false", false},
        {"lines", "[3]", "3", true},
        {"lines", "3", "[3]", false},
        {"lines", "[[1]]", "[1]", true},
        {"lines", "\"a\"", "\"a\"", true},
        {"lines", "\"1\"", "1", false},
        {"lines", "null", "0", false},
        {"lines", "null", "null", true},
        {"lines", "{\"a\": [1]}", "{\"a\": [1.0]}", true},
        {"lines", "{\"a\": 1}", "{\"b\": 1}", false},
        {"lines", "0.3", "0.30000000000000004", false},
        {"floats", "0.3", "0.30000000000000004", true},
        {"lines", "9007199254740993", "9007199254740992", false},
        {"floats", "[1.0, 2.0]", "[1.0, 2.1]", false},
        {"lines", "9007199254740993", "9007199254740992.0", false},
        {"lines", "9007199254740992", "9007199254740992.0", true},
        {"lines", "2.5", "2.5", true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct row *row = &rows[i];
        json_t *expected = json_loads(row->expected, JSON_DECODE_ANY, NULL);
        json_t *given = json_loads(row->given, JSON_DECODE_ANY, NULL);
        bool accepted = checker_accepts_value(checker_find(row->checker), 1e-6, expected, given);
        json_decref(expected);
        json_decref(given);
        if (accepted != row->accepted)
            fail_msg("%s: '%s' and '%s'", row->checker, row->expected, row->given);
    }
}

static void the_deepest_result_is_refused_and_costs_no_stack(void **state)
{
    (void)state;
    AUTO_BUFFER text = {0};
    for (int i = 0; i < 1000; i++)
        buffer_append_str(&text, "[");
    buffer_append_str(&text, "1,2");
    for (int i = 0; i < 1000; i++)
        buffer_append_str(&text, "]");
    json_t *deep = json_loadb((const char *)text.data, text.len, 0, NULL);
    assert_non_null(deep);
    assert_false(checker_accepts_value(CHECKER_LINES, 0, deep, deep));
    json_decref(deep);
}

static void the_program_is_the_last_fenced_block(void **state)
{
    (void)state;
    static const struct {
        const char *answer, *source; /* NULL: none */
    } rows[] = {
        {"```python\nprint(1)\n```", "print(1)\n"},
        {"first\n```\na\n```\nand then\n```py\nb\n```\nas said", "b\n"},
        {"```python\na = '''\n``\n'''\n```\n", "a = '''\n``\n'''\n"},
        {"````\n```\ninner\n```\n````", "```\ninner\n```\n"},
        {"  ```python\nx\n  ```", "x\n"},
        {"```python\nnot closed", "not closed"},
        {"```\ndone\n```\n```python\n", "done\n"},
        {"no block", NULL},
        {"", NULL},
        {"`inline`", NULL},
        {"```python\nthought\n```</think>", NULL},
        {"```python\nthought\n```</think>\n```\nsaid\n```", "said\n"},
        {"</think>", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct slice source;
        bool found = source_find(slice_from_str(rows[i].answer), &source);
        if (found != (rows[i].source != NULL) || (found && !slice_is(source, rows[i].source)))
            fail_msg("'%s' gave '%.*s'", rows[i].answer, found ? (int)source.len : 0,
                     found ? (const char *)source.data : "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_are_compared_as_the_checker_says),
        cmocka_unit_test(a_number_before_a_nul_is_no_number),
        cmocka_unit_test(results_are_compared_by_value),
        cmocka_unit_test(the_deepest_result_is_refused_and_costs_no_stack),
        cmocka_unit_test(the_program_is_the_last_fenced_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
