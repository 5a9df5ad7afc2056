/* The spawner's program: what it is given, and what it is executed from. */
#include "tests/workers/sandbox/sandbox_fixture.h"

#include <dirent.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include "common/base/cleanup.h"
#include "workers/sandbox/embedded/program.h"
#include "workers/sandbox/spawner_start.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

/* ---- what it is given --------------------------------------------------------------------- */

static size_t read_of_spawner(const char *name, char *ret, size_t size)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", spawner_pid(spawner), name);
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, ret, size - 1);
    assert_true(got > 0);
    ret[got] = '\0';
    return (size_t)got;
}

static int set_up_with_masked_paths(void **state)
{
    setenv("SLUICE_TEST_SECRET", "s3cret", 1);
    int file = open("/proc/self/comm", O_RDONLY); /* which a program would be given */
    int code = set_up(state);
    unsetenv("SLUICE_TEST_SECRET");
    close(file);
    return code;
}

static void the_workers_environment_is_not_its(void **state)
{
    static char environment[1 << 16];
    char command[64];
    (void)state;
    assert_int_equal(read_of_spawner("cmdline", command, sizeof(command)), sizeof("sluice-spawner"));
    assert_string_equal(command, "sluice-spawner");
    size_t len = read_of_spawner("environ", environment, sizeof(environment));
    assert_null(memmem(environment, len, "s3cret", 6));
    assert_int_equal(strncmp(environment, "PATH=", 5), 0);
}

/* How many; the file that a program would be given is none of them. */
static size_t count_files(void)
{
    char path[64], link[256];
    size_t count = 0;
    snprintf(path, sizeof(path), "/proc/%d/fd", spawner_pid(spawner));
    DIR *stream = opendir(path);
    const struct dirent *entry;
    assert_non_null(stream);
    while ((entry = readdir(stream))) {
        ssize_t len = readlinkat(dirfd(stream), entry->d_name, link, sizeof(link) - 1);
        link[len > 0 ? len : 0] = '\0';
        if (strstr(link, "/comm"))
            fail_msg("descriptor %s is %s", entry->d_name, link);
        count += len > 0;
    }
    closedir(stream);
    return count;
}

static void the_workers_files_are_not_its(void **state)
{
    (void)state;
    assert_true(count_files() >= 3);
}

FIBER_TEST(containers_that_cannot_be_leave_nothing)
{
    struct sandbox_plan plan = host_plan(), none = plan;
    none.image = "/nowhere";
    struct sandbox *sandbox = open_sandbox(&plan);
    sandbox_close(&sandbox);
    size_t before = 0, now = 0;
    for (int i = 0; i < 30; i++) {
        struct fail fail;
        assert_int_equal(sandbox_open(spawner, &none, &sandbox, &fail), -EINVAL);
        await_sleep(20); /* the spare one is there again */
        now = count_files();
        before = i == 5 ? now : before;
    }
    for (int i = 0; i < 200 && now > before; i++) {
        await_sleep(20);
        now = count_files();
    }
    assert_true(now <= before);
}

/* ---- what it may ------------------------------------------------------------------------- */

static void it_has_all_rights_in_its_namespaces_and_leaves_none_to_programs(void **state)
{
    (void)state;
    assert_int_equal(fixture_read_status(spawner_pid(spawner), "CapInh: %llx"), 0);
    assert_int_equal(fixture_read_status(spawner_pid(spawner), "CapAmb: %llx"), 0);
    assert_int_equal(fixture_read_status(spawner_pid(spawner), "CapEff: %llx"),
                     fixture_read_status(spawner_pid(spawner), "CapBnd: %llx"));
    assert_true(fixture_read_status(spawner_pid(spawner), "CapEff: %llx") & 1u << CAP_SYS_ADMIN);
}

/* Where it is in the worker's own namespaces, to execute a program would give root more than the worker has. */
static int start_with_less(const char *scratch)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct rights[2];
    struct fail fail = {0};
    char disks[256];
    snprintf(disks, sizeof(disks), "%s/disks", scratch);
    if (syscall(SYS_capget, &header, rights) < 0)
        return 2;
    rights[0].permitted &= ~(1u << CAP_SYS_PTRACE);
    rights[0].effective = rights[0].inheritable = rights[0].permitted;
    rights[1].inheritable = rights[1].permitted;
    if (syscall(SYS_capset, &header, rights) < 0)
        return 2;
    spawner = spawner_start_tier(scratch, TIER_landlock, disks, &fail);
    if (!spawner)
        return 3;
    int code = fixture_read_status(spawner_pid(spawner), "CapPrm: %llx") !=
                   fixture_read_status(getpid(), "CapPrm: %llx") ||
               fixture_read_status(spawner_pid(spawner), "CapInh: %llx") != 0;
    spawner_stop(&spawner);
    return code;
}

static void it_has_no_right_that_its_worker_has_not(void **state)
{
    char scratch[128];
    int status;
    (void)state;
    make_dir(scratch, sizeof(scratch), "other");
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        _exit(start_with_less(scratch));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* Also where it does not see the end of the wire. */
static void it_ends_with_its_worker(void **state)
{
    char scratch[128];
    int ends[2], spawned = 0;
    struct fail fail = {0};
    (void)state;
    make_dir(scratch, sizeof(scratch), "other");
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        spawner = spawner_start(scratch, &fail);
        spawned = spawner ? spawner_pid(spawner) : -1;
        kill(spawned, SIGSTOP);
        _exit(write(ends[1], &spawned, sizeof(spawned)) != sizeof(spawned));
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &spawned, sizeof(spawned)), sizeof(spawned));
    assert_true(spawned > 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    for (int i = 0; i < 1000 && kill(spawned, 0) == 0; i++)
        usleep(10000);
    assert_int_equal(kill(spawned, 0), -1);
    close(ends[0]);
}

/* ---- what it is executed from ------------------------------------------------------------ */

static void write_own(const char *path, const char *text)
{
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) < 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        _exit(2);
    }
}

enum { SKIPPED = 77 };

/* To a pid namespace of its own, where root can set the sysctl that forbids to execute memory. */
static void enter_namespaces(void)
{
    char map[32];
    unsigned uid = geteuid(), gid = getegid();
    if (uid != 0)
        _exit(SKIPPED);
    if (unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS) < 0)
        _exit(errno == EINVAL ? SKIPPED : 2); /* ThreadSanitizer has a thread of its own */
    write_own("/proc/self/setgroups", "deny");
    snprintf(map, sizeof(map), "%u %u 1\n", uid, uid);
    write_own("/proc/self/uid_map", map);
    snprintf(map, sizeof(map), "%u %u 1\n", gid, gid);
    write_own("/proc/self/gid_map", map);
    pid_t pid = fork();
    int status = 0;
    if (pid != 0) {
        waitpid(pid, &status, 0);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 3);
    }
    if (mount("proc", "/proc", "proc", 0, NULL) < 0)
        _exit(2);
    if (access("/proc/sys/vm/memfd_noexec", F_OK) < 0)
        _exit(SKIPPED); /* before Linux 6.3 */
    write_own("/proc/sys/vm/memfd_noexec", "2");
    if (memfd_create("test", MFD_CLOEXEC | MFD_EXEC) >= 0)
        _exit(2);
}

static void use_one(void)
{
    struct sandbox *sandbox = open_host();
    expect_text(sandbox, "echo here", "here\n");
    sandbox_close(&sandbox);
}

/* 0: one was; else a line says why not. */
static int start_and_use_one(const char *scratch)
{
    struct fail fail = {0};
    spawner = spawner_start(scratch, &fail);
    loop = loop_create();
    if (!spawner || !spawner_attach(spawner, loop)) {
        fprintf(stderr, "%s\n", fail.text);
        return 1;
    }
    in_fiber(use_one);
    spawner_stop(&spawner);
    loop_destroy(&loop);
    return fixture_count_entries(scratch) == 0 ? 0 : 2;
}

static void expect_well(int (*body)(const char *))
{
    char scratch[128];
    int status = 0;
    make_dir(scratch, sizeof(scratch), "other");
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        enter_namespaces();
        _exit(body(scratch));
    }
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    if (WEXITSTATUS(status) == SKIPPED)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void where_memory_is_not_executed_a_file_is(void **state)
{
    (void)state;
    expect_well(start_and_use_one);
}

static int start_where_nothing_is_executed(const char *scratch)
{
    struct fail fail = {0};
    if (mount("tmpfs", scratch, "tmpfs", MS_NOEXEC, NULL) < 0)
        return 2;
    spawner = spawner_start(scratch, &fail);
    if (spawner || fail.code != -EACCES)
        return 1;
    fprintf(stderr, "%s\n", fail.text);
    return strcmp(fail.text, "cannot execute the spawner: Permission denied") != 0;
}

static void where_no_file_is_either_that_is_said(void **state)
{
    (void)state;
    expect_well(start_where_nothing_is_executed);
}

static void run_by_hand_it_ends(void **state)
{
    struct fail fail = {0};
    char *arguments[] = {directory, NULL};
    int status;
    (void)state;
    AUTO_CLOSE int program = program_open(spawner_program(), "sluice-spawner", directory, &fail);
    assert_true(program >= 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        close_range(3, (unsigned)program - 1, 0);
        close_range((unsigned)program + 1, ~0U, 0);
        syscall(SYS_execveat, program, "", arguments, environ, AT_EMPTY_PATH);
        _exit(3);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
}

static int group(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_workers_environment_is_not_its, set_up_with_masked_paths, tear_down),
        cmocka_unit_test_setup_teardown(the_workers_files_are_not_its, set_up_with_masked_paths, tear_down),
        cmocka_unit_test_setup_teardown(containers_that_cannot_be_leave_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_has_all_rights_in_its_namespaces_and_leaves_none_to_programs, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(it_has_no_right_that_its_worker_has_not, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_ends_with_its_worker, set_up, tear_down),
        cmocka_unit_test_setup_teardown(where_memory_is_not_executed_a_file_is, set_up, tear_down),
        cmocka_unit_test_setup_teardown(where_no_file_is_either_that_is_said, set_up, tear_down),
        cmocka_unit_test_setup_teardown(run_by_hand_it_ends, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
