/* Who those inside a sandbox are, where they start and with which variables, as its plan says. */
#include "tests/workers/sandbox/sandbox_fixture.h"

#include "common/base/cleanup.h"
#include "workers/sandbox/proto/wire.h"
#include "workers/sandbox/requests.h"

#define AUTO_SANDBOX __attribute__((cleanup(sandbox_close)))

static const struct sandbox_user root = {0, 0}, other = {4711, 4712};

static struct sandbox *open_as(const struct sandbox_user *user)
{
    struct sandbox_plan plan = host_plan();
    plan.user = user;
    return open_sandbox(&plan);
}

FIBER_TEST(without_a_word_everything_is_as_usual)
{
    AUTO_SANDBOX struct sandbox *sandbox = open_host();
    expect_text(sandbox, "id -u; id -g; pwd; echo $HOME", "1000\n1000\n/workspace\n/workspace\n");
}

FIBER_TEST(uid_zero_is_zero_to_itself)
{
    AUTO_SANDBOX struct sandbox *sandbox = open_as(&root);
    expect_text(sandbox, "id -u; id -g", "0\n0\n");
    expect_text(sandbox, "touch /var/it; stat -c %u:%g /var/it /workspace", "0:0\n0:0\n");
}

FIBER_TEST(another_id_is_that_id)
{
    AUTO_SANDBOX struct sandbox *sandbox = open_as(&other);
    expect_text(sandbox, "id -u; id -g; touch it; stat -c %u:%g it", "4711\n4712\n4711:4712\n");
}

FIBER_TEST(uid_zero_has_no_capability_and_can_gain_none)
{
    AUTO_SANDBOX struct sandbox *sandbox = open_as(&root);
    expect_text(sandbox, "grep -E '^(Cap|NoNewPrivs)' /proc/self/status",
                "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n"
                "CapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\n");
    expect_status(sandbox, "mount -t tmpfs none /mnt 2>/dev/null", 32);
    expect_status(sandbox, "chroot / true 2>/dev/null", 125);
    expect_status(sandbox, "unshare -U true 2>/dev/null", 1);
}

FIBER_TEST(what_changes_owners_is_answered_as_done_and_changes_nothing)
{
    AUTO_SANDBOX struct sandbox *sandbox = open_as(&root);
    expect_text(sandbox, "touch it && chown 33:44 it && chown -h 33 it && stat -c %u:%g it", "0:0\n");
    expect_text(sandbox, "python3 -c 'import os; os.setgroups([33]); os.setgid(33); os.setuid(33); print(os.getuid())'",
                "0\n");
    expect_text(sandbox,
                "mkdir a && cp -a /etc/hostname a/ 2>&1; tar -cf - a | tar -xf - -C /tmp --same-owner; echo $?", "0\n");
}

FIBER_TEST(devices_are_not_made_and_fifos_are)
{
    AUTO_SANDBOX struct sandbox *sandbox = open_as(&root);
    expect_text(sandbox, "mknod disk b 8 0; echo $?; test -e disk; echo $?; mkfifo pipe; stat -c %F pipe",
                "0\n1\nfifo\n");
}

FIBER_TEST(an_ordinary_user_hears_that_owners_stay)
{
    AUTO_SANDBOX struct sandbox *sandbox = open_host();
    expect_status(sandbox, "touch it; chown 33 it 2>/dev/null", 1);
}

FIBER_TEST(uid_zero_cannot_write_the_kernels_settings)
{
    AUTO_SANDBOX struct sandbox *sandbox = open_as(&root);
    expect_status(sandbox,
                  "for f in $(find /proc/sys -type f 2>/dev/null); do"
                  " (echo 1 > $f) 2>/dev/null && exit 9; done; exit 0",
                  0);
    expect_status(sandbox, "kill -9 1; kill -STOP 1; sleep 0.05; true", 0);
}

FIBER_TEST(variables_and_working_directory_are_of_every_command)
{
    const char *variables[] = {"GREETING=hello there", "PATH=/usr/bin:/bin", "HOME=/home/me"};
    struct sandbox_plan plan = host_plan();
    plan.workdir = "/var/new/place";
    plan.variables = variables;
    plan.variable_count = 3;
    AUTO_SANDBOX struct sandbox *sandbox = open_sandbox(&plan);
    expect_text(sandbox, "pwd; echo $GREETING; echo $PATH; echo $HOME; echo $LANG",
                "/var/new/place\nhello there\n/usr/bin:/bin\n/home/me\nC.UTF-8\n");
    expect_text(sandbox, "grep -czE '^(HOME|PATH)=' /proc/$$/environ", "2\n");
    struct fail fail = {0};
    assert_int_equal(sandbox_write_file(sandbox, "file", "x", 1, 0644, &fail), 0);
    expect_text(sandbox, "ls /var/new/place", "file\n");
    assert_string_equal(sandbox_workdir(sandbox), "/var/new/place");
}

FIBER_TEST(an_environment_beyond_the_bounds_is_refused)
{
    static char large[SANDBOX_VARIABLES_BYTES_MAX + 16];
    struct sandbox *sandbox = NULL;
    struct fail fail = {0};
    struct sandbox_plan plan = host_plan();
    memset(large, 'x', sizeof(large) - 1);
    memcpy(large, "A=", 2);
    const char *variables[] = {large};
    plan.variables = variables;
    plan.variable_count = 1;
    assert_int_equal(sandbox_open(spawner, &plan, &sandbox, &fail), -EINVAL);
    assert_non_null(strstr(fail.text, "environment variables"));
    plan.variable_count = 0;
    plan.workdir = "relative";
    assert_int_equal(sandbox_open(spawner, &plan, &sandbox, &fail), -EINVAL);
}

/* Of an image of its own every path can be written. */
FIBER_TEST(every_path_of_an_image_can_be_written)
{
    char image[128], path[160];
    static const char *const dirs[] = {"usr", "usr/bin", "etc", "opt", "root", "app", "var"};
    make_dir(image, sizeof(image), "image");
    for (size_t i = 0; i < sizeof(dirs) / sizeof(*dirs); i++) {
        char name[64];
        snprintf(name, sizeof(name), "image/%s", dirs[i]);
        make_dir(path, sizeof(path), name);
    }
    struct sandbox_plan plan = host_plan();
    plan.image = image;
    plan.user = &root;
    AUTO_SANDBOX struct sandbox *sandbox = open_sandbox(&plan);
    static const char *const files[] = {"/app/x",     "/tests/x",         "/logs/verifier/x", "/root/x",     "/etc/x",
                                        "/usr/bin/x", "/usr/local/bin/x", "/opt/x",           "/solution/x", "/lib/x",
                                        "/x"};
    struct fail fail = {0};
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
        if (sandbox_write_file(sandbox, files[i], "x", 1, 0644, &fail) < 0)
            fail_msg("%s: %s", files[i], fail.text);
}

static int group(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_a_word_everything_is_as_usual, set_up, tear_down),
        cmocka_unit_test_setup_teardown(uid_zero_is_zero_to_itself, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_id_is_that_id, set_up, tear_down),
        cmocka_unit_test_setup_teardown(uid_zero_has_no_capability_and_can_gain_none, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_changes_owners_is_answered_as_done_and_changes_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(devices_are_not_made_and_fifos_are, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_ordinary_user_hears_that_owners_stay, set_up, tear_down),
        cmocka_unit_test_setup_teardown(uid_zero_cannot_write_the_kernels_settings, set_up, tear_down),
        cmocka_unit_test_setup_teardown(variables_and_working_directory_are_of_every_command, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_environment_beyond_the_bounds_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_path_of_an_image_can_be_written, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("environment", tests, NULL, NULL);
}

int main(void) { return run_in_every_tier(group); }
