#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/fail.h"

static void words_are_put_in_front_on_the_way_up(void **state)
{
    (void)state;
    struct fail fail;
    assert_int_equal(fail_set(&fail, -ENOENT, "open %s: missing", "a"), -ENOENT);
    assert_int_equal(fail_wrap(&fail, "layer %d", 3), -ENOENT);
    assert_string_equal(fail.text, "layer 3: open a: missing");
    assert_int_equal(fail.code, -ENOENT);
}

static void long_words_are_cut_and_terminated(void **state)
{
    (void)state;
    struct fail fail;
    char long_words[2000];
    memset(long_words, 'x', sizeof(long_words) - 1);
    long_words[sizeof(long_words) - 1] = '\0';
    fail_set(&fail, -EIO, "%s", long_words);
    assert_int_equal(strlen(fail.text), sizeof(fail.text) - 1);
    fail_wrap(&fail, "%s", "outer");
    assert_int_equal(strncmp(fail.text, "outer: xxx", 10), 0);
    assert_int_equal(strlen(fail.text), sizeof(fail.text) - 1);
    fail_wrap(&fail, "%s", long_words);
    assert_true(strlen(fail.text) < sizeof(fail.text));
}

static void nobody_need_listen(void **state)
{
    (void)state;
    assert_int_equal(fail_set(NULL, -EIO, "unheard"), -EIO);
    assert_true(fail_wrap(NULL, "unheard") < 0);
    assert_int_equal(fail_memory(NULL), -ENOMEM);
}

static void memory_that_is_not_there_is_said_in_one_way(void **state)
{
    (void)state;
    struct fail fail;
    assert_int_equal(fail_memory(&fail), -ENOMEM);
    assert_int_equal(fail.code, -ENOMEM);
    assert_string_equal(fail.text, "out of memory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_put_in_front_on_the_way_up),
        cmocka_unit_test(long_words_are_cut_and_terminated),
        cmocka_unit_test(nobody_need_listen),
        cmocka_unit_test(memory_that_is_not_there_is_said_in_one_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
