/* A tree beside its index: what goes, comes or changes in it is noticed, and nothing else is. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/workers/layers/file_clock.h"
#include "workers/files/dirtree.h"
#include "common/files/dirtree_remove.h"
#include "workers/files/tree_index.h"

static char holder[64];

static void shell(const char *command)
{
    char line[1024];
    snprintf(line, sizeof(line), "cd %s/root && { %s; }", holder, command);
    assert_int_equal(system(line), 0);
}

static void index_it(void)
{
    struct fail fail = {0};
    if (tree_index_write(holder, &fail) < 0)
        fail_msg("%s", fail.text);
    assert_true(tree_index_is_there(holder));
    file_clock_tick(holder);
}

static int set_up(void **state)
{
    (void)state;
    snprintf(holder, sizeof(holder), "/tmp/sluice-test-XXXXXX");
    if (!mkdtemp(holder))
        return -1;
    char root[128];
    snprintf(root, sizeof(root), "%s/root", holder);
    assert_int_equal(mkdir(root, 0755), 0);
    shell("mkdir -p a/b/c other; echo one > f; echo two > a/b/c/g; ln -s f link; ln f hard");
    index_it();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return dirtree_remove(holder);
}

static void expect_whole(void)
{
    struct fail fail = {0};
    if (tree_index_look(holder, &fail) != 0)
        fail_msg("%s", fail.text);
}

static void expect_stale(const char *words)
{
    struct fail fail = {0};
    assert_int_equal(tree_index_look(holder, &fail), -ESTALE);
    if (!strstr(fail.text, words))
        fail_msg("not \"%s\": %s", words, fail.text);
    index_it();
    expect_whole();
}

static void what_goes_comes_or_is_replaced_is_noticed_however_deep(void **state)
{
    (void)state;
    expect_whole();
    shell("rm f");
    expect_stale(". has other entries");
    shell("touch new");
    expect_stale(". has other entries");
    shell("rm a/b/c/g");
    expect_stale("a/b/c has other entries");
    shell("mv a/b/c a/b/d");
    expect_stale("a/b has other entries");
    shell("cp -a other ../copy; mv ../copy other.new; rmdir other; mv other.new other");
    expect_stale(". has other entries");
    shell("rm -r a");
    expect_stale(". has other entries");
}

/* As systemd-tmpfiles does. */
static void what_goes_is_noticed_though_the_directorys_times_were_put_back(void **state)
{
    (void)state;
    shell("touch -r a/b/c ../times; rm a/b/c/g; touch -r ../times a/b/c");
    expect_stale("a/b/c has other entries");
}

static void what_is_written_into_a_file_is_noticed_where_there_are_few(void **state)
{
    (void)state;
    shell("echo eno > f");
    expect_stale("f was written to");
    shell("touch -r a/b/c/g ../times; : > a/b/c/g; touch -r ../times a/b/c/g");
    expect_stale("a/b/c/g was written to");
    shell("for i in $(seq 300); do echo x > other/$i; done");
    index_it();
    shell("echo y > other/7; echo y > f");
    expect_whole();
    shell("rm other/7");
    expect_stale("other has other entries");
}

static void reading_linking_and_rights_for_a_moment_are_no_change(void **state)
{
    (void)state;
    shell("cat f a/b/c/g > /dev/null; ls -R > /dev/null; ln f ../elsewhere; ln a/b/c/g ../g; chmod "
          "0 f; chmod 0644 f");
    expect_whole();
    shell("mkdir -p closed/in; chmod 0 closed");
    index_it();
    shell("chmod 0700 closed; chmod 0 closed");
    expect_whole();
    char moved[80];
    snprintf(moved, sizeof(moved), "%s.moved", holder);
    assert_int_equal(rename(holder, moved) + rename(moved, holder), 0);
    expect_whole();
}

static void without_its_index_or_with_half_of_it_nothing_is_whole(void **state)
{
    (void)state;
    shell("truncate -s 60 ../index");
    expect_stale("index cannot be read");
    shell("rm ../index");
    assert_false(tree_index_is_there(holder));
    expect_stale("index cannot be read");
    struct fail fail = {0};
    shell("mv ../root ../gone");
    assert_int_equal(tree_index_look(holder, &fail), -ESTALE);
    assert_non_null(strstr(fail.text, "root No such file"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_goes_comes_or_is_replaced_is_noticed_however_deep),
        TEST(what_goes_is_noticed_though_the_directorys_times_were_put_back),
        TEST(what_is_written_into_a_file_is_noticed_where_there_are_few),
        TEST(reading_linking_and_rights_for_a_moment_are_no_change),
        TEST(without_its_index_or_with_half_of_it_nothing_is_whole),
    };
    return cmocka_run_group_tests_name("tree_index", tests, NULL, NULL);
}
