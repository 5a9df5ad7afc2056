#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/text.h"

#define EURO "\xe2\x82\xac"

static void cutting_keeps_what_fits(void **state)
{
    (void)state;
    assert_true(slice_is(text_cut("abc", 3), "abc"));
    assert_true(slice_is(text_cut("abc", 2), "ab"));
    assert_true(slice_is(text_cut("", 0), ""));
}

static void cutting_cuts_no_character_in_two(void **state)
{
    (void)state;
    assert_true(slice_is(text_cut("a" EURO, 4), "a" EURO));
    for (size_t max = 1; max < 4; max++)
        assert_true(slice_is(text_cut("a" EURO, max), "a"));
    assert_true(slice_is(text_cut(EURO, 2), ""));
}

static void a_slice_is_cut_alike_and_is_not_read_beyond_its_end(void **state)
{
    (void)state;
    static const uint8_t text[] = {'a', 0xe2, 0x82, 0xac}; /* no NUL behind it */
    assert_int_equal(text_cut_slice(slice_of(text, 4), 4).len, 4);
    assert_int_equal(text_cut_slice(slice_of(text, 4), 3).len, 1);
    assert_int_equal(text_cut_slice(slice_of(text, 1), 3).len, 1);
    assert_int_equal(text_cut_slice(slice_of(text, 0), 0).len, 0);
}

static void a_word_is_one_of_those_between_bars_and_no_part_of_one(void **state)
{
    (void)state;
    assert_true(text_is_one_of("a", "a|bc"));
    assert_true(text_is_one_of("bc", "a|bc"));
    assert_true(text_is_one_of("a", "a"));
    assert_false(text_is_one_of("b", "a|bc"));
    assert_false(text_is_one_of("bcd", "a|bc"));
    assert_false(text_is_one_of("a|bc", "a|bc"));
    assert_false(text_is_one_of("", "a|bc"));
}

static void the_end_of_a_text_cuts_no_character_in_two(void **state)
{
    (void)state;
    const struct slice text = slice_from_str("a\xc3\xa4z");
    assert_true(slice_is(text_tail_slice(text, 4), "a\xc3\xa4z"));
    assert_true(slice_is(text_tail_slice(text, 3), "\xc3\xa4z"));
    assert_true(slice_is(text_tail_slice(text, 2), "z"));
    assert_true(slice_is(text_tail_slice(text, 0), ""));
    assert_true(slice_is(text_tail_slice(slice_from_str(""), 3), ""));
}

static void white_space_is_stripped_as_python_does(void **state)
{
    (void)state;
    assert_true(slice_is(text_strip(slice_from_str(" \t\x1c\xc2\xa0 a b\xe3\x80\x80\xe2\x80\x89\n")), "a b"));
    assert_true(
        slice_is(text_strip(slice_from_str("\xe2\x80\x8b")), "\xe2\x80\x8b")); /* it has no width, and is no blank */
    assert_true(slice_is(text_strip_left(slice_from_str(" a ")), "a "));
    assert_true(slice_is(text_strip_right(slice_from_str(" a ")), " a"));
    assert_true(slice_is(text_strip(slice_from_str(" \xc2")), "\xc2")); /* half a character */
    assert_int_equal(text_strip(slice_from_str(" \xc2\x85 ")).len, 0);
}

static void the_last_of_several_is_found(void **state)
{
    const struct slice text = slice_from_str("a<x>b<x>c");
    (void)state;
    assert_ptr_equal(text_find_last(text, "<x>"), text.data + 5);

    assert_null(text_find_last(text, "<y>"));
    assert_null(text_find_last(slice_of(NULL, 0), "x"));
    assert_true(slice_is(text_behind_last(text, "<x>"), "c"));
    assert_true(slice_is(text_behind_last(text, "<y>"), "a<x>b<x>c"));
    assert_true(slice_is(text_behind_last(text, "c"), ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cutting_keeps_what_fits),
        cmocka_unit_test(cutting_cuts_no_character_in_two),
        cmocka_unit_test(a_slice_is_cut_alike_and_is_not_read_beyond_its_end),
        cmocka_unit_test(a_word_is_one_of_those_between_bars_and_no_part_of_one),
        cmocka_unit_test(the_end_of_a_text_cuts_no_character_in_two),
        cmocka_unit_test(white_space_is_stripped_as_python_does),
        cmocka_unit_test(the_last_of_several_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
