#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "workers/files/dirtree.h"
#include "common/files/dirtree_remove.h"
#include "workers/files/open_below.h"

static char top[64];
static int root;

static int disturbed, disturbance; /* how often it is yet to be, and with which errno */

long __real_syscall(long number, long a, long b, long c, long d);
long __wrap_syscall(long number, long a, long b, long c, long d);

/* openat2 has four arguments. */
long __wrap_syscall(long number, long a, long b, long c, long d)
{
    if (number != SYS_openat2 || disturbed == 0)
        return __real_syscall(number, a, b, c, d);
    disturbed -= disturbed > 0;
    errno = disturbance;
    return -1;
}

static int set_up(void **state)
{
    struct fail fail = {0};
    (void)state;
    disturbed = 0;
    strcpy(top, "/tmp/sluice-below-XXXXXX");
    if (!mkdtemp(top))
        return -1;
    root = open(top, O_RDONLY | O_DIRECTORY);
    return dirtree_write(root, "d/f", slice_from_str("x"), 0644, &fail) < 0 || symlinkat("/d/f", root, "d/link") < 0
               ? -1
               : 0;
}

static int tear_down(void **state)
{
    (void)state;
    close(root);
    return dirtree_remove(top);
}

static void what_a_rename_disturbed_is_tried_again(void **state)
{
    static const int errors[] = {EAGAIN, EINTR};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        disturbance = errors[i];
        disturbed = 3;
        AUTO_CLOSE int file = open_in_root(root, "d/f", O_RDONLY, 0);
        assert_true(file >= 0);
        disturbed = 3;
        AUTO_CLOSE int same = dirtree_open(root, "d/f", O_RDONLY);
        assert_true(same >= 0 && disturbed == 0);
    }
}

static void what_is_always_disturbed_is_given_up(void **state)
{
    (void)state;
    disturbance = EAGAIN;
    disturbed = -1;
    assert_int_equal(open_in_root(root, "d/f", O_RDONLY, 0), -1);
    assert_int_equal(errno, EAGAIN);
}

static void other_errors_are_said_at_once(void **state)
{
    (void)state;
    disturbance = EIO;
    disturbed = 1;
    assert_int_equal(open_in_root(root, "d/f", O_RDONLY, 0), -1);
    assert_int_equal(errno, EIO);
}

static void links_lead_where_they_do_inside(void **state)
{
    struct stat it, same;
    (void)state;
    AUTO_CLOSE int behind = open_in_root(root, "d/link", O_PATH, 0), file = open_in_root(root, "/../d/f", O_PATH, 0);
    assert_true(fstat(behind, &it) == 0 && fstat(file, &same) == 0 && it.st_ino == same.st_ino && S_ISREG(it.st_mode));
    assert_int_equal(open_below(root, "d/link", O_PATH, 0, RESOLVE_BENEATH), -1);
    assert_int_equal(errno, EXDEV);
    AUTO_CLOSE int itself = open_in_root(root, "", O_PATH | O_DIRECTORY, 0);
    assert_true(itself >= 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_a_rename_disturbed_is_tried_again),
        TEST(what_is_always_disturbed_is_given_up),
        TEST(other_errors_are_said_at_once),
        TEST(links_lead_where_they_do_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
