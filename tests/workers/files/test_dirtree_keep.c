/* Of a tree that somebody else made, one directory is kept, without what is git's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/workers/files/as_everyone.h"
#include "workers/files/dirtree.h"
#include "workers/files/dirtree_keep.h"
#include "common/files/dirtree_remove.h"

static char top[64];
static int root;

static int set_up(void **state)
{
    static const char *const files[] = {"usr/bin/git",
                                        "testbed/a.py",
                                        "testbed/.git/config",
                                        "testbed/.git/hooks/x",
                                        "testbed/sub/.git/config",
                                        "testbed/sub/b.py",
                                        "testbed/c/.git",
                                        "other/x"};
    struct fail fail = {0};
    (void)state;
    strcpy(top, "/tmp/sluice-keep-XXXXXX");
    if (!mkdtemp(top))
        return -1;
    root = open(top, O_RDONLY | O_DIRECTORY);
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
        if (dirtree_write(root, files[i], slice_from_str("x"), 0644, &fail) < 0)
            return -1;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    close(root);
    return dirtree_remove(top);
}

static bool is_there(const char *path) { return faccessat(root, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0; }

static void one_directory_is_kept_without_gits(void **state)
{
    struct fail fail = {0};
    (void)state;
    assert_int_equal(dirtree_keep(root, "/testbed", ".git", &fail), 0);
    assert_true(is_there("testbed/a.py") && is_there("testbed/sub/b.py") && is_there("testbed/c"));
    assert_false(is_there("usr") || is_there("other") || is_there("testbed/.git") || is_there("testbed/sub/.git"));
    assert_false(is_there("testbed/c/.git"));
}

static void a_directory_without_rights_is_looked_into(void **state)
{
    struct fail fail = {0};
    struct stat it;
    (void)state;
    assert_int_equal(fchmodat(root, "testbed/sub", 0, 0), 0);
    assert_int_equal(dirtree_keep(root, "/testbed", ".git", &fail), 0);
    assert_int_equal(fstatat(root, "testbed/sub", &it, 0), 0);
    assert_int_equal(it.st_mode & 07777, 0);
    assert_int_equal(fchmodat(root, "testbed/sub", 0755, 0), 0);
    assert_false(is_there("testbed/sub/.git"));
    assert_true(is_there("testbed/sub/b.py"));
}

static void a_symlink_on_the_way_keeps_nothing(void **state)
{
    struct fail fail = {0};
    (void)state;
    assert_int_equal(symlinkat("testbed", root, "link"), 0);
    assert_int_equal(dirtree_keep(root, "/link", ".git", &fail), 0);
    assert_false(is_there("link") || is_there("testbed"));
}

static void what_is_not_there_keeps_nothing(void **state)
{
    struct fail fail = {0};
    (void)state;
    assert_int_equal(dirtree_keep(root, "/testbed/none/at/all", ".git", &fail), 0);
    assert_true(is_there("testbed"));
    assert_false(is_there("testbed/a.py") || is_there("usr"));
    assert_int_equal(dirtree_keep(root, "/../x", ".git", &fail), -EINVAL);
}

static int group(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_directory_is_kept_without_gits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_directory_without_rights_is_looked_into, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_symlink_on_the_way_keeps_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_not_there_keeps_nothing, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return run_as_all(group); }
