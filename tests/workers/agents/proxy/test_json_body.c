/* Bodies as bytes: what is no text is mended, what is no JSON is refused. */
#include "tests/workers/agents/proxy/dialect_world.h"
#include "workers/agents/proxy/dialects/json_body.h"

/* Of the list's only string. */
static void assert_string(const char *json, const char *expected, size_t len)
{
    struct fail fail = {0};
    json_t *got = json_body_parse(slice_from_str(json), &fail);
    if (!got)
        fail_msg("%s: %s", json, fail.text);
    const json_t *string = json_array_get(got, 0);
    assert_int_equal(json_string_length(string), len);
    assert_memory_equal(json_string_value(string), expected, len);
    json_decref(got);
}

#define MARK "\xef\xbf\xbd"

static void what_no_text_can_hold_is_mended(void **state)
{
    (void)state;
    assert_string("[\"a\\ud83d\\ude00b\"]",
                  "a\xf0\x9f\x98\x80"
                  "b",
                  6);
    assert_string("[\"a\\ud83d\"]", "a" MARK, 4);
    assert_string("[\"\\uD83Dx\\uDE00\"]", MARK "x" MARK, 7);
    assert_string("[\"\\ud83d\\ud83d\\ude00\"]", MARK "\xf0\x9f\x98\x80", 7);
    assert_string("[\"\\\\ud83d\"]", "\\ud83d", 6);
    assert_string("[\"a\xff\xc3\"]", "a" MARK MARK, 7);
    assert_string("[\"a\\u0000b\"]", "a\0b", 3);
    assert_string("[\"\\\"\\\\\"]", "\"\\", 2);
}

static void large_numbers_are_numbers(void **state)
{
    (void)state;
    const char *text = "[12345678901234567890123]";
    json_t *got = json_body_parse(slice_from_str(text), NULL);
    assert_true(json_real_value(json_array_get(got, 0)) > 1.2e22);
    json_decref(got);
}

static void assert_refused(const char *json, size_t len, const char *expected)
{
    struct fail fail = {0};
    assert_null(json_body_parse(slice_of(json, len), &fail));
    assert_int_equal(fail.code, -EINVAL);
    assert_non_null(strstr(fail.text, expected));
}

static void what_is_no_json_is_refused(void **state)
{
    (void)state;
    char deep[4000];
    memset(deep, '[', sizeof(deep));
    assert_refused(deep, sizeof(deep), "the body is nested deeper than 64 levels");
    assert_refused("", 0, "the body is no JSON: line 1: ");
    assert_refused("{\"a\":\n}", 7, "the body is no JSON: line 2: ");
    assert_refused("{}\0{}", 5, "the body is no JSON: line 1: end of file expected");
    assert_refused("[\"\\u", 4, "the body is no JSON: line 1: ");
    assert_refused("[\"\\", 3, "the body is no JSON: line 1: ");
    assert_refused("[\"\\ud83d\\", 9, "the body is no JSON: line 1: ");
    assert_refused("[1e999]", 7, "the body is no JSON: line 1: real number overflow");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_no_text_can_hold_is_mended),
        cmocka_unit_test(large_numbers_are_numbers),
        cmocka_unit_test(what_is_no_json_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
