/* Where sessions are listened for: what is an address, and what it is called. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "workers/agents/sessions/address.h"

static void listens(const char *text, const char *base, bool is_loopback, bool is_any)
{
    struct sessions_address address;
    struct fail fail = {0};
    if (sessions_listen(text, &address, &fail) < 0)
        fail_msg("%s: %s", text, fail.text);
    assert_memory_equal(address.base, base, strlen(base));
    assert_true(atoi(address.base + strlen(base)) > 0);
    assert_int_equal(address.is_loopback, is_loopback);
    assert_int_equal(address.is_any, is_any);
    close(address.fd);
}

static void a_port_alone_is_of_the_loopback(void **state)
{
    (void)state;
    listens("0", "http://127.0.0.1:", true, false);
    listens(":0", "http://127.0.0.1:", true, false);
    listens("localhost:0", "http://localhost:", true, false);
    listens("0.0.0.0:0", "http://0.0.0.0:", false, true);
}

static void what_is_no_address_is_refused(void **state)
{
    (void)state;
    static const char *const none[] = {"",
                                       ":",
                                       "x",
                                       "1.2.3.4",
                                       "127.0.0.1:",
                                       "127.0.0.1:x",
                                       "127.0.0.1:65536",
                                       "127.0.0.1:-1",
                                       "http://127.0.0.1:1",
                                       "a b:1",
                                       "user@host:1",
                                       "127.0.0.1:123456"};
    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
        struct sessions_address address;
        struct fail fail = {0};
        assert_int_equal(sessions_listen(none[i], &address, &fail), -EINVAL);
        assert_non_null(strstr(fail.text, "--sessions "));
    }
}

static void a_port_that_is_taken_is_said_to_be(void **state)
{
    (void)state;
    struct sessions_address first, second;
    struct fail fail = {0};
    assert_int_equal(sessions_listen("0", &first, &fail), 0);
    assert_int_equal(sessions_listen(first.base + strlen("http://"), &second, &fail), -EADDRINUSE);
    assert_non_null(strstr(fail.text, "each worker of a node needs a port of its own, and 0 takes any"));
    close(first.fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_port_alone_is_of_the_loopback),
        cmocka_unit_test(what_is_no_address_is_refused),
        cmocka_unit_test(a_port_that_is_taken_is_said_to_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
