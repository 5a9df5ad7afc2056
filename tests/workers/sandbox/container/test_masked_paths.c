/* What the worker has found of the host's secrets, told to the spawner. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "workers/sandbox/container/masked_paths.h"

static void a_list_is_read_as_it_was_written(void **state)
{
    static const char list[] = "fetc/shadow\0dopt/a b\0f\xff";
    static const struct secret expected[] = {{"etc/shadow", false}, {"opt/a b", true}, {"\xff", false}};
    struct secret secret;
    size_t at = 0, count = 0;
    (void)state;
    assert_true(masked_paths_take(slice_of(list, sizeof(list))));
    for (; masked_paths_next(&at, &secret); count++) {
        assert_true(count < 3);
        assert_string_equal(secret.path, expected[count].path);
        assert_int_equal(secret.is_dir, expected[count].is_dir);
    }
    assert_int_equal(count, 3);
    assert_true(slice_equal(masked_paths_list(), slice_of(list, sizeof(list))));
}

static void none_is_a_list_too(void **state)
{
    struct secret secret;
    size_t at = 0;
    (void)state;
    assert_true(masked_paths_take((struct slice){0}));
    assert_false(masked_paths_next(&at, &secret));
}

static void what_is_cut_off_or_too_long_is_none(void **state)
{
    static char long_list[1 << 20];
    (void)state;
    assert_false(masked_paths_take(slice_of("fetc/shadow", 11)));
    assert_false(masked_paths_take(slice_of(long_list, sizeof(long_list))));
}

/* Debian has at least /etc/shadow, where there is a package of passwords; nothing that all may read is listed. */
static void this_hosts_are_those_that_others_may_not_read(void **state)
{
    struct fail fail = {0};
    struct secret secret;
    struct stat it;
    bool is_shadow_listed = false;
    (void)state;
    assert_int_equal(masked_paths_find(true, &fail), 0);
    for (size_t at = 0; masked_paths_next(&at, &secret);) {
        char path[4097];
        snprintf(path, sizeof(path), "/%s", secret.path);
        is_shadow_listed |= strcmp(path, "/etc/shadow") == 0;
        if (lstat(path, &it) == 0) {
            assert_int_equal(S_ISDIR(it.st_mode), secret.is_dir);
            if (!secret.is_dir)
                assert_int_equal(it.st_mode & S_IROTH, 0);
        }
    }
    assert_int_equal(is_shadow_listed, lstat("/etc/shadow", &it) == 0 && !(it.st_mode & S_IROTH));
    size_t len = masked_paths_list().len;
    assert_int_equal(masked_paths_find(true, &fail), 0); /* in place of, not beside, those of before */
    assert_int_equal(masked_paths_list().len, len);
}

/* Whoever runs it, by their real paths, and though all may read them; those of root's own follow where root does. */
static void what_the_worker_keeps_is_listed_before_all_else(void **state)
{
    char dir[] = "/tmp/sluice-kept-XXXXXX", key[64], link[64];
    struct fail fail = {0};
    struct secret secret;
    size_t at = 0;
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(key, sizeof(key), "%s/key", dir);
    snprintf(link, sizeof(link), "%s/link", dir);
    FILE *file = fopen(key, "w");
    assert_non_null(file);
    fclose(file);
    assert_int_equal(symlink(key, link), 0);
    assert_int_equal(masked_paths_keep(link, &fail), 0);
    assert_int_equal(masked_paths_keep(key, &fail), 0);
    assert_int_equal(masked_paths_keep(dir, &fail), 0);
    assert_int_equal(masked_paths_keep("/no/such/file", &fail), 0);
    assert_int_equal(masked_paths_find(false, &fail), 0);
    assert_true(masked_paths_next(&at, &secret));
    assert_string_equal(secret.path, key + 1);
    assert_false(secret.is_dir);
    assert_true(masked_paths_next(&at, &secret));
    assert_string_equal(secret.path, dir + 1);
    assert_true(secret.is_dir);
    assert_false(masked_paths_next(&at, &secret));
    at = 0;
    assert_int_equal(masked_paths_find(true, &fail), 0);
    assert_true(masked_paths_next(&at, &secret));
    assert_string_equal(secret.path, key + 1);
    assert_int_equal(unlink(link) | unlink(key) | rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_is_read_as_it_was_written),
        cmocka_unit_test(none_is_a_list_too),
        cmocka_unit_test(what_is_cut_off_or_too_long_is_none),
        cmocka_unit_test(what_the_worker_keeps_is_listed_before_all_else),
        cmocka_unit_test(this_hosts_are_those_that_others_may_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
