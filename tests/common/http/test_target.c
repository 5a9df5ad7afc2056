/* What a request's first line asks for, and what is refused of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "common/http/target.h"

static struct target parse(const char *raw, bool slashes)
{
    struct target target;
    assert_true(target_parse(raw, slashes, &target));
    return target;
}

static void check_path(const char *raw, const char *path)
{
    struct target target = parse(raw, false);
    if (target.fault)
        fail_msg("%s: %s", raw, target.fault);
    assert_string_equal(target.path, path);
    assert_string_equal(target.raw, raw);
    target_finish(&target);
}

static void paths_are_decoded_once(void **state)
{
    (void)state;
    check_path("/", "/");
    check_path("/a/b?c=d", "/a/b");
    check_path("/a%20b", "/a b");
    check_path("/a%2520b", "/a%20b");
    check_path("/a+b", "/a+b");
    check_path("/%C3%a9", "/\xc3\xa9");
    check_path("//a//", "//a//");
    check_path("/...", "/...");
    check_path("/.a/b.", "/.a/b.");
    check_path("/?", "/");
}

static void check_fault(const char *raw, const char *words)
{
    struct target target = parse(raw, false);
    if (!target.fault)
        fail_msg("%s is taken as %s", raw, target.path);
    assert_non_null(strstr(target.fault, words));
    assert_string_equal(target.path, "");
    assert_null(target_query(&target, "a"));
    target_finish(&target);
}

static void what_may_be_meant_otherwise_is_refused(void **state)
{
    (void)state;
    static const char *const dots[] = {"/..", "/a/../b", "/a/..", "/.", "/a/./b", "/%2e%2e/a", "/a/.%2E", "/..?a=b"};
    static const char *const controls[] = {"/a%00", "/%0a", "/a%7f", "/a?b=%00", "/a?%00"};
    static const char *const escapes[] = {"/%", "/%4", "/%zz", "/%%41", "/a?b=%", "/a?%g0=c", "/%-1"};
    static const char *const encodings[] = {"/%ff", "/%c0%af", "/%ed%a0%80", "/a?b=%ff"};
    static const char *const others[] = {"/a b", "/\xc3\xa9", "/a\x01", "/a?b=\x7f"};
    static const char *const none[] = {"", "*", "a/b", "http://h/a", "h:80", "?a=b"};
    for (size_t i = 0; i < sizeof(dots) / sizeof(*dots); i++)
        check_fault(dots[i], "that is . or ..");
    for (size_t i = 0; i < sizeof(controls) / sizeof(*controls); i++)
        check_fault(controls[i], "control character");
    for (size_t i = 0; i < sizeof(escapes) / sizeof(*escapes); i++)
        check_fault(escapes[i], "begins no escape");
    for (size_t i = 0; i < sizeof(encodings) / sizeof(*encodings); i++)
        check_fault(encodings[i], "UTF-8");
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        check_fault(others[i], "not ASCII");
    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
        check_fault(none[i], "no path");
    check_fault("/a%2fb", "encoded slash");
    check_fault("/a%2Fb", "encoded slash");
}

static void encoded_slashes_are_slashes_where_that_is_asked_for(void **state)
{
    (void)state;
    struct target target = parse("/a%2Fb", true);
    assert_null(target.fault);
    assert_string_equal(target.path, "/a/b");
    target_finish(&target);
    target = parse("/a%2f..%2Fb", true);
    assert_non_null(target.fault);
    target_finish(&target);
}

static void a_raw_target_is_printable(void **state)
{
    (void)state;
    struct target target = parse("/a\x1b[2J\xff z", false);
    assert_string_equal(target.raw, "/a?[2J??z");
    target_finish(&target);
}

static void queries_are_names_and_values(void **state)
{
    (void)state;
    struct target target = parse("/p?a=1&b=x+y%2fz%0a&c&=d&&a=2&e==&f=%26%3D", false);
    assert_null(target.fault);
    assert_string_equal(target_query(&target, "a"), "1");
    assert_int_equal(target_query_count(&target, "a"), 2);
    assert_string_equal(target_query(&target, "b"), "x y/z\n");
    assert_string_equal(target_query(&target, "c"), "");
    assert_string_equal(target_query(&target, ""), "d");
    assert_string_equal(target_query(&target, "e"), "=");
    assert_string_equal(target_query(&target, "f"), "&=");
    assert_null(target_query(&target, "d"));
    assert_int_equal(target_query_count(&target, "d"), 0);
    target_finish(&target);
}

/* Its memory is counted before it is read: AddressSanitizer sees what is beyond. */
static void the_longest_that_each_form_becomes_has_room(void **state)
{
    (void)state;
    char raw[4001];
    static const char *const parts[] = {"a&", "&", "=&", "a", "=", "a=b&", "%41"};
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        const size_t len = strlen(parts[i]);
        strcpy(raw, "/?");
        for (size_t at = 2; at + len < sizeof(raw); at += len)
            memcpy(raw + at, parts[i], len + 1);
        struct target target = parse(raw, false);
        assert_null(target.fault);
        target_query_count(&target, "none");
        target_finish(&target);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_decoded_once),
        cmocka_unit_test(what_may_be_meant_otherwise_is_refused),
        cmocka_unit_test(encoded_slashes_are_slashes_where_that_is_asked_for),
        cmocka_unit_test(a_raw_target_is_printable),
        cmocka_unit_test(queries_are_names_and_values),
        cmocka_unit_test(the_longest_that_each_form_becomes_has_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
