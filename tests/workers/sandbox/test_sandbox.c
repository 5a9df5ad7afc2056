/* The walls: what a sandbox sees, what it cannot reach, and that it ends. */
#include "tests/workers/sandbox/sandbox_fixture.h"

#include <signal.h>
#include <sys/prctl.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "workers/sandbox/command.h"
#include "workers/sandbox/requests.h"

static char *read_host(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t size = 0;
    assert_non_null(file);
    assert_true(getdelim(&text, &size, '\0', file) >= 0);
    fclose(file);
    return text;
}

FIBER_TEST(a_sandbox_has_a_home_a_name_and_a_user_of_its_own)
{
    struct sandbox *sandbox = open_host();
    expect_text(sandbox, "id -u; id -g; pwd; hostname; echo $HOME $LANG $TERM",
                "1000\n1000\n/workspace\nsandbox\n/workspace C.UTF-8 dumb\n");
    expect_text(sandbox, "echo a > /workspace/f; echo b > /tmp/f; cat /workspace/f /tmp/f", "a\nb\n");
    expect_text(sandbox, "stat -c %a /tmp /dev/shm /workspace", "1777\n1777\n755\n");
    expect_text(sandbox, "head -c 3 /dev/zero | wc -c; test -c /dev/null && ls /dev/pts/ptmx", "3\n/dev/pts/ptmx\n");
    expect_text(sandbox, "umask; ulimit -c; ulimit -n", "0022\n0\n4096\n");
    sandbox_close(&sandbox);
}

FIBER_TEST(nothing_of_the_host_is_seen_but_its_programs)
{
    char command[256];
    write_host_file(directory, "secret", "host", 0644);
    struct sandbox *sandbox = open_host();
    snprintf(command, sizeof(command), "cat %s/secret", directory);
    expect_status(sandbox, command, 1);
    expect_text(sandbox, "ls -A /home /root /tmp /mnt /srv /sys /var/lib",
                "/home:\n\n/mnt:\n\n/root:\n\n/srv:\n\n/sys:\n\n/tmp:\n\n/var/lib:\n");
    expect_status(sandbox, "cat /etc/shadow | grep -q .", 1);
    expect_status(sandbox, "touch /usr/x /etc/x /opt/x", 1);
    expect_status(sandbox, "test -e /proc/1/root/x || ls /proc/1/fd /proc/1/cwd/", 2);
    sandbox_close(&sandbox);
}

FIBER_TEST(a_process_inside_has_no_rights_and_gets_none)
{
    struct sandbox *sandbox = open_host();
    expect_text(sandbox, "grep -E '^(Cap|NoNew|Seccomp:)' /proc/self/status | cut -f2 | sort -u",
                "0000000000000000\n1\n2\n");
    expect_status(sandbox, "unshare -U true", 1);
    expect_status(sandbox, "mount -t tmpfs x /mnt", 32);
    expect_status(sandbox, "chroot / true", 125);
    expect_status(sandbox, "test -w /proc/sys/kernel/core_pattern", 1);
    expect_status(sandbox, "(echo x > /proc/sys/kernel/core_pattern) 2>/dev/null", 1);
    expect_status(sandbox, "(echo h > /proc/sysrq-trigger) 2>/dev/null", 1);
    expect_status(sandbox, "ulimit -n 5000", 1);
    expect_status(sandbox, "mknod /tmp/d c 1 1", 1);
    sandbox_close(&sandbox);
}

FIBER_TEST(pid_1_is_out_of_reach)
{
    struct sandbox *sandbox = open_host();
    expect_status(sandbox, "kill -9 1; kill -STOP 1; kill -CHLD 1; kill -TERM 1; true", 0);
    expect_status(sandbox, "cat /proc/1/environ", 1);
    expect_status(sandbox, "cat /proc/1/maps", 1);
    expect_status(sandbox, "head -c 1 /proc/1/mem", 1);
    assert_true(sandbox_is_alive(sandbox));
    sandbox_close(&sandbox);
}

FIBER_TEST(there_is_no_network_but_loopback)
{
    struct sandbox *sandbox = open_host();
    expect_text(sandbox, "ls /proc/sys/net/ipv4/conf", "all\ndefault\nlo\n");
    expect_status(sandbox, "(echo > /dev/tcp/1.1.1.1/80) 2>&1 | grep -q unreachable", 0);
    expect_status(sandbox, "(echo > /dev/tcp/127.0.0.1/9) 2>&1 | grep -q refused", 0);
    sandbox_close(&sandbox);
}

FIBER_TEST(two_sandboxes_do_not_see_each_other)
{
    struct sandbox *a = open_host(), *b = open_host();
    struct fail fail = {0};
    pid_t pid;
    const char *argv[] = {"/bin/sleep", "1000", NULL};
    assert_int_equal(sandbox_start(a, &(struct sandbox_exec){.argv = argv}, &pid, &fail), 0);
    expect_status(a, "echo a > /workspace/f; echo a > /dev/shm/f", 0);
    expect_text(b, "ls /workspace /dev/shm", "/dev/shm:\n\n/workspace:\n");
    expect_text(b, "grep -ls sleep /proc/[0-9]*/comm", "");
    sandbox_close(&a);
    expect_text(b, "echo still here", "still here\n");
    sandbox_close(&b);
}

static void read_pid_max(char ret[32])
{
    AUTO_FCLOSE FILE *file = fopen("/proc/sys/kernel/pid_max", "re");
    assert_non_null(file);
    assert_non_null(fgets(ret, 32, file));
}

/* Which root's sandboxes could, where the kernel has one for all pid namespaces. */
FIBER_TEST(no_setting_of_the_machine_is_changed)
{
    char before[32], after[32];
    read_pid_max(before);
    struct sandbox *sandbox = open_host();
    expect_status(sandbox, "true", 0);
    read_pid_max(after);
    assert_string_equal(before, after);
    sandbox_close(&sandbox);
}

FIBER_TEST(nothing_is_mounted_on_the_host)
{
    char *before = read_host("/proc/self/mountinfo");
    struct sandbox *sandbox = open_host();
    expect_status(sandbox, "true", 0);
    char *during = read_host("/proc/self/mountinfo");
    assert_string_equal(before, during);
    sandbox_close(&sandbox);
    free(before);
    free(during);
}

FIBER_TEST(a_plan_that_cannot_be_is_refused_with_words)
{
    const struct {
        struct sandbox_plan plan;
        const char *words;
    } cases[] = {
        {{.image = "/does/not/exist", .memory_mib = 1, .disk_mib = 1, .processes = 1},
         "lower directory /does/not/exist: No such file or directory"},
        {{.image = "/etc/passwd", .memory_mib = 1, .disk_mib = 1, .processes = 1},
         "lower directory /etc/passwd: Not a directory"},
        {{.image = "debian", .memory_mib = 1, .disk_mib = 1, .processes = 1},
         "the image is neither \"host\" nor an absolute path"},
        {{.image = "host", .disk_mib = 1, .processes = 1}, "memory_mib is 0, not 1 to 16777216"},
        {{.image = "host", .memory_mib = 1, .processes = 1}, "disk_mib is 0, not 1 to 16777216"},
        {{.image = "host", .memory_mib = 1, .disk_mib = 1}, "processes is 0, not 1 to 1048576"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct sandbox *sandbox = NULL;
        struct fail fail = {0};
        assert_int_equal(sandbox_open(spawner, &cases[i].plan, &sandbox, &fail), -EINVAL);
        assert_string_equal(fail.text, cases[i].words);
        assert_null(sandbox);
    }
}

FIBER_TEST(files_are_opened_as_inside_and_handed_out)
{
    struct sandbox *sandbox = open_host();
    struct fail fail = {0};
    char text[16] = "";
    assert_int_equal(sandbox_write_file(sandbox, "a/b/c.txt", "hello", 5, 0640, &fail), 0);
    expect_text(sandbox, "cat /workspace/a/b/c.txt; stat -c ' %a %u' a/b/c.txt", "hello 640 1000\n");
    expect_status(sandbox, "ln -s /workspace/a /tmp/link; ln -s /../../../etc/passwd /tmp/out", 0);
    int fd = sandbox_open_file(sandbox, "/tmp/link/b/../b/c.txt", O_RDONLY, 0, &fail);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, text, sizeof(text)), 5);
    assert_string_equal(text, "hello");
    close(fd);
    fd = sandbox_open_file(sandbox, "/tmp/out", O_RDONLY, 0, &fail);
    assert_true(fd >= 0); /* the one in the sandbox */
    close(fd);
    assert_int_equal(sandbox_open_file(sandbox, "/nothing", O_RDONLY, 0, &fail), -ENOENT);
    assert_string_equal(fail.text, "/nothing: No such file or directory");
    sandbox_close(&sandbox);
}

FIBER_TEST(what_is_not_a_file_is_not_handed_out_and_does_not_block)
{
    static const struct {
        const char *path;
        int code;
    } traps[] = {
        {"fifo", -EINVAL},         {"zero", -EINVAL}, {"comm", -EINVAL}, {"environ", -EINVAL},
        {"/proc/uptime", -EINVAL}, {"magic", -ELOOP}, {"tty", -ENXIO},   {"socket", -ENXIO},
    };
    struct sandbox *sandbox = open_host();
    expect_status(sandbox,
                  "mkfifo fifo; ln -s /dev/zero zero; ln -s /proc/1/comm comm;"
                  "ln -s /proc/self/environ environ; ln -s /proc/self/fd/3 magic;"
                  "ln -s /dev/tty tty; perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0);"
                  "bind(S, sockaddr_un(q(socket)))'",
                  0);
    for (size_t i = 0; i < sizeof(traps) / sizeof(*traps); i++) {
        struct fail fail = {0};
        int code = sandbox_open_file(sandbox, traps[i].path, O_RDONLY, 0, &fail);
        bool refused = code == -EACCES && traps[i].code == -EINVAL; /* by /proc, if not by us */
        if (code != traps[i].code && !refused)
            fail_msg("%s: %d %s", traps[i].path, code, fail.text);
    }
    sandbox_close(&sandbox);
}

FIBER_TEST(a_file_whose_owner_may_not_write_it_is_written_all_the_same)
{
    struct sandbox *sandbox = open_host();
    struct fail fail = {0};
    expect_status(sandbox, "mkdir d; echo old > d/f; chmod 0444 d/f; chmod 0555 d", 0);
    assert_int_equal(sandbox_write_file(sandbox, "d/f", "new", 3, 0644, &fail), 0);
    assert_int_equal(sandbox_write_file(sandbox, "d/g", "new", 3, 0644, &fail), 0);
    expect_text(sandbox, "cat d/f d/g", "newnew");
    sandbox_close(&sandbox);
}

FIBER_TEST(a_process_gets_exactly_the_descriptors_it_is_given)
{
    struct sandbox *sandbox = open_host();
    struct fail fail = {0};
    int ends[2];
    char text[128] = "";
    pid_t pid;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    const char *argv[] = {"/bin/ls", "/proc/self/fd", NULL};
    struct sandbox_exec exec = {
        .argv = argv, .fds = (int[]){ends[1], ends[1]}, .targets = (int[]){1, 7}, .fd_count = 2};
    assert_int_equal(sandbox_start(sandbox, &exec, &pid, &fail), 0);
    assert_int_equal(sandbox_wait(sandbox, pid, &fail), 0);
    assert_true(read(ends[0], text, sizeof(text) - 1) > 0);
    assert_string_equal(text, "0\n1\n2\n3\n7\n"); /* 3: what it lists */
    assert_int_equal(sandbox_wait(sandbox, pid, &fail), -ESRCH);
    close(ends[0]);
    close(ends[1]);
    sandbox_close(&sandbox);
}

FIBER_TEST(the_end_of_a_process_is_told_as_status_or_signal)
{
    struct sandbox *sandbox = open_host();
    struct fail fail = {0};
    pid_t pid;
    const char *none[] = {"/no/such/program", NULL};
    const char *killed[] = {"/bin/bash", "-c", "kill -9 $$", NULL};
    assert_int_equal(sandbox_start(sandbox, &(struct sandbox_exec){.argv = none}, &pid, &fail), -ENOEXEC);
    assert_string_equal(fail.text, "cannot execute /no/such/program: No such file or directory");
    assert_int_equal(sandbox_start(sandbox, &(struct sandbox_exec){.argv = killed}, &pid, &fail), 0);
    assert_int_equal(sandbox_wait(sandbox, pid, &fail), 256 + SIGKILL);
    expect_status(sandbox, "exit 7", 7);
    expect_status(sandbox, "kill -TERM $$", 256 + SIGTERM);
    sandbox_close(&sandbox);
}

FIBER_TEST(kill_all_finds_who_hides_and_spares_one)
{
    struct sandbox *sandbox = open_host();
    struct fail fail = {0};
    pid_t spared;
    const char *argv[] = {"/bin/bash", "-c",
                          "trap '' TERM INT HUP; (setsid sleep 1000 &); (trap '' TERM; sleep 1000) & "
                          "touch /tmp/ready; while :; do :; done",
                          NULL};
    assert_int_equal(sandbox_start(sandbox, &(struct sandbox_exec){.argv = argv}, &spared, &fail), 0);
    int fd;
    while ((fd = sandbox_open_file(sandbox, "/tmp/ready", O_RDONLY, 0, &fail)) == -ENOENT)
        assert_int_equal(await_sleep(1), 0);
    close(fd);
    assert_int_equal(sandbox_kill_all(sandbox, spared, &fail), 0);
    /* one that was listed may be gone when it is read */
    const char *list[] = {"/bin/sh", "-c", "cat /proc/[0-9]*/comm > /tmp/list 2>/dev/null; exit 0", NULL};
    pid_t pid;
    assert_int_equal(sandbox_start(sandbox, &(struct sandbox_exec){.argv = list}, &pid, &fail), 0);
    assert_int_equal(sandbox_wait(sandbox, pid, &fail), 0);
    expect_text(sandbox, "grep -c bash /tmp/list", "1\n"); /* which kills the spared one too */
    assert_int_equal(sandbox_wait(sandbox, spared, &fail), 256 + SIGKILL);
    sandbox_close(&sandbox);
}

/* ---- the spawner ---------------------------------------------------------------------- */

static pid_t find_spawner(void)
{
    char path[64], *text;
    snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
    text = read_host(path);
    pid_t pid = (pid_t)strtol(text, NULL, 10);
    free(text);
    assert_true(pid > 0);
    return pid;
}

static void the_spawner_lives_apart_in_namespaces_of_its_own(void **state)
{
    static const char *const kinds[] = {"user", "mnt", "pid"};
    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        char path[64], ours[64] = "", its[64] = "";
        snprintf(path, sizeof(path), "/proc/self/ns/%s", kinds[i]);
        assert_true(readlink(path, ours, sizeof(ours) - 1) > 0);
        snprintf(path, sizeof(path), "/proc/%d/ns/%s", find_spawner(), kinds[i]);
        assert_true(readlink(path, its, sizeof(its) - 1) > 0);
        assert_string_not_equal(ours, its);
    }
}

FIBER_TEST(sandboxes_end_with_the_spawner)
{
    struct sandbox *sandbox = open_host();
    struct fail fail = {0};
    pid_t pid;
    const char *argv[] = {"/bin/sleep", "1000", NULL};
    assert_int_equal(sandbox_start(sandbox, &(struct sandbox_exec){.argv = argv}, &pid, &fail), 0);
    assert_int_equal(kill(find_spawner(), SIGKILL), 0);
    assert_int_equal(sandbox_wait(sandbox, pid, &fail), -EIO);
    assert_string_equal(fail.text, "the sandbox ended unexpectedly");
    assert_false(sandbox_is_alive(sandbox));
    sandbox_close(&sandbox);
}

static struct sandbox *shared;

static void close_shared(void *arg)
{
    (void)arg;
    sandbox_close(&shared);
}

FIBER_TEST(closing_ends_the_calls_under_way)
{
    struct sandbox_output output;
    struct fail fail = {0};
    shared = open_host();
    assert_non_null(loop_after(loop, 50, close_shared, NULL));
    assert_int_equal(sandbox_command(shared, "sleep 1000", 30000, 100, &output, &fail), -ECANCELED);
    assert_string_equal(fail.text, "the sandbox was closed");
}

FIBER_TEST(a_deadline_ends_a_command_and_what_it_started)
{
    struct sandbox_output output;
    struct fail fail = {0};
    struct sandbox *sandbox = open_host();
    for (int late_ms = 0; late_ms < 200; late_ms += 100) { /* of 0: before it has told that it started */
        fiber_push_deadline(clock_ms() + late_ms);
        assert_int_equal(sandbox_command(sandbox, "sleep 1000", 30000, 100, &output, &fail), -ETIMEDOUT);
        fiber_pop_deadline();
        expect_text(sandbox, "grep -ls sleep /proc/[0-9]*/comm", "");
    }
    sandbox_close(&sandbox);
}

/* ---- the end of the worker ------------------------------------------------------------ */

static int ready_fd;

FIBER_TEST(live_until_killed)
{
    struct sandbox *sandbox = open_host();
    struct fail fail = {0};
    pid_t pid;
    expect_status(sandbox, "true", 0);
    const char *argv[] = {"/bin/bash", "-c", "(setsid sleep 1000 &); trap '' TERM; sleep 1000", NULL};
    assert_int_equal(sandbox_start(sandbox, &(struct sandbox_exec){.argv = argv}, &pid, &fail), 0);
    assert_int_equal(write(ready_fd, directory, sizeof(directory)), sizeof(directory));
    sandbox_wait(sandbox, pid, &fail);
}

/* All orphans come to us: waiting for them is the proof that none lives. */
static void a_killed_worker_leaves_no_process(void **state)
{
    int ends[2];
    (void)state;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        ready_fd = ends[1];
        void *none = NULL;
        if (set_up(&none) == 0)
            live_until_killed(&none);
        _exit(1);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], directory, sizeof(directory)), sizeof(directory)); /* it is ready */
    close(ends[0]);
    assert_int_equal(kill(pid, SIGKILL), 0);
    alarm(20);
    while (waitpid(-1, NULL, 0) > 0)
        ;
    alarm(0);
    assert_int_equal(errno, ECHILD);
    assert_int_equal(nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_sandbox_has_a_home_a_name_and_a_user_of_its_own),
        TEST(nothing_of_the_host_is_seen_but_its_programs),
        TEST(a_process_inside_has_no_rights_and_gets_none),
        TEST(pid_1_is_out_of_reach),
        TEST(there_is_no_network_but_loopback),
        TEST(two_sandboxes_do_not_see_each_other),
        TEST(no_setting_of_the_machine_is_changed),
        TEST(nothing_is_mounted_on_the_host),
        TEST(a_plan_that_cannot_be_is_refused_with_words),
        TEST(files_are_opened_as_inside_and_handed_out),
        TEST(what_is_not_a_file_is_not_handed_out_and_does_not_block),
        TEST(a_file_whose_owner_may_not_write_it_is_written_all_the_same),
        TEST(a_process_gets_exactly_the_descriptors_it_is_given),
        TEST(the_end_of_a_process_is_told_as_status_or_signal),
        TEST(kill_all_finds_who_hides_and_spares_one),
        TEST(the_spawner_lives_apart_in_namespaces_of_its_own),
        TEST(sandboxes_end_with_the_spawner),
        TEST(closing_ends_the_calls_under_way),
        TEST(a_deadline_ends_a_command_and_what_it_started),
        cmocka_unit_test(a_killed_worker_leaves_no_process),
    };
    return cmocka_run_group_tests_name("sandbox", tests, NULL, NULL);
}

int main(void) { return run_in_every_tier(group); }
