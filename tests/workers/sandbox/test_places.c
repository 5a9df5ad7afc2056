/* Places for what is ours, whatever those inside left at a path and on the way to it. */
#include "tests/workers/sandbox/sandbox_fixture.h"

#include "workers/sandbox/requests.h"

/* What an agent may leave at /logs/verifier or above it. */
static const char *const left[] = {
    "true",
    "mkdir -p /logs/verifier/a/b; echo 1 > /logs/verifier/a/b/c; ln /logs/verifier/a/b/c /logs/verifier/hard",
    "mkdir -p /logs/verifier; chmod 0 /logs/verifier; chmod 0 /logs",
    "echo > /logs",
    "ln -s /nowhere /logs",
    "mkdir /logs; ln -s /tmp /logs/verifier",
    "mkdir /logs; ln -s verifier /logs/verifier",
    "mkdir /logs; mkfifo /logs/verifier",
    "mkdir -p /logs/verifier/d; cd /logs/verifier/d; for i in {1..320}; do mkdir d; cd d; done",
    "mkdir -p /logs/verifier; cd /logs/verifier; for i in {1..200}; do echo > $i; done; truncate -s 32M big"};

FIBER_TEST(a_new_directory_is_there_in_place_of_all_that_was)
{
    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
        struct fail fail = {0};
        struct sandbox *sandbox = open_host();
        expect_status(sandbox, left[i], 0);
        if (sandbox_remake_dir(sandbox, "/logs//verifier/", 0777, &fail) < 0)
            fail_msg("%s: %s", left[i], fail.text);
        expect_text(sandbox, "stat -c '%F %a' /logs/verifier; ls -A /logs/verifier; echo x > /logs/verifier/x",
                    "directory 777\n");
        sandbox_close(&sandbox);
    }
}

FIBER_TEST(a_path_is_free_whatever_was_there)
{
    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
        struct fail fail = {0};
        struct sandbox *sandbox = open_host();
        expect_status(sandbox, left[i], 0);
        assert_int_equal(sandbox_clear_path(sandbox, "/logs/verifier", &fail), 0);
        assert_int_equal(sandbox_write_file(sandbox, "/logs/verifier", "mine", 4, 0644, &fail), 0);
        expect_text(sandbox, "ls -A /logs; cat /logs/verifier", "verifier\nmine");
        sandbox_close(&sandbox);
    }
}

FIBER_TEST(a_directory_that_is_there_stays_with_what_is_in_it)
{
    struct fail fail = {0};
    struct sandbox *sandbox = open_host();
    expect_status(sandbox, "mkdir -p /logs/agent; echo kept > /logs/agent/f; chmod 0 /logs/agent", 0);
    assert_int_equal(sandbox_make_dir(sandbox, "/logs/agent", 0777, &fail), 0);
    assert_int_equal(sandbox_make_dir(sandbox, "more", 0755, &fail), 0);
    expect_text(sandbox, "cat /logs/agent/f; stat -c %a /logs/agent /workspace/more", "kept\n777\n755\n");
    sandbox_close(&sandbox);
}

FIBER_TEST(what_cannot_be_made_is_refused_in_words)
{
    static const struct {
        const char *path;
        int code;
    } rows[] = {
        {"/", -EINVAL}, {"/a/../b", -EINVAL}, {"/usr/x/y", -EROFS}, {"/proc/x", -ENOENT}, {"/run/sluice", -EROFS}};
    struct sandbox *sandbox = open_host();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fail fail = {0};
        assert_int_equal(sandbox_remake_dir(sandbox, rows[i].path, 0755, &fail), rows[i].code);
        assert_non_null(strstr(fail.text, rows[i].path));
    }
    expect_text(sandbox, "echo well", "well\n");
    sandbox_close(&sandbox);
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_new_directory_is_there_in_place_of_all_that_was),
        TEST(a_path_is_free_whatever_was_there),
        TEST(a_directory_that_is_there_stays_with_what_is_in_it),
        TEST(what_cannot_be_made_is_refused_in_words),
    };
    return cmocka_run_group_tests_name("places in a sandbox", tests, NULL, NULL);
}

int main(void) { return run_in_every_tier(group); }
