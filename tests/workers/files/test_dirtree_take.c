/* Of a layer that somebody else made, places alone are taken; nothing of the way to them,
 * and nothing that leads out. */
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
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tests/workers/files/as_everyone.h"
#include "workers/files/dirtree.h"
#include "common/files/dirtree_remove.h"
#include "workers/files/dirtree_take.h"

static char top[64];
static int from, into;

static int set_up(void **state)
{
    static const char *const files[] = {"app/out/a", "app/out/sub/b", "app/other", "usr/bin/grep", "file"};
    struct fail fail = {0};
    (void)state;
    strcpy(top, "/var/tmp/sluice-take-XXXXXX"); /* a file system with attributes */
    if (!mkdtemp(top))
        return -1;
    const int dir = open(top, O_RDONLY | O_DIRECTORY);
    if (mkdirat(dir, "from", 0700) < 0 || mkdirat(dir, "into", 0700) < 0)
        return -1;
    from = openat(dir, "from", O_RDONLY | O_DIRECTORY);
    into = openat(dir, "into", O_RDONLY | O_DIRECTORY);
    close(dir);
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
        if (dirtree_write(from, files[i], slice_from_str("x"), 0644, &fail) < 0)
            return -1;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    close(from);
    close(into);
    return dirtree_remove(top);
}

/* Of the first place these patterns are left out. */
static void take_without(const char *const *paths, const char *const *exclude, size_t exclude_count)
{
    struct dirtree_place places[8] = {{.exclude = exclude, .exclude_count = exclude_count}};
    struct fail fail = {0};
    size_t count = 0;
    for (; paths[count]; count++)
        places[count].path = strdup(paths[count]);
    if (dirtree_take(from, into, places, count, &fail) < 0)
        fail_msg("%s", fail.text);
    while (count > 0)
        free(places[--count].path);
}

static void take(const char *const *paths) { take_without(paths, NULL, 0); }

static void take_one(const char *path) { take((const char *const[]){path, NULL}); }

/* '-', 'd', 'l', 'w' of a whiteout, or 0. */
static char type_of(const char *path)
{
    struct stat it;
    if (fstatat(into, path, &it, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    if (S_ISCHR(it.st_mode) && it.st_rdev == makedev(0, 0))
        return 'w';
    return S_ISREG(it.st_mode) ? '-' : S_ISDIR(it.st_mode) ? 'd' : S_ISLNK(it.st_mode) ? 'l' : '?';
}

static bool is_opaque(const char *path)
{
    char value = 0;
    const int dir = openat(into, path, O_RDONLY | O_DIRECTORY);
    const bool is = fgetxattr(dir, TREE_OPAQUE_XATTR, &value, 1) == 1 && value == 'y';
    close(dir);
    return is;
}

static void files_and_directories_are_taken_and_nothing_else(void **state)
{
    (void)state;
    take((const char *const[]){"app/out", "file", "none/at/all", NULL});
    assert_true(type_of("app/out/a") == '-' && type_of("app/out/sub/b") == '-' && type_of("file") == '-');
    assert_true(!type_of("app/other") && !type_of("usr") && !type_of("none"));
    assert_false(is_opaque("app") || is_opaque("app/out"));
}

static void of_places_within_one_another_the_outer_is_taken(void **state)
{
    (void)state;
    take((const char *const[]){"app/out/a", "app", "app/out", "app", NULL});
    assert_true(type_of("app/out/a") == '-' && type_of("app/other") == '-');
}

static void what_one_place_leaves_out_and_another_names_is_taken(void **state)
{
    static const char *const out[] = {"out"};
    (void)state;
    take_without((const char *const[]){"app", "app/out/sub", "app/out/none", NULL}, out, 1);
    assert_true(type_of("app/out/sub/b") == '-' && type_of("app/other") == '-');
    assert_true(!type_of("app/out/a") && !type_of("app/out/none"));
}

/* A directory between them, that another place brings, brings what that leaves out of the outermost as well. */
static void of_three_places_the_middle_one_does_not_stand_for_the_inner(void **state)
{
    static const char *const sub[] = {"sub"};
    (void)state;
    take_without((const char *const[]){"app", "app/out", "app/out/sub", NULL}, sub, 1);
    assert_true(type_of("app/out/a") == '-' && type_of("app/out/sub/b") == '-' && type_of("app/other") == '-');
}

static void a_place_is_put_back_into_directories_that_nobody_may_write_to(void **state)
{
    static const char *const sub[] = {"sub"};
    struct stat it;
    (void)state;
    assert_int_equal(fchmodat(from, "app/out/sub", 0500, 0), 0);
    assert_int_equal(fchmodat(from, "app/out", 0, 0), 0);
    assert_int_equal(fchmodat(from, "app", 0500, 0), 0);
    take_without((const char *const[]){"app", "app/out/sub", NULL}, sub, 1);
    assert_int_equal(fstatat(into, "app", &it, 0), 0);
    assert_int_equal(it.st_mode & 07777, 0500);
    assert_int_equal(fstatat(into, "app/out", &it, 0), 0);
    assert_int_equal(it.st_mode & 07777, 0);
    assert_int_equal(fchmodat(into, "app/out", 0700, 0), 0);
    assert_int_equal(fstatat(into, "app/out/sub", &it, 0), 0);
    assert_int_equal(it.st_mode & 07777, 0500);
    assert_true(type_of("app/out/sub/b") == '-' && type_of("app/out/a") == '-');
    assert_int_equal(fchmodat(into, "app/out/sub", 0700, 0), 0);
    assert_int_equal(fchmodat(into, "app", 0700, 0), 0);
}

static void what_is_no_file_and_no_directory_is_left(void **state)
{
    (void)state;
    assert_int_equal(symlinkat("app", from, "link"), 0);
    assert_int_equal(mkfifoat(from, "fifo", 0644), 0);
    assert_int_equal(mknodat(from, "gone", S_IFCHR, makedev(0, 0)), 0);
    take((const char *const[]){"link", "fifo", "gone", "link/out", "file/x", NULL});
    assert_true(!type_of("link") && !type_of("fifo") && !type_of("gone") && !type_of("file"));
}

static void the_way_is_made_anew_and_what_it_hid_the_place_hides(void **state)
{
    struct stat it;
    (void)state;
    const int app = openat(from, "app", O_RDONLY | O_DIRECTORY);
    assert_int_equal(fsetxattr(app, TREE_OPAQUE_XATTR, "y", 1, 0), 0);
    assert_int_equal(fchmodat(app, "out", 0500, 0), 0);
    assert_int_equal(fchmod(app, 0), 0);
    take((const char *const[]){"app/out", "app/other", NULL});
    assert_true(type_of("app/out/a") == '-' && type_of("app/other") == '-');
    assert_true(!is_opaque("app") && is_opaque("app/out"));
    assert_int_equal(fstatat(into, "app", &it, 0), 0);
    assert_int_equal(it.st_mode & 07777, 0755);
    assert_int_equal(fstatat(into, "app/out", &it, 0), 0);
    assert_int_equal(it.st_mode & 07777, 0500);
    assert_int_equal(fchmod(app, 0700), 0);
    close(app);
}

static void links_that_lead_out_are_whiteouts_and_others_are_kept(void **state)
{
    static const struct {
        const char *name, *to;
        char type;
    } links[] = {{"one", "a", 'l'},       {"two", "sub/b", 'l'},       {"three", "./sub/./b", 'l'},
                 {"sub/up", "../a", 'l'}, {"nowhere", "none", 'l'},    {"out", "../other", 'w'},
                 {"abs", "/etc", 'w'},    {"sub/out", "../../x", 'w'}, {"chain", "sub/../a", 'w'},
                 {"dots", "..x/y", 'l'},  {"sub/dir", "..", 'l'},      {"self", ".", 'l'},
                 {"late", "./..", 'w'},   {"slash", "sub//../..", 'w'}};
    char path[64];
    (void)state;
    const int out = openat(from, "app/out", O_RDONLY | O_DIRECTORY);
    for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++)
        assert_int_equal(symlinkat(links[i].to, out, links[i].name), 0);
    assert_int_equal(mkfifoat(out, "fifo", 0644), 0);
    close(out);
    take_one("app/out");
    for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++) {
        snprintf(path, sizeof(path), "app/out/%s", links[i].name);
        if (type_of(path) != links[i].type)
            fail_msg("%s -> %s", links[i].name, links[i].to);
    }
    assert_int_equal(type_of("app/out/fifo"), 'w');
}

static void what_is_excluded_is_not_there_nor_is_it_gone(void **state)
{
    char path[] = "app";
    const char *const patterns[] = {"s?b", "*/*.o", "gone"};
    struct dirtree_place place = {.path = path, .exclude = patterns, .exclude_count = 3};
    struct fail fail = {0};
    (void)state;
    assert_int_equal(dirtree_write(from, "app/out/x.o", slice_from_str("x"), 0644, &fail), 0);
    assert_int_equal(mknodat(from, "app/gone", S_IFCHR, makedev(0, 0)), 0);
    assert_int_equal(dirtree_take(from, into, &place, 1, &fail), 0);
    assert_true(type_of("app/out/a") == '-' && type_of("app/other") == '-');
    assert_true(!type_of("app/out/sub") && !type_of("app/out/x.o") && !type_of("app/gone"));
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(files_and_directories_are_taken_and_nothing_else),
        TEST(of_places_within_one_another_the_outer_is_taken),
        TEST(what_one_place_leaves_out_and_another_names_is_taken),
        TEST(of_three_places_the_middle_one_does_not_stand_for_the_inner),
        TEST(a_place_is_put_back_into_directories_that_nobody_may_write_to),
        TEST(what_is_no_file_and_no_directory_is_left),
        TEST(the_way_is_made_anew_and_what_it_hid_the_place_hides),
        TEST(links_that_lead_out_are_whiteouts_and_others_are_kept),
        TEST(what_is_excluded_is_not_there_nor_is_it_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return run_as_all(group); }
