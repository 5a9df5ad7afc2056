/* Where paths of a sandbox really lie, by the links of the layers and the image beneath them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "workers/files/dirtree.h"
#include "common/files/dirtree_remove.h"
#include "workers/stages/sandbox/real_path.h"

static char top[64], upper[80], lower[80];
static const char *roots[] = {upper, lower, "host"};

static int set_up(void **state)
{
    char command[1024];
    (void)state;
    strcpy(top, "/var/tmp/sluice-real-XXXXXX");
    if (!mkdtemp(top))
        return -1;
    snprintf(upper, sizeof(upper), "%s/upper", top);
    snprintf(lower, sizeof(lower), "%s/lower", top);
    snprintf(
        command, sizeof(command),
        "cd %s && mkdir -p upper/work/in upper/new lower/new lower/gone lower/work lower/data/deep && cd lower && ln "
        "-s /data one && ln -s ../data/deep work/two && ln -s x/../loop loop && ln -s ../../../../data up && ln -s "
        "/data new/l && ln -s /data gone/l && ln -s /data hidden && ln -s work three && cd ../upper && ln -s "
        "/one/deep four && ln -s /loop five && mknod hidden c 0 0 && mknod gone c 0 0",
        top);
    if (system(command) != 0)
        return -1;
    snprintf(command, sizeof(command), "%s/new", upper);
    return setxattr(command, TREE_OPAQUE_XATTR, "y", 1, 0);
}

static int tear_down(void **state)
{
    (void)state;
    return dirtree_remove(top);
}

static void expect_path(size_t count, const char *path, const char *wanted)
{
    char found[PATH_MAX];
    const int code = real_path_find(roots, count, path, found);
    if (code < 0 || strcmp(found, wanted) != 0)
        fail_msg("%s: %d, %s, not %s", path, code, found, wanted);
}

static void links_of_any_layer_are_followed(void **state)
{
    (void)state;
    expect_path(2, "/one", "data");
    expect_path(2, "/one/deep/x", "data/deep/x");
    expect_path(2, "//work/./two/x/", "data/deep/x");
    expect_path(2, "/three/in/x", "work/in/x");
    expect_path(2, "/four/x", "data/deep/x");
    expect_path(2, "/up/x", "data/x");
    expect_path(2, "/none/of/these", "none/of/these");
}

static void what_an_upper_layer_hides_is_not_followed(void **state)
{
    (void)state;
    expect_path(2, "/hidden/x", "hidden/x");
    expect_path(2, "/new/l/x", "new/l/x");
    expect_path(2, "/gone/l/x", "gone/l/x");
    expect_path(1, "/one/x", "one/x");
}

static void of_the_host_only_what_sandboxes_show_counts(void **state)
{
    char found[PATH_MAX], link[PATH_MAX] = "";
    (void)state;
    expect_path(3, "/proc/self/exe", "proc/self/exe");
    if (readlink("/bin", link, sizeof(link) - 1) > 0 && strcmp(link, "usr/bin") == 0)
        expect_path(3, "/bin/tool", "usr/bin/tool");
    assert_int_equal(real_path_find(roots, 3, "/usr/share", found), 0);
}

static void links_without_end_and_the_root_are_nowhere(void **state)
{
    char found[PATH_MAX], path[PATH_MAX + 8];
    (void)state;
    assert_int_equal(real_path_find(roots, 2, "/loop/x", found), -ELOOP);
    assert_int_equal(real_path_find(roots, 2, "/five", found), -ELOOP);
    assert_int_equal(real_path_find(roots, 2, "/./", found), -EINVAL);
    memset(path, 'a', sizeof(path));
    path[0] = '/';
    path[sizeof(path) - 1] = '\0';
    assert_int_equal(real_path_find(roots, 2, path, found), -ENAMETOOLONG);
    for (size_t i = 0; i + 1 < sizeof(path); i += 2)
        memcpy(path + i, "/a", 2);
    path[PATH_MAX - 2] = '\0';
    assert_int_equal(real_path_find(roots, 2, path, found), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_of_any_layer_are_followed),
        cmocka_unit_test(what_an_upper_layer_hides_is_not_followed),
        cmocka_unit_test(of_the_host_only_what_sandboxes_show_counts),
        cmocka_unit_test(links_without_end_and_the_root_are_nowhere),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
