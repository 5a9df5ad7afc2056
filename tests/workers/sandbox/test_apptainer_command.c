/* The tier apptainer where none is needed: its command, what is looked for in what that made, reasons and cures. */
#include "tests/workers/sandbox/sandbox_fixture.h"

#include "common/base/buffer.h"
#include "common/base/cleanup.h"
#include "workers/sandbox/backends/apptainer/apptainer.h"
#include "workers/sandbox/backends/apptainer/apptainer_look.h"
#include "workers/sandbox/probe/probe_apptainer.h"
#include "workers/sandbox/probe/remedy.h"
#include "workers/sandbox/proto/usage.h"
#include "workers/sandbox/probe/probe.h"

/* ---- the command -------------------------------------------------------------------------- */

static void the_command_asks_for_every_wall_and_binds_in_order(void **state)
{
    static struct apptainer_command command; /* large */
    struct fail fail = {0};
    AUTO_BUFFER line = {0};
    (void)state;
    command = (struct apptainer_command){.bind_count = 0};
    snprintf(command.root, sizeof(command.root), "/cache/7/root");
    assert_int_equal(apptainer_bind(&command, "/usr", "/usr", false, &fail), 0);
    assert_int_equal(apptainer_bind(&command, "/cache/7/upper/tmp", "/tmp", true, &fail), 0);
    char **arguments = apptainer_arguments(&command);
    assert_non_null(arguments);
    for (size_t i = 0; arguments[i]; i++)
        buffer_printf(&line, "%s ", arguments[i]);
    apptainer_free_arguments(arguments);
    AUTO_FREE char *said = buffer_take_str(&line);
    assert_string_equal(said,
                        "apptainer --silent exec --containall --pid --no-init --ipc --uts --net --network none "
                        "--hostname "
                        "sandbox --no-home --no-eval --no-mount bind-paths,sys,cwd,home,tmp,hostfs --pwd / --bind "
                        "/usr:/usr:ro --bind /cache/7/upper/tmp:/tmp:rw /cache/7/root /.sluice/init ");
}

static void a_path_that_would_be_two_arguments_is_refused_by_name(void **state)
{
    static const char *const names[] = {"/a:b", "/a,ro", "/a\\b", "/a\nb", "/a\"b"};
    static struct apptainer_command command;
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        struct fail fail = {0};
        assert_int_equal(apptainer_bind(&command, names[i], "/x", false, &fail), -EINVAL);
        assert_non_null(strstr(fail.text, names[i]));
        assert_int_equal(apptainer_bind(&command, "/x", names[i], false, &fail), -EINVAL);
    }
    assert_int_equal(command.bind_count, 0);
}

static void more_mounts_than_there_is_container_for_are_refused(void **state)
{
    static struct apptainer_command command;
    static char points[APPTAINER_POINTS_SIZE];
    struct fail fail = {0};
    char name[NAME_MAX];
    (void)state;
    memset(name, 'x', sizeof(name) - 1);
    name[0] = '/';
    name[sizeof(name) - 1] = '\0';
    command = (struct apptainer_command){.bind_count = 0};
    while (command.bind_count < APPTAINER_BINDS_MAX)
        assert_int_equal(apptainer_bind(&command, "/x", name, false, &fail), 0);
    assert_int_equal(apptainer_bind(&command, "/x", "/x", false, &fail), -E2BIG);
    assert_int_equal(apptainer_list_points(&command, points, &fail), -E2BIG);
    command.bind_count = 1;
    assert_int_equal(apptainer_list_points(&command, points, &fail), 0);
    assert_string_equal(points + 1, name);
    assert_int_equal(points[sizeof(name) + 1], '\0');
}

static void nothing_of_the_workers_environment_reaches_apptainer(void **state)
{
    (void)state;
    setenv("APPTAINER_BIND", "/home", 1);
    for (char *const *at = apptainer_environment(); *at; at++)
        assert_null(strstr(*at, "APPTAINER"));
    unsetenv("APPTAINER_BIND");
}

static void versions_are_read_and_other_programs_told_apart(void **state)
{
    unsigned major = 0, minor = 0;
    (void)state;
    assert_true(apptainer_parse_version("apptainer version 1.4.5-2", &major, &minor));
    assert_int_equal(major, 1);
    assert_int_equal(minor, 4);
    assert_false(apptainer_parse_version("singularity-ce version 4.1.0", &major, &minor));
    assert_false(apptainer_parse_version("apptainer version", &major, &minor));
    assert_false(apptainer_parse_version("", &major, &minor));
}

static void the_reason_is_the_last_error_without_its_colours(void **state)
{
    char coloured[] = "\033[33mWARNING: a\n\033[0m\033[91mERROR  : b\n\033[0m\033[91mFATAL   : "
                      "c\033[31m\n\033[0m";
    char nothing[] = "\n", after[] = "FATAL: x\nERROR: y\nmore";
    (void)state;
    assert_string_equal(probe_apptainer_reason(coloured), "FATAL   : c?[31m");
    assert_string_equal(probe_apptainer_reason(after), "ERROR: y");
    assert_string_equal(probe_apptainer_reason(nothing), "it gave no reason");
}

/* ---- what was made ------------------------------------------------------------------------ */

static void a_namespace_that_is_still_the_hosts_is_named(void **state)
{
    const uint64_t outside[APPTAINER_NAMESPACES] = {1, 2, 3, 4, 5};
    uint64_t inside[APPTAINER_NAMESPACES] = {6, 7, 8, 9, 10};
    struct fail fail = {0};
    (void)state;
    assert_int_equal(apptainer_check_namespaces(outside, inside, &fail), 0);
    inside[2] = 3;
    assert_int_equal(apptainer_check_namespaces(outside, inside, &fail), -EPROTO);
    assert_string_equal(fail.text, "apptainer made no ipc namespace");
}

static void a_mount_that_nobody_asked_for_is_named(void **state)
{
    static const char points[] = "r/usr\0w/tmp\0w/workspace\0r/run/sluice\0w/run/sluice/out\0";
    static const struct {
        const char *path, *options;
        bool is_fine;
    } rows[] = {
        {"/", "rw", true},
        {"/proc", "rw,nosuid", true},
        {"/dev/pts", "rw", true},
        {"/etc/passwd", "ro", true},
        {"/usr", "ro,nosuid", true},
        {"/usr", "rw,nosuid", false},
        {"/usr/local/data", "ro,relatime", true},
        {"/usr/local/data", "rw,relatime", false},
        {"/usr2", "ro", false},
        {"/tmp", "rw", true},
        {"/tmp/other", "rw", false},
        {"/run/sluice", "rw", false},
        {"/run/sluice/out", "rw", true},
        {"/home", "rw", false},
        {"/home", "ro", false},
        {"/sys", "ro", false},
        {"/proc/sys", "rw", false},
        {"/workspace", "rolling", true},
        {"/usr", "rolling", false},
    };
    struct fail fail = {0};
    char line[256];
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        snprintf(line, sizeof(line), "36 35 98:0 /mnt1 %s %s master:1 - ext3 /dev/root rw\n", rows[i].path,
                 rows[i].options);
        if ((apptainer_check_mount(line, points, &fail) == 0) != rows[i].is_fine)
            fail_msg("row %zu: %s", i, line);
        if (!rows[i].is_fine)
            assert_non_null(strstr(fail.text, rows[i].path));
    }
    assert_int_equal(apptainer_check_mount("36 35\n", points, &fail), -EPROTO);
}

/* ---- beside it ----------------------------------------------------------------------------- */

static void usages_are_shared_with_who_is_given_them(void **state)
{
    int fd;
    (void)state;
    struct usage *usages = usages_create(&fd);
    assert_non_null(usages);
    struct usage *theirs = usages_map(fd, NULL);
    assert_non_null(theirs);
    atomic_store(&theirs[7].cpu_us, 5);
    assert_int_equal(atomic_load(&usages[7].cpu_us), 5);
    close(fd);
    usages_destroy(&theirs);
    usages_destroy(&usages);
}

static void root_and_machines_without_it_are_told_what_to_do(void **state)
{
    const struct {
        int code;
        const char *remedy;
    } rows[] = {
        {-ENOENT, "apptainer-suid"}, {-ENOTSUP, "ordinary user"}, {-EPROTO, "allow pid ns"}, {-EIO, "1.2 or newer"}};
    const struct kernel_info kernel = {.kernel_major = 5};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct probe_result result = {.code = rows[i].code, .text = "why"};
        remedy_find(CHECK_apptainer, &kernel, &result);
        assert_non_null(strstr(result.remedy, rows[i].remedy));
    }
}

static int group(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_command_asks_for_every_wall_and_binds_in_order),
        cmocka_unit_test(a_path_that_would_be_two_arguments_is_refused_by_name),
        cmocka_unit_test(more_mounts_than_there_is_container_for_are_refused),
        cmocka_unit_test(nothing_of_the_workers_environment_reaches_apptainer),
        cmocka_unit_test(versions_are_read_and_other_programs_told_apart),
        cmocka_unit_test(the_reason_is_the_last_error_without_its_colours),
        cmocka_unit_test(a_namespace_that_is_still_the_hosts_is_named),
        cmocka_unit_test(a_mount_that_nobody_asked_for_is_named),
        cmocka_unit_test(usages_are_shared_with_who_is_given_them),
        cmocka_unit_test(root_and_machines_without_it_are_told_what_to_do),
    };
    return cmocka_run_group_tests_name("apptainer_command", tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
