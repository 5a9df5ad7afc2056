/* One value of a task, as the text that it was submitted as. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "schemas/task/json/task_member.h"

static void the_text_of_the_value_is_found(void **state)
{
    (void)state;
    static const struct {
        const char *json, *text;
    } rows[] = {
        {"{\"metadata\":{\"a\":1}}", "{\"a\":1}"},
        {" {\n \"task\" : \"t\" ,\t\"metadata\" : { \"a\" : [ 1, 2 ] } \n}\n", "{ \"a\" : [ 1, 2 ] }"},
        {"{\"a\":{\"metadata\":{}},\"metadata\":{\"b\":\"}\\\"]\"},\"c\":1}", "{\"b\":\"}\\\"]\"}"},
        {"{\"a\":\"\\\"metadata\\\":{}\",\"met\\u0061data\":{\"x\":1}}", "{\"x\":1}"},
        {"{\"a\":[{\"metadata\":{}}, \"metadata\"],\"b\":\"metadata\"}", ""},
        {"{\"metadata_of\":{}}", ""},
        {"{}", ""},
        {"", ""},
        {"{\"metadata\"", ""},
        {"{\"metadata\":", ""},
        {"{\"metadata", ""},
        {"{\"metadata\\", ""},
        {"[1]", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const size_t len = strlen(rows[i].json);
        AUTO_FREE uint8_t *copy = malloc(len ? len : 1); /* for the sanitizer */
        assert_non_null(copy);
        memcpy(copy, rows[i].json, len);
        if (!slice_is(task_member(slice_of(copy, len), "metadata"), rows[i].text))
            fail_msg("%s", rows[i].json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_text_of_the_value_is_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
