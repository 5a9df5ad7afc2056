#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/url.h"

#define ROWS(array) (sizeof(array) / sizeof(*(array)))

static void a_base_url_is_read_into_its_parts(void **state)
{
    static const struct {
        const char *text, *base, *credentials, *host;
        uint16_t port;
    } rows[] = {
        {"http://127.0.0.1:8080", "http://127.0.0.1:8080", "", "127.0.0.1", 8080},
        {"http://gpu1", "http://gpu1", "", "gpu1", 80},
        {"https://gpu_1.example.org//", "https://gpu_1.example.org", "", "gpu_1.example.org", 443},
        {"http://h/v1/engines/7b", "http://h/v1/engines/7b", "", "h", 80},
        {"http://h/xv1", "http://h/xv1", "", "h", 80},
        {"http://h:1/a/b%20c/", "http://h:1/a/b%20c", "", "h", 1},
        {"http://[::1]:65535/x", "http://[::1]:65535/x", "", "::1", 65535},
        {"https://[2001:db8::7]", "https://[2001:db8::7]", "", "2001:db8::7", 443},
        {"http://user:pass@h:1/a", "http://h:1/a", "user:pass", "h", 1},
        {"http://user@[::1]", "http://[::1]", "user", "::1", 80},
        {"https://:p%40ss%2F@h", "https://h", ":p%40ss%2F", "h", 443},
        {"http://u:a:b!$&'()*+,;=@h", "http://h", "u:a:b!$&'()*+,;=", "h", 80},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct url url;
        struct fail fail = {0};
        if (url_parse(slice_from_str(rows[i].text), &url, &fail) != 0)
            fail_msg("%s: %s", rows[i].text, fail.text);
        assert_string_equal(url.base, rows[i].base);
        assert_string_equal(url.credentials, rows[i].credentials);
        assert_string_equal(url.host, rows[i].host);
        assert_int_equal(url.port, rows[i].port);
    }
}

static void what_is_no_base_url_is_refused_with_its_reason(void **state)
{
    static const char port[] = "its port is not from 1 to 65535", scheme[] = "it begins with neither",
                      user[] = "what is before its '@'", name[] = "its host has a character";
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", scheme},
        {"h:1", scheme},
        {"ftp://h", scheme},
        {"http:/h", scheme},
        {"HTTP://h", scheme},
        {"http://", "it has no host"},
        {"http:///x", "it has no host"},
        {"http://:80", "it has no host"},
        {"http://u:p@", "it has no host"},
        {"http://[]", "not an IPv6 address"},
        {"http://h:0", port},
        {"http://h:99999", port},
        {"http://h:65536", port},
        {"http://h:", port},
        {"http://h:080", port},
        {"http://h:+80", port},
        {"http://h:80a", port},
        {"http://h:1:2", port},
        {"http://h:18446744073709551696", port},
        {"http://user:pa/ss", port},
        {"http://[::1", "is not closed"},
        {"http://[::1:80", "is not closed"},
        {"http://[gpu1]", "not an IPv6 address"},
        {"http://[1.2.3.4]", "not an IPv6 address"},
        {"http://[::1]80", "neither a port nor a path"},
        {"http://[fe80::1%25eth0]", "not an IPv6 address"},
        {"http://::1", "it has no host"},
        {"http://h]", name},
        {"http://a b", name},
        {"http://h\x01", name},
        {"http://h\x7f", name},
        {"http://g\xc3\xa4ste", name},
        {"http://a..b", name},
        {"http://-a", name},
        {"http://%68", name},
        {"http://h\\x", name},
        {"http://1.2.3", "not an IPv4 address"},
        {"http://999.1.1.1", "not an IPv4 address"},
        {"http://127.1", "not an IPv4 address"},
        {"http://2130706433", "not an IPv4 address"},
        {"http://h/?a=b", "a query"},
        {"http://h?x", "a query"},
        {"http://h/#x", "a fragment"},
        {"http://h#", "a fragment"},
        {"http://h/a b", "its path has"},
        {"http://h/%2", "its path has"},
        {"http://h/%zz", "its path has"},
        {"http://h/%00", "its path has"},
        {"http://h/%7f", "its path has"},
        {"http://u@v@h", user},
        {"http://@h", user},
        {"http://u:p%@h", user},
        {"http://u:p%0d%0aX@h", user},
        {"http://u p@h", user},
        {"http://u/p@h", "an '@' follows its host"},
        {"http://u:p?s@h", "a query"},
        {"http://h:8000/v1", "leave /v1"},
        {"http://h:8000/v1/", "leave /v1"},
        {"http://h/proxy/v1/chat/completions", "leave /v1"},
        {"https://h/v1/models", "leave /v1"},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct url url = {.port = 7};
        struct fail fail = {0};
        if (url_parse(slice_from_str(rows[i].text), &url, &fail) != -EINVAL)
            fail_msg("taken: %s", rows[i].text);
        if (!strstr(fail.text, rows[i].why))
            fail_msg("%s: %s", rows[i].text, fail.text);
        assert_int_equal(url.port, 7);
    }
}

static void a_byte_that_ends_a_string_of_c_is_no_part_of_a_url(void **state)
{
    static const char *const parts[] = {"http://h\0i", "http://h/\0i", "http://u\0i@h"};
    (void)state;
    for (size_t i = 0; i < ROWS(parts); i++) {
        struct url url;
        size_t len = strlen(parts[i]) + (i == 2 ? 4 : 2);
        assert_int_equal(url_parse(slice_of(parts[i], len), &url, NULL), -EINVAL);
    }
}

static void a_url_is_as_long_as_a_message_takes_it_and_no_longer(void **state)
{
    char text[URL_MAX + 2];
    struct url url;
    struct fail fail;
    (void)state;
    memset(text, 'a', sizeof(text));
    memcpy(text, "http://h/", 9);
    assert_int_equal(url_parse(slice_of(text, URL_MAX), &url, &fail), 0);
    assert_int_equal(strlen(url.base), URL_MAX);
    assert_int_equal(url_parse(slice_of(text, URL_MAX + 1), &url, &fail), -EINVAL);
    assert_non_null(strstr(fail.text, "longer than 256"));
}

/* What is refused may be a password that was written wrongly: neither the reason nor what is shown has it. */
static void nothing_that_may_be_a_password_is_shown(void **state)
{
    static const char *const texts[] = {"http://u:SECRET@h:0", "http://u:SEC/RET@h", "http://u:SEC?RET@h", "u:SECRET@h",
                                        "http://u:SEC@RET@h",  "http://u:SEC#RET@h", "http://u:SEC RET@h"};
    (void)state;
    for (size_t i = 0; i < ROWS(texts); i++) {
        struct url url;
        struct fail fail = {0};
        assert_int_equal(url_parse(slice_from_str(texts[i]), &url, &fail), -EINVAL);
        assert_null(strstr(fail.text, "SEC"));
        assert_null(strstr(fail.text, "RET"));
        struct slice shown = url_shown(slice_from_str(texts[i]));
        assert_true(shown.len > 0 && shown.data[0] == 'h');
    }
    assert_true(slice_is(url_shown(slice_from_str("http://h:0")), "http://h:0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_base_url_is_read_into_its_parts),
        cmocka_unit_test(what_is_no_base_url_is_refused_with_its_reason),
        cmocka_unit_test(a_byte_that_ends_a_string_of_c_is_no_part_of_a_url),
        cmocka_unit_test(a_url_is_as_long_as_a_message_takes_it_and_no_longer),
        cmocka_unit_test(nothing_that_may_be_a_password_is_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
