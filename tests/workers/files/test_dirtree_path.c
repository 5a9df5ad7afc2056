#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/cleanup.h"
#include "workers/files/dirtree.h"

static void a_name_is_joined_to_its_directory_and_taken_off_again(void **state)
{
    (void)state;
    AUTO_FREE char *path = dirtree_join("/a/b", "c");
    assert_string_equal(path, "/a/b/c");
    assert_string_equal(dirtree_leaf(path), "c");
    AUTO_FREE char *parent = dirtree_parent(path);
    assert_string_equal(parent, "/a/b");
    AUTO_FREE char *top = dirtree_parent("/a");
    assert_string_equal(top, "");
}

static void a_path_is_cleaned_or_there_is_none(void **state)
{
    (void)state;
    AUTO_FREE char *clean = dirtree_clean_path("./a//b/./c/");
    assert_string_equal(clean, "a/b/c");
    AUTO_FREE char *root = dirtree_clean_path("./");
    assert_string_equal(root, "");
    assert_null(dirtree_clean_path("/a"));
    assert_null(dirtree_clean_path("a/../b"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_is_joined_to_its_directory_and_taken_off_again),
        cmocka_unit_test(a_path_is_cleaned_or_there_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
