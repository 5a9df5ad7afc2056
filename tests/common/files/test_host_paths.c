#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/files/host_paths.h"

static void what_is_holds_or_lies_in_the_hosts_is_its_own(void **state)
{
    static const char *const own[] = {"/",    "/etc", "/etc/ssl",   "/proc/1",
                                      "/dev", "/usr", "/usr/local", "/usr/local/etc"};
    static const char *const others[] = {"/etcetera",        "/home",    "/usr/share",
                                         "/usr/local/share", "/dev/shm", "/dev/shm/x"};
    (void)state;
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        assert_true(host_path_is_own(own[i]));
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_false(host_path_is_own(others[i]));
}

static void what_holds_them_does_not_lie_inside(void **state)
{
    (void)state;
    assert_false(host_path_is_inside("/") || host_path_is_inside("/usr"));
    assert_true(host_path_is_inside("/etc") && host_path_is_inside("/usr/local/etc/x"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_holds_or_lies_in_the_hosts_is_its_own),
                                       cmocka_unit_test(what_holds_them_does_not_lie_inside)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
