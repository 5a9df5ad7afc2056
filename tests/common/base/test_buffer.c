#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/cleanup.h"

static void appends_add_up(void **state)
{
    (void)state;
    AUTO_BUFFER buffer = {0};
    assert_true(buffer_append_str(&buffer, "seven "));
    assert_true(buffer_printf(&buffer, "and %d", 8));
    assert_true(slice_is(buffer_peek(&buffer), "seven and 8"));
}

static void a_long_print_grows_the_buffer(void **state)
{
    (void)state;
    AUTO_BUFFER buffer = {0};
    assert_true(buffer_printf(&buffer, "%0*d", 5000, 7));
    assert_int_equal(buffer.len, 5000);
    assert_int_equal(buffer.data[4999], '7');
}

static void a_size_that_cannot_be_had_fails_and_stays_failed(void **state)
{
    (void)state;
    AUTO_BUFFER buffer = {0};
    assert_true(buffer_append_str(&buffer, "kept"));
    assert_null(buffer_reserve(&buffer, SIZE_MAX - 16));
    assert_true(buffer.failed);
    assert_false(buffer_append_str(&buffer, "more"));
    assert_true(slice_is(buffer_peek(&buffer), "kept"));
    buffer_clear(&buffer);
    assert_true(buffer_append_str(&buffer, "again"));
}

static void a_taken_string_is_terminated_and_leaves_nothing(void **state)
{
    (void)state;
    struct buffer buffer = {0};
    assert_true(buffer_append_str(&buffer, "text"));
    AUTO_FREE char *text = buffer_take_str(&buffer);
    assert_string_equal(text, "text");
    assert_null(buffer.data);
    assert_int_equal(buffer.len, 0);
}

static void a_quoted_text_is_one_word_of_bash(void **state)
{
    (void)state;
    AUTO_BUFFER buffer = {0};
    assert_true(buffer_append_quoted(&buffer, "a 'b' $c\n"));
    assert_true(buffer_append_quoted(&buffer, ""));
    assert_true(slice_is(buffer_peek(&buffer), "'a '\\''b'\\'' $c\n'"
                                               "''"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appends_add_up),
        cmocka_unit_test(a_long_print_grows_the_buffer),
        cmocka_unit_test(a_size_that_cannot_be_had_fails_and_stays_failed),
        cmocka_unit_test(a_taken_string_is_terminated_and_leaves_nothing),
        cmocka_unit_test(a_quoted_text_is_one_word_of_bash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
