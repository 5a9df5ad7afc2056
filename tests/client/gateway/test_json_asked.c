#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/gateway/json_asked.h"
#include "common/base/cleanup.h"

/* "[1,1, ...]" of so many ones, with `head` before the first; the caller's. */
static char *list_of(size_t count, const char *head)
{
    char *text = malloc(strlen(head) + 2 * count + 2), *at = text;
    at += sprintf(at, "[%s", head);
    for (size_t i = 0; i < count; i++, at += 2)
        memcpy(at, "1,", 2);
    strcpy(at - 1, "]");
    return text;
}

static void as_many_values_as_may_be_are_read_and_one_more_is_refused(void **state)
{
    (void)state;
    json_error_t error;
    AUTO_FREE char *most = list_of(JSON_ASKED_VALUES_MAX, "");
    AUTO_FREE char *more = list_of(JSON_ASKED_VALUES_MAX + 1, "");
    json_t *read = json_asked_read(slice_from_str(most), 0, &error);
    assert_int_equal(json_array_size(read), JSON_ASKED_VALUES_MAX);
    json_decref(read);
    assert_null(json_asked_read(slice_from_str(more), 0, &error));
    assert_string_equal(error.text, "it holds more than 1048576 values");
    assert_null(json_asked_read(slice_from_str(more), 0, NULL));
}

static void what_strings_hold_is_not_counted(void **state)
{
    (void)state;
    enum { LEN = 3 << 20 };
    AUTO_FREE char *text = malloc(LEN + 1);
    memset(text, ',', LEN);
    memcpy(text, "[\"\\\"[{", 6); /* a quote that is escaped ends nothing */
    memcpy(text + LEN - 2, "\"]", 3);
    json_t *read = json_asked_read(slice_of(text, LEN), 0, NULL);
    assert_int_equal(json_array_size(read), 1);
    json_decref(read);
}

static void a_string_that_does_not_end_is_no_json(void **state)
{
    (void)state;
    enum { LEN = 2 << 20 };
    AUTO_FREE char *text = malloc(LEN); /* its bytes and no more, so that a look beyond them is seen */
    memset(text, '\\', LEN);
    text[0] = '"';
    assert_null(json_asked_read(slice_of(text, LEN), JSON_DECODE_ANY, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_values_as_may_be_are_read_and_one_more_is_refused),
        cmocka_unit_test(what_strings_hold_is_not_counted),
        cmocka_unit_test(a_string_that_does_not_end_is_no_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
