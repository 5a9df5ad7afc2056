/* What is left of a context, and what counts of it. */
#include "tests/workers/stages/build/build_tree.h"

#include "workers/stages/build/build_context.h"
#include "workers/stages/build/build_ignore.h"

static void apply(int wanted)
{
    struct fail fail = {0};
    if (build_ignore_apply(root, &stop, &fail) != wanted)
        fail_msg("%s", fail.text);
}

static void what_a_dockerignore_names_goes_whatever_its_directory_allows(void **state)
{
    (void)state;
    shell("mkdir -p mod/a deep/b && touch mod/x mod/y mod/a/x deep/b/x && chmod 0555 mod mod/a && chmod 0100 deep && "
          "printf '**/x\\n!mod/a/x\\n' > .dockerignore");
    apply(0);
    shell("[ ! -e mod/x ] && [ -e mod/y ] && [ -e mod/a/x ] && [ $(stat -c %a mod) = 555 ] && "
          "[ $(stat -c %a deep) = 100 ] && [ ! -e deep/b/x ] && chmod -R u+rwX .");
}

static void an_exception_below_what_is_left_out_stays(void **state)
{
    (void)state;
    shell("mkdir -p out/in/side && touch out/a out/in/b out/in/side/c && printf 'out\\n!out/in\\nout/in/side\\n' > "
          ".dockerignore");
    apply(0);
    shell("[ ! -e out/a ] && [ -e out/in/b ] && [ ! -e out/in/side ]");
}

static void one_that_is_stopped_leaves_the_rest(void **state)
{
    (void)state;
    shell("touch a && echo a > .dockerignore");
    atomic_store(&stop, true);
    apply(-ECANCELED);
    shell("[ -e a ]");
}

static void what_is_no_file_is_no_dockerignore(void **state)
{
    (void)state;
    shell("mkdir .dockerignore");
    apply(-EINVAL);
    shell("rmdir .dockerignore; touch a; echo a > ignore; ln -s ignore .dockerignore");
    apply(-EINVAL);
    shell("[ -e a ]");
}

static void one_that_nobody_may_read_holds_too(void **state)
{
    (void)state;
    shell("touch a; echo a > .dockerignore; chmod 0 .dockerignore");
    apply(0);
    shell("[ ! -e a ] && [ $(stat -c %a .dockerignore) = 0 ]");
}

static int add(const char *path, char key[DIGEST_SIZE])
{
    struct digest *digest = digest_begin();
    assert_non_null(digest);
    int code = build_content_add(digest, root, path, &stop);
    assert_true(digest_end(&digest, key));
    return code;
}

static void a_directory_counts_by_its_own_mode_and_keeps_it(void **state)
{
    char one[DIGEST_SIZE], two[DIGEST_SIZE];
    (void)state;
    shell("mkdir -p d/in && chmod 0100 d/in");
    assert_int_equal(add("d", one), 0);
    shell("[ $(stat -c %a d/in) = 100 ] && chmod 0700 d/in");
    assert_int_equal(add("d", two), 0);
    assert_string_not_equal(one, two);
}

static void a_digest_that_is_stopped_ends(void **state)
{
    char key[DIGEST_SIZE];
    (void)state;
    shell("echo some > f");
    atomic_store(&stop, true);
    assert_int_equal(add("f", key), -ECANCELED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_tree, tear_down_tree)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_a_dockerignore_names_goes_whatever_its_directory_allows),
        TEST(an_exception_below_what_is_left_out_stays),
        TEST(one_that_is_stopped_leaves_the_rest),
        TEST(what_is_no_file_is_no_dockerignore),
        TEST(one_that_nobody_may_read_holds_too),
        TEST(a_directory_counts_by_its_own_mode_and_keeps_it),
        TEST(a_digest_that_is_stopped_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
