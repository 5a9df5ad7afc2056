/* Trees that an agent made are removed, whatever it did to keep them. */
#include "tests/workers/sandbox/sandbox_fixture.h"

#include <pthread.h>
#include <sys/resource.h>

#include "common/base/cleanup.h"
#include "workers/files/dirtree.h"
#include "common/files/dirtree_remove.h"

enum { DEEP = 20000, FILES_FEW = 40, STACK_BYTES = 256 << 10 };

static bool is_rename_refused;

int __real_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to);

/* As an overlay does to directories of its lower layers. */
int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    if (!is_rename_refused)
        return __real_renameat(from_dir, from, to_dir, to);
    errno = EXDEV;
    return -1;
}

static char top[128];

static int set_up_top(void **state)
{
    (void)state;
    snprintf(directory, sizeof(directory), "/dev/shm/sluice-test-XXXXXX"); /* disks are slow to make so many */
    if (!mkdtemp(directory)) {
        snprintf(directory, sizeof(directory), "/tmp/sluice-test-XXXXXX");
        if (!mkdtemp(directory))
            return -1;
    }
    make_dir(top, sizeof(top), "top");
    return 0;
}

/* nftw knows no paths longer than PATH_MAX: what is left there says so. */
static int tear_down_top(void **state)
{
    (void)state;
    return rmdir(directory);
}

/* Directories in each other, each with a file beside the next; returns the last, open. */
static int make_chain(int from, int levels)
{
    int dir = dup(from);
    for (int i = 0; i < levels; i++) {
        AUTO_CLOSE int above = dir;
        assert_int_equal(mkdirat(above, "d", 0755), 0);
        assert_int_equal(mknodat(above, "f", S_IFREG | 0600, 0), 0);
        dir = openat(above, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(dir >= 0);
    }
    return dir;
}

static int open_top(void)
{
    int dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(dir >= 0);
    return dir;
}

static void expect_gone(int code)
{
    assert_int_equal(code, 0);
    assert_int_equal(access(top, F_OK), -1);
    assert_int_equal(errno, ENOENT);
}

static void *remove_top(void *arg)
{
    *(int *)arg = dirtree_remove(top);
    return NULL;
}

static void a_tree_of_20000_levels_is_removed_with_few_descriptors_and_little_stack(void **state)
{
    (void)state;
    struct rlimit before, few;
    pthread_attr_t small;
    pthread_t thread;
    int code = -1;
    AUTO_CLOSE int dir = open_top();
    close(make_chain(dir, DEEP));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){FILES_FEW, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    assert_int_equal(pthread_attr_init(&small), 0);
    assert_int_equal(pthread_attr_setstacksize(&small, STACK_BYTES), 0);
    assert_int_equal(pthread_create(&thread, &small, remove_top, &code), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&small);
    setrlimit(RLIMIT_NOFILE, &before);
    expect_gone(code);
}

/* From below upwards: who may not enter cannot go further down. */
static void directories_that_nobody_may_enter_are_removed_at_every_depth(void **state)
{
    (void)state;
    AUTO_CLOSE int dir = open_top();
    int last = make_chain(dir, 100);
    for (int i = 0; i < 100; i++) {
        AUTO_CLOSE int shut = last;
        last = openat(shut, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_int_equal(fchmod(shut, 0), 0);
    }
    close(last);
    expect_gone(dirtree_remove(top));
}

static void names_that_stand_in_the_way_of_what_is_moved_up_are_removed_too(void **state)
{
    (void)state;
    AUTO_CLOSE int dir = open_top();
    assert_int_equal(mknodat(dir, "deep.0", S_IFREG | 0600, 0), 0);
    assert_int_equal(mkdirat(dir, "deep.1", 0), 0);
    assert_int_equal(mkdirat(dir, "deep.2", 0700), 0);
    assert_int_equal(mknodat(dir, "deep.2/f", S_IFREG | 0600, 0), 0);
    assert_int_equal(symlinkat("/", dir, "deep.3"), 0);
    close(make_chain(dir, 100));
    expect_gone(dirtree_remove(top));
}

static void a_tree_that_is_wide_below_its_depth_is_removed(void **state)
{
    (void)state;
    AUTO_CLOSE int dir = open_top();
    AUTO_CLOSE int deep = make_chain(dir, 30);
    for (int i = 0; i < 200; i++) {
        char name[16];
        snprintf(name, sizeof(name), "w%d", i);
        assert_int_equal(mkdirat(deep, name, 0500), 0);
        assert_int_equal(fchmodat(deep, name, 0700, 0), 0);
        AUTO_CLOSE int wide = openat(deep, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(make_chain(wide, 20));
    }
    expect_gone(dirtree_remove(top));
}

static void where_directories_cannot_be_moved_a_layers_depth_is_removed_all_the_same(void **state)
{
    (void)state;
    AUTO_CLOSE int dir = open_top();
    close(make_chain(dir, TREE_DEPTH_MAX - 1));
    is_rename_refused = true;
    int code = dirtree_remove(top);
    is_rename_refused = false;
    expect_gone(code);
}

static void what_links_lead_to_stays(void **state)
{
    (void)state;
    char other[128], link[256];
    make_dir(other, sizeof(other), "other");
    write_host_file(other, "kept", "kept", 0600);
    AUTO_CLOSE int dir = open_top();
    AUTO_CLOSE int deep = make_chain(dir, 40);
    assert_int_equal(symlinkat(other, dir, "link") + symlinkat(other, deep, "link"), 0);
    expect_gone(dirtree_remove(top));
    snprintf(link, sizeof(link), "%s/kept", other);
    assert_int_equal(access(link, F_OK), 0);
    assert_int_equal(dirtree_remove(other), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_top, tear_down_top)

static int group(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_tree_of_20000_levels_is_removed_with_few_descriptors_and_little_stack),
        TEST(directories_that_nobody_may_enter_are_removed_at_every_depth),
        TEST(names_that_stand_in_the_way_of_what_is_moved_up_are_removed_too),
        TEST(a_tree_that_is_wide_below_its_depth_is_removed),
        TEST(where_directories_cannot_be_moved_a_layers_depth_is_removed_all_the_same),
        TEST(what_links_lead_to_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
