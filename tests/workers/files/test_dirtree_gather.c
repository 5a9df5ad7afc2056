/* What layers one over the other show at a place is put elsewhere as files of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/files/dirtree_remove.h"
#include "tests/workers/files/as_everyone.h"
#include "workers/files/dirtree.h"
#include "workers/files/dirtree_gather.h"

enum { ROOTS = 3 };

static char top[64], paths[ROOTS][80];
static const char *roots[ROOTS]; /* the uppermost first: agent, init, image */
static int trees[ROOTS], into;
static atomic_bool stop;

static int open_new(const char *name)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", top, name);
    return mkdir(path, 0700) < 0 ? -1 : open(path, O_RDONLY | O_DIRECTORY);
}

static int set_up(void **state)
{
    static const char *const names[ROOTS] = {"agent", "init", "image"};
    (void)state;
    strcpy(top, "/var/tmp/sluice-gather-XXXXXX"); /* a file system with attributes */
    if (!mkdtemp(top))
        return -1;
    atomic_store(&stop, false);
    for (size_t i = 0; i < ROOTS; i++) {
        snprintf(paths[i], sizeof(paths[i]), "%s/%s", top, names[i]);
        roots[i] = paths[i];
        trees[i] = open_new(names[i]);
    }
    into = open_new("into");
    return into < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROOTS; i++)
        close(trees[i]);
    close(into);
    return dirtree_remove(top);
}

/* In the directory of all: agent/, init/, image/ and into/. */
static void shell(const char *command)
{
    char whole[2048];
    snprintf(whole, sizeof(whole), "cd %s && %s", top, command);
    assert_int_equal(system(whole), 0);
}

static void hide(size_t tree, const char *path)
{
    struct fail fail = {0};
    assert_int_equal(dirtree_hide(trees[tree], path, &fail), 0);
}

static void make_opaque(size_t tree, const char *path)
{
    struct fail fail = {0};
    assert_int_equal(dirtree_make_opaque(trees[tree], path, 0755, &fail), 0);
}

static int gather_with(struct dirtree_stack stack, const char *path, const char *exclude, const char *to)
{
    struct fail fail = {0};
    const struct dirtree_place place = {
        .path = (char *)(uintptr_t)path, .exclude = &exclude, .exclude_count = exclude != NULL};
    stack.roots = roots;
    stack.count = ROOTS;
    stack.linked = ROOTS - 1;
    stack.stop = &stop;
    return dirtree_gather(&stack, &place, into, to, &fail);
}

static void gather(const char *path) { assert_int_equal(gather_with((struct dirtree_stack){0}, path, NULL, path), 0); }

/* What `find` says of it, in order. */
static void expect_tree(const char *wanted)
{
    char command[256], text[1024] = "";
    snprintf(command, sizeof(command),
             "cd %s/into && find . -mindepth 1 -printf '%%y%%p ' | tr ' ' '\\n' | sort | tr '\\n' ' '", top);
    FILE *pipe = popen(command, "r");
    const size_t len = fread(text, 1, sizeof(text) - 1, pipe);
    pclose(pipe);
    text[len] = '\0';
    const char *found = text + strspn(text, " ");
    if (strcmp(found, wanted) != 0)
        fail_msg("%s, not %s", found, wanted);
}

static void layers_lie_one_over_the_other(void **state)
{
    (void)state;
    shell("mkdir -p image/a/d init/a agent/a/d; echo 1 > image/a/x; echo 1 > image/a/y; echo 1 > image/a/d/z; echo 2 > "
          "init/a/y; "
          "echo 3 > agent/a/d/w; echo n > image/other");
    hide(0, "a/x");
    gather("a");
    expect_tree("d./a d./a/d f./a/d/w f./a/d/z f./a/y ");
    shell("grep -q 2 into/a/y && grep -q 1 into/a/d/z");
}

static void a_directory_is_opaque_and_no_whiteout_is_left(void **state)
{
    char value = 0;
    (void)state;
    shell("mkdir -p image/a/b; touch image/a/b/x");
    hide(0, "a/b/x");
    gather("a");
    expect_tree("d./a d./a/b ");
    AUTO_CLOSE int dir = openat(into, "a", O_RDONLY | O_DIRECTORY);
    assert_int_equal(fgetxattr(dir, TREE_OPAQUE_XATTR, &value, 1), 1);
    assert_int_equal(value, 'y');
}

static void what_an_upper_layer_hides_is_not_there(void **state)
{
    (void)state;
    shell("mkdir -p image/a/b image/c image/f; touch image/a/b/x image/c/x image/f/x image/g");
    make_opaque(1, "a"); /* a directory above the place */
    make_opaque(0, "c"); /* the place itself */
    hide(0, "f");        /* gone */
    shell("echo f > agent/g.new; touch agent/g");
    gather("a/b");
    gather("c");
    gather("f");
    gather("g");
    gather("nowhere/x");
    expect_tree("d./c f./g ");
}

static void what_is_no_file_or_directory_of_the_stack_puts_nothing(void **state)
{
    (void)state;
    shell("mkdir -p image/a image/l image/w/in image/p; touch image/a/x image/l/x image/w/in/x image/p/x; ln -s /etc "
          "agent/l; mkfifo agent/p; "
          "ln -s / agent/w; mkdir image/d; echo x > agent/d");
    gather("l");
    gather("p");
    gather("w/in");
    gather("l/x");
    gather("d");
    expect_tree("f./d ");
}

static void in_a_directory_only_links_that_stay_within_it_are_kept(void **state)
{
    (void)state;
    shell("mkdir -p image/a/b agent/a; ln -s /etc image/a/1; ln -s ../../x image/a/b/2; ln -s ../x image/a/b/3; ln -s "
          "b/../../x agent/a/4; "
          "mkfifo agent/a/5; ln -s b agent/a/6");
    gather("a");
    expect_tree("d./a d./a/b l./a/6 l./a/b/3 ");
}

static void patterns_leave_out_whoever_made_it(void **state)
{
    (void)state;
    shell("mkdir -p image/a/b agent/a/b; touch image/a/1.o image/a/b/2.o agent/a/3.o agent/a/b/c");
    assert_int_equal(gather_with((struct dirtree_stack){0}, "a", "*.o", "to/a"), 0);
    expect_tree("d./to d./to/a d./to/a/b f./to/a/b/c ");
}

static void modes_and_times_are_kept_and_set_user_id_is_not(void **state)
{
    struct stat it;
    (void)state;
    shell("mkdir -p image/a/shut; touch image/a/shut/x; echo x > image/a/f; chmod 4751 image/a/f; touch -d @1000 "
          "image/a/f; chmod 500 "
          "image/a/shut; touch -d @2000 image/a/shut; truncate -s 1M image/a/holes; echo end >> image/a/holes");
    gather("a");
    assert_int_equal(fstatat(into, "a/f", &it, 0), 0);
    assert_int_equal(it.st_mode & 07777, 0751);
    assert_int_equal(it.st_mtime, 1000);
    assert_int_equal(fstatat(into, "a/shut", &it, 0), 0);
    assert_int_equal(it.st_mode & 07777, 0500);
    assert_int_equal(it.st_mtime, 2000);
    shell("cmp image/a/holes into/a/holes; chmod 700 image/a/shut into/a/shut");
}

/* To move a directory its rights are needed, by all but root. */
static void a_directory_that_may_not_be_written_to_is_put_below_others(void **state)
{
    struct stat it;
    (void)state;
    shell(
        "mkdir -p image/a/shut agent/a/none init/a/none; touch image/a/shut/x agent/a/none/y init/a/none/z; chmod 500 "
        "image/a/shut; chmod 0 agent/a/none init/a/none");
    gather("a/shut");
    gather("a/none");
    assert_int_equal(fstatat(into, "a/shut", &it, 0), 0);
    assert_int_equal(it.st_mode & 07777, 0500);
    assert_int_equal(fstatat(into, "a/none", &it, 0), 0);
    assert_int_equal(it.st_mode & 07777, 0);
    shell("chmod -R u+rwX agent init image into");
    expect_tree("d./a d./a/none d./a/shut f./a/none/y f./a/none/z f./a/shut/x ");
}

static void files_of_layers_are_linked_and_those_of_the_image_copied(void **state)
{
    struct stat it;
    (void)state;
    shell("mkdir -p image/a init/a; echo x > image/a/i; echo y > init/a/j");
    gather("a");
    assert_int_equal(fstatat(into, "a/i", &it, 0), 0);
    assert_int_equal(it.st_nlink, 1);
    assert_int_equal(fstatat(into, "a/j", &it, 0), 0);
    assert_int_equal(it.st_nlink, 2);
}

static void what_is_hidden_is_not_there_by_any_name(void **state)
{
    struct stat it;
    (void)state;
    shell("mkdir -p image/a/keys; echo s > image/a/secret; ln image/a/secret image/a/other; touch image/a/keys/k "
          "image/a/z");
    struct dirtree_inode hidden[2];
    assert_int_equal(fstatat(trees[2], "a/secret", &it, 0), 0);
    hidden[0] = (struct dirtree_inode){it.st_dev, it.st_ino};
    assert_int_equal(fstatat(trees[2], "a/keys", &it, 0), 0);
    hidden[1] = (struct dirtree_inode){it.st_dev, it.st_ino};
    const struct dirtree_stack stack = {.hidden = hidden, .hidden_count = 2};
    assert_int_equal(gather_with(stack, "a", NULL, "a"), 0);
    assert_int_equal(gather_with(stack, "a/keys/k", NULL, "k"), 0);
    assert_int_equal(gather_with(stack, "a/other", NULL, "o"), 0);
    expect_tree("d./a f./a/z ");
}

static void there_is_an_end_to_it(void **state)
{
    (void)state;
    shell("mkdir image/a; echo x > image/a/x");
    assert_int_equal(gather_with((struct dirtree_stack){.entries = DIRTREE_GATHER_ENTRIES}, "a", NULL, "a"), -EFBIG);
    assert_int_equal(gather_with((struct dirtree_stack){.bytes = DIRTREE_GATHER_BYTES}, "a", NULL, "a"), -EFBIG);
    atomic_store(&stop, true);
    assert_int_equal(gather_with((struct dirtree_stack){0}, "a", NULL, "a"), -ECANCELED);
}

static void a_place_takes_the_place_of_what_was_put_before(void **state)
{
    (void)state;
    shell("mkdir -p image/a image/b; touch image/a/x image/b/y");
    gather("a");
    assert_int_equal(gather_with((struct dirtree_stack){0}, "b", NULL, "a"), 0);
    expect_tree("d./a f./a/y ");
}

/* As two places may be one below the other where they come to lie alone. */
static void what_was_put_before_is_in_the_way_as_a_file_or_a_link(void **state)
{
    (void)state;
    shell("mkdir -p agent/a image/b; echo x > agent/file; ln -s d agent/a/link; mkdir agent/a/d; touch image/b/y");
    gather("file");
    gather("a");
    assert_int_equal(gather_with((struct dirtree_stack){0}, "b", NULL, "file/b"), 0);
    assert_int_equal(gather_with((struct dirtree_stack){0}, "b", NULL, "a/link/b/c"), 0);
    expect_tree("d./a d./a/d f./file l./a/link ");
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(layers_lie_one_over_the_other),
        TEST(a_directory_is_opaque_and_no_whiteout_is_left),
        TEST(what_an_upper_layer_hides_is_not_there),
        TEST(what_is_no_file_or_directory_of_the_stack_puts_nothing),
        TEST(in_a_directory_only_links_that_stay_within_it_are_kept),
        TEST(patterns_leave_out_whoever_made_it),
        TEST(modes_and_times_are_kept_and_set_user_id_is_not),
        TEST(a_directory_that_may_not_be_written_to_is_put_below_others),
        TEST(files_of_layers_are_linked_and_those_of_the_image_copied),
        TEST(what_is_hidden_is_not_there_by_any_name),
        TEST(there_is_an_end_to_it),
        TEST(a_place_takes_the_place_of_what_was_put_before),
        TEST(what_was_put_before_is_in_the_way_as_a_file_or_a_link),
    };
    return cmocka_run_group_tests_name("what layers show is gathered", tests, NULL, NULL);
}

int main(void) { return run_as_all(group); }
