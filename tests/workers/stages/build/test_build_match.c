/* What a source of COPY means below a root that is anybody's. */
#include "tests/workers/stages/build/build_tree.h"

#include "workers/stages/build/build_match.h"

static struct build_matching matching;

static void expect_match(const char *pattern, const char *wanted)
{
    char found[4096] = "";
    assert_int_equal(build_match(&matching, pattern), 0);
    for (size_t i = 0; i < matching.count; i++)
        snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s ", matching.paths[i]);
    assert_string_equal(found, wanted);
}

static int set_up(void **state)
{
    int code = set_up_tree(state);
    matching = (struct build_matching){.root = root, .stop = &stop};
    return code;
}

static int tear_down(void **state)
{
    build_matching_finish(&matching);
    return tear_down_tree(state);
}

static void patterns_mean_paths_in_the_order_of_their_names(void **state)
{
    (void)state;
    shell("mkdir -p b/x a/x && touch b/x/1 a/x/2 a/x/.h a/f && ln -s a link && ln -s /b/x out");
    expect_match("*/x", "a/x b/x link/x ");
    expect_match("/a/x/*", "a/x/.h a/x/2 ");
    expect_match("out/?", "out/1 ");
    expect_match("**/f", "a/f link/f ");
    expect_match("a/x", "a/x ");
    assert_int_equal(build_match(&matching, "*/none"), -ENOENT);
    assert_int_equal(build_match(&matching, "none"), -ENOENT);
    assert_int_equal(build_match(&matching, "../*"), -EINVAL);
}

static void links_in_circles_do_not_make_names_without_end(void **state)
{
    (void)state;
    shell("i=0; while [ $i -lt 200 ]; do ln -s . l$i; i=$((i+1)); done");
    assert_int_equal(build_match(&matching, "*/*/*/*/*/*/*/zz*"), -EOVERFLOW);
    assert_true(matching.names <= BUILD_NAMES_MAX);
    assert_int_equal(build_match(&matching, "*"), -EOVERFLOW); /* of one instruction, all together */
}

static void more_paths_than_anybody_means_are_refused(void **state)
{
    (void)state;
    shell("i=0; while [ $i -lt 65 ]; do ln -s . l$i; i=$((i+1)); done");
    assert_int_equal(build_match(&matching, "*/*"), -E2BIG);
}

static void one_that_is_stopped_ends(void **state)
{
    (void)state;
    shell("touch f");
    atomic_store(&stop, true);
    assert_int_equal(build_match(&matching, "*"), -ECANCELED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(patterns_mean_paths_in_the_order_of_their_names),
        TEST(links_in_circles_do_not_make_names_without_end),
        TEST(more_paths_than_anybody_means_are_refused),
        TEST(one_that_is_stopped_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
