/* Where sessions are listened for: what is an address, and what it is called. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/net/listen_address.h"

static void listens(const char *text, const char *base, bool is_loopback, bool is_any)
{
    struct listen_address address;
    struct fail fail = {0};
    if (listen_address_open("--listen", text, &address, &fail) < 0)
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
    listens("0", "127.0.0.1:", true, false);
    listens(":0", "127.0.0.1:", true, false);
    listens("localhost:0", "localhost:", true, false);
    listens("0.0.0.0:0", "0.0.0.0:", false, true);
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
        struct listen_address address;
        struct fail fail = {0};
        assert_int_equal(listen_address_open("--listen", none[i], &address, &fail), -EINVAL);
        assert_non_null(strstr(fail.text, "--listen "));
    }
}

static void a_port_that_is_taken_is_said_to_be(void **state)
{
    (void)state;
    struct listen_address first, second;
    struct fail fail = {0};
    assert_int_equal(listen_address_open("--listen", "0", &first, &fail), 0);
    assert_int_equal(listen_address_open("--listen", first.base, &second, &fail), -EADDRINUSE);
    assert_non_null(strstr(fail.text, "Address already in use"));
    close(first.fd);
}

/* One that is left behind by who was killed is taken over; one that somebody listens at is not. */
static void a_unix_socket_is_its_owners_alone(void **state)
{
    (void)state;
    char dir[] = "/tmp/sluice-listen-XXXXXX", text[64];
    struct listen_address first, second;
    struct fail fail = {0};
    struct stat at;
    assert_non_null(mkdtemp(dir));
    snprintf(text, sizeof(text), "unix:%s/s", dir);
    assert_int_equal(listen_address_open("--listen", text, &first, &fail), 0);
    assert_true(first.is_unix);
    assert_int_equal(stat(text + 5, &at), 0);
    assert_int_equal(at.st_mode & 0777, 0600);
    assert_int_equal(listen_address_open("--listen", text, &second, &fail), -EADDRINUSE);
    close(first.fd);
    assert_int_equal(listen_address_open("--listen", text, &second, &fail), 0);
    close(second.fd);
    unlink(text + 5);
    rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_port_alone_is_of_the_loopback),
        cmocka_unit_test(what_is_no_address_is_refused),
        cmocka_unit_test(a_port_that_is_taken_is_said_to_be),
        cmocka_unit_test(a_unix_socket_is_its_owners_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
