/* What --grant may say, and what of it is refused in which words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "workers/network/grants.h"

static void good_grants_are_kept_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *text, *name, *host;
        bool is_tcp;
        uint16_t port;
    } rows[] = {
        {"pip=tcp:proxy.lan:3128", "pip", "proxy.lan", true, 3128},
        {"a-1=tcp:10.0.0.1:1", "a-1", "10.0.0.1", true, 1},
        {"six=tcp:[::1]:65535", "six", "::1", true, 65535},
        {"db=unix:/run/db.sock", "db", "/run/db.sock", false, 0},
        {"odd=unix:/a=b:c", "odd", "/a=b:c", false, 0},
        {"abcdefghijklmnopqrstuvwxyz012345=tcp:h:80", "abcdefghijklmnopqrstuvwxyz012345", "h", true, 80},
    };
    static struct grants grants;
    struct fail fail = {0};
    char text[256];
    grants_format(&grants, text, sizeof(text));
    assert_string_equal(text, "none");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (grants_add(&grants, rows[i].text, &fail) < 0)
            fail_msg("%s", fail.text);
        const struct grant *grant = grants_find(&grants, rows[i].name);
        assert_non_null(grant);
        assert_string_equal(grant->host, rows[i].host);
        assert_int_equal(grant->is_tcp, rows[i].is_tcp);
        assert_int_equal(grant->port, rows[i].port);
    }
    assert_null(grants_find(&grants, "a"));
    assert_null(grants_find(NULL, "pip"));
    grants_format(&grants, text, sizeof(text));
    assert_string_equal(text, "pip, a-1, six, db, odd, abcdefghijklmnopqrstuvwxyz012345");
    grants_format(&grants, text, 12);
    assert_string_equal(text, "pip, a-1, s");
}

static void bad_grants_are_refused_with_the_reason(void **state)
{
    (void)state;
    static const char *const name = "the name is not 1 to 32 characters of a-z, 0-9 and -, beginning with a letter";
    const struct {
        const char *text, *why;
    } rows[] = {
        {"", "not NAME=unix:PATH or NAME=tcp:HOST:PORT"},
        {"pip", "not NAME=unix:PATH or NAME=tcp:HOST:PORT"},
        {"=tcp:h:80", name},
        {"Pip=tcp:h:80", name},
        {"1p=tcp:h:80", name},
        {"../x=unix:/s", name},
        {"abcdefghijklmnopqrstuvwxyz0123456=tcp:h:80", name},
        {"pip=", "not NAME=unix:PATH or NAME=tcp:HOST:PORT"},
        {"pip=udp:h:80", "not NAME=unix:PATH or NAME=tcp:HOST:PORT"},
        {"pip=tcp:h", "not tcp:HOST:PORT with a port in 1-65535"},
        {"pip=tcp:h:", "not tcp:HOST:PORT with a port in 1-65535"},
        {"pip=tcp:h:0", "not tcp:HOST:PORT with a port in 1-65535"},
        {"pip=tcp:h:65536", "not tcp:HOST:PORT with a port in 1-65535"},
        {"pip=tcp:h:80x", "not tcp:HOST:PORT with a port in 1-65535"},
        {"pip=tcp:h:-1", "not tcp:HOST:PORT with a port in 1-65535"},
        {"pip=tcp::80", "not a host"},
        {"pip=tcp:a b:80", "not a host"},
        {"pip=tcp:[::1:80", "not a host"},
        {"pip=unix:run/x", "the socket's path is not absolute"},
        {"pip=unix:", "the socket's path is not absolute"},
        {"there=tcp:h:80", "a grant of that name exists already"},
    };
    static struct grants grants;
    struct fail fail = {0};
    assert_int_equal(grants_add(&grants, "there=tcp:h:1", &fail), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char words[512];
        snprintf(words, sizeof(words), "--grant %s: %s", rows[i].text, rows[i].why);
        assert_int_equal(grants_add(&grants, rows[i].text, &fail), -EINVAL);
        assert_string_equal(fail.text, words);
    }
    char path[160] = "long=unix:/";
    memset(path + strlen(path), 'a', 120);
    assert_int_equal(grants_add(&grants, path, &fail), -EINVAL);
    assert_non_null(strstr(fail.text, "longer than 107 bytes"));
    assert_int_equal(grants.count, 1);
}

static void there_is_an_end_to_them(void **state)
{
    (void)state;
    static struct grants grants;
    struct fail fail = {0};
    for (int i = 0; i < GRANTS_MAX; i++) {
        char text[64];
        snprintf(text, sizeof(text), "g%d=tcp:h:80", i);
        assert_int_equal(grants_add(&grants, text, &fail), 0);
    }
    assert_int_equal(grants_add(&grants, "more=tcp:h:80", &fail), -EINVAL);
    assert_non_null(strstr(fail.text, "too many grants, at most 64"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_grants_are_kept_by_name),
        cmocka_unit_test(bad_grants_are_refused_with_the_reason),
        cmocka_unit_test(there_is_an_end_to_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
