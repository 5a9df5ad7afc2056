/* Memory, processes and files taken without end: what stops them, and that others go on. */
#include "tests/workers/attacks/attack_world.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/statfs.h>

#include "common/base/clock.h"
#include "workers/sandbox/command.h"
#include "workers/sandbox/requests.h"

enum { MEMORY_MIB = 128, BREACH_MS = 20000 };

static struct sandbox_plan small_plan(void)
{
    struct sandbox_plan plan = host_plan();
    plan.memory_mib = MEMORY_MIB;
    plan.disk_mib = 64;
    plan.processes = 40;
    return plan;
}

static struct sandbox_usage usage_of(const struct sandbox *sandbox)
{
    struct sandbox_usage usage;
    sandbox_get_usage(sandbox, &usage);
    return usage;
}

/* The attack is killed for its memory before it has many times its limit. */
static void expect_memory_breach(const char *kind)
{
    struct sandbox_plan plan = small_plan();
    struct sandbox_output output;
    struct fail fail = {0};
    char command[128];
    struct sandbox *neighbour = open_neighbour(), *sandbox = open_attacked(&plan);
    snprintf(command, sizeof(command), "%s memory %s", attack_path, kind);
    int code = sandbox_command(sandbox, command, BREACH_MS, 1000, &output, &fail);
    if (code == 0)
        fail_msg("memory %s: the sandbox lives: %s", kind, output.text);
    assert_int_equal(code, -EIO);
    assert_string_equal(sandbox_breach(sandbox), "memory");
    assert_string_equal(fail.text, "the sandbox used more than its 128 MiB of memory and was killed");
    assert_int_equal(usage_of(sandbox).breaches[LIMIT_MEMORY], 1);
    sandbox_close(&sandbox);
    expect_unharmed(&neighbour);
}

FIBER_TEST(memory_of_malloc_is_killed) { expect_memory_breach("malloc"); }
FIBER_TEST(memory_of_many_processes_is_killed) { expect_memory_breach("forks"); }
FIBER_TEST(memory_shared_by_mmap_is_killed) { expect_memory_breach("shared"); }
FIBER_TEST(memory_of_segments_that_no_page_table_shows_is_killed) { expect_memory_breach("segments"); }
FIBER_TEST(memory_of_detached_segments_is_killed) { expect_memory_breach("detached"); }

FIBER_TEST(data_in_socket_pairs_is_killed) { expect_memory_breach("sockets"); }
FIBER_TEST(data_in_sockets_of_the_loopback_is_killed) { expect_memory_breach("datagrams"); }

/* The tools' own tmpfs: 64 MiB, which are the sandbox's memory. */
FIBER_TEST(what_lies_among_the_outputs_counts_as_memory)
{
    struct sandbox_plan plan = small_plan();
    struct sandbox_output output;
    struct fail fail = {0};
    plan.memory_mib = 48;
    struct sandbox *neighbour = open_neighbour(), *sandbox = open_attacked(&plan);
    int code = sandbox_command(sandbox, "head -c 60M /dev/zero > /run/sluice/out/x; sleep 60", BREACH_MS, 1000, &output,
                               &fail);
    if (code == 0)
        fail_msg("the sandbox lives: %s", output.text);
    assert_string_equal(sandbox_breach(sandbox), "memory");
    sandbox_close(&sandbox);
    expect_unharmed(&neighbour);
}

/* Files of a tmpfs are the disk's: written through a mapping, its end is SIGBUS at 64 MiB. */
FIBER_TEST(memory_of_a_tmpfs_is_the_disks)
{
    static const char *const paths[] = {"/dev/shm/f", "/tmp/f", "/workspace/f"};
    struct sandbox_plan plan = small_plan();
    struct sandbox *neighbour = open_neighbour();
    for (size_t i = 0; i < 3; i++) {
        struct sandbox_output output;
        struct fail fail = {0};
        char command[128];
        struct sandbox *sandbox = open_attacked(&plan);
        snprintf(command, sizeof(command), "exec %s memory %s", attack_path, paths[i]);
        assert_int_equal(sandbox_command(sandbox, command, BREACH_MS, 1000, &output, &fail), 0);
        assert_int_equal(output.status, 256 + SIGBUS);
        free(output.text);
        assert_int_equal(usage_of(sandbox).breaches[LIMIT_DISK], 1);
        assert_in_range(usage_of(sandbox).peak_disk_bytes, 60 << 20, 64 << 20);
        expect_status(sandbox, "rm -f /dev/shm/f /tmp/f /workspace/f", 0);
        expect_works(sandbox);
        sandbox_close(&sandbox);
    }
    expect_unharmed(&neighbour);
}

/* ---- processes ----------------------------------------------------------------------------- */

/* Starts it; what it says comes through the descriptor. */
static int start_attack(struct sandbox *sandbox, const char *kind, pid_t *ret_pid)
{
    const char *argv[] = {attack_path, "processes", kind, NULL};
    struct fail fail = {0};
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    struct sandbox_exec exec = {.argv = argv, .fds = &ends[1], .targets = (int[]){1}, .fd_count = 1};
    assert_int_equal(sandbox_start(sandbox, &exec, ret_pid, &fail), 0);
    close(ends[1]);
    return ends[0];
}

static void await_breach(const struct sandbox *sandbox, bool of_death)
{
    int64_t until_ms = clock_ms() + BREACH_MS;
    while (of_death ? !sandbox_breach(sandbox) : usage_of(sandbox).breaches[LIMIT_PROCESSES] == 0) {
        assert_true(clock_ms() < until_ms);
        await_sleep(20);
    }
}

/* "forks 39 EAGAIN" */
static void expect_count(int output, long least, long most)
{
    char line[128] = "", name[32], error[32];
    long count;
    assert_int_equal(poll(&(struct pollfd){output, POLLIN, 0}, 1, BREACH_MS), 1);
    assert_true(read(output, line, sizeof(line) - 1) > 0);
    assert_int_equal(sscanf(line, "%31s %ld %31s", name, &count, error), 3);
    assert_in_range(count, least, most);
    assert_string_equal(error, "EAGAIN");
}

/* For an ordinary user the kernel says no; for root the watch kills. */
static void expect_processes_end(const char *kind, long least, long most)
{
    struct sandbox_plan plan = small_plan();
    struct fail fail = {0};
    pid_t pid;
    struct sandbox *neighbour = open_neighbour(), *sandbox = open_attacked(&plan);
    AUTO_CLOSE int output = start_attack(sandbox, kind, &pid);
    await_breach(sandbox, geteuid() == 0);
    assert_int_equal(usage_of(sandbox).breaches[LIMIT_PROCESSES], 1);
    if (geteuid() == 0) {
        assert_string_equal(sandbox_breach(sandbox), "processes");
        assert_int_equal(sandbox_wait(sandbox, pid, &fail), -EIO);
        assert_string_equal(fail.text, "the sandbox had more than its 40 processes and was killed");
    } else {
        if (least > 0)
            expect_count(output, least, most);
        assert_int_equal(sandbox_kill_all(sandbox, 0, &fail), 0);
        assert_in_range(usage_of(sandbox).peak_processes, 40, 41);
        expect_works(sandbox);
    }
    sandbox_close(&sandbox);
    expect_unharmed(&neighbour);
}

FIBER_TEST(forks_end_at_the_limit) { expect_processes_end("forks", 38, 40); }
FIBER_TEST(threads_end_at_the_limit) { expect_processes_end("threads", 38, 40); }
FIBER_TEST(a_fork_bomb_burns_down_within_its_sandbox) { expect_processes_end("bomb", 0, 0); }

/* Those beyond what is seen at one look would use what they like and outlive their command. */
FIBER_TEST(the_most_processes_of_any_task_are_all_seen_and_more_are_killed)
{
    struct sandbox_plan plan = host_plan();
    struct fail fail = {0};
    pid_t pid;
    plan.processes = LIMIT_PROCESSES_MAX;
    plan.memory_mib = 1 << 20;
    struct sandbox *neighbour = open_neighbour(), *sandbox = open_attacked(&plan);
    AUTO_CLOSE int output = start_attack(sandbox, "forks", &pid);
    await_breach(sandbox, geteuid() == 0);
    assert_in_range(usage_of(sandbox).peak_processes, LIMIT_PROCESSES_MAX, LIMIT_PROCESSES_MAX + 64);
    if (geteuid() == 0) {
        assert_string_equal(sandbox_breach(sandbox), "processes");
    } else {
        expect_count(output, LIMIT_PROCESSES_MAX - 2, LIMIT_PROCESSES_MAX);
        assert_int_equal(sandbox_kill_all(sandbox, pid, &fail), 0);
        expect_text(sandbox, "grep -l attack /proc/[0-9]*/comm | wc -l", "1\n");
        expect_works(sandbox);
    }
    sandbox_close(&sandbox);
    expect_unharmed(&neighbour);
}

FIBER_TEST(daemons_that_hide_end_with_their_command_and_with_their_sandbox)
{
    struct sandbox_plan plan = small_plan();
    struct fail fail = {0};
    pid_t pid;
    struct sandbox *neighbour = open_neighbour(), *sandbox = open_attacked(&plan);
    const char *argv[] = {attack_path, "processes", "daemons", NULL};
    assert_int_equal(sandbox_start(sandbox, &(struct sandbox_exec){.argv = argv}, &pid, &fail), 0);
    assert_int_equal(sandbox_wait(sandbox, pid, &fail), 0);
    pid_t shell;
    const char *count[] = {"/bin/bash", "-c", "[ $(grep -l attack /proc/[0-9]*/comm | wc -l) = 20 ]", NULL};
    assert_int_equal(sandbox_start(sandbox, &(struct sandbox_exec){.argv = count}, &shell, &fail), 0);
    assert_int_equal(sandbox_wait(sandbox, shell, &fail), 0);
    assert_int_equal(sandbox_kill_all(sandbox, 0, &fail), 0);
    expect_text(sandbox, "grep -l attack /proc/[0-9]*/comm | wc -l", "0\n");
    sandbox_close(&sandbox);
    expect_unharmed(&neighbour);
}

/* ---- files --------------------------------------------------------------------------------- */

FIBER_TEST(files_end_at_the_disks_inodes_and_names_at_any_depth)
{
    struct sandbox_plan plan = small_plan();
    plan.inodes = 3000;
    struct sandbox *neighbour = open_neighbour(), *sandbox = open_attacked(&plan);
    char *text, error[32];
    long count;
    expect_status(sandbox, "mkdir many", 0);
    run_text(sandbox, "cd many && /tmp/attack files many", &text);
    assert_int_equal(sscanf(text, "many %ld %31s", &count, error), 2);
    free(text);
    assert_in_range(count, 2950, 3064);
    assert_string_equal(error, "ENOSPC");
    assert_int_equal(usage_of(sandbox).breaches[LIMIT_INODES], 1);
    expect_status(sandbox, "rm -r many", 0);
    run_text(sandbox, "/tmp/attack files deep", &text);
    assert_int_equal(sscanf(text, "deep %ld %31s", &count, error), 2);
    assert_string_equal(error, "ENOSPC");
    assert_in_range(count, 2900, 3064);
    free(text);
    expect_status(sandbox, "rm -r nnn*", 0);
    expect_works(sandbox);
    sandbox_close(&sandbox);
    expect_unharmed(&neighbour);
}

FIBER_TEST(a_file_of_holes_has_a_size_at_most)
{
    struct sandbox_plan plan = small_plan();
    plan.file_mib = 100;
    struct sandbox *sandbox = open_attacked(&plan);
    expect_text(sandbox, "trap '' XFSZ; /tmp/attack files holes", "holes -1 EFBIG\n");
    sandbox_close(&sandbox);
}

/* ---- the worker's own ---------------------------------------------------------------------- */

static size_t count_descriptors(void)
{
    size_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

FIBER_TEST(files_that_cannot_be_opened_cost_the_worker_no_descriptor)
{
    struct sandbox *sandbox = open_host();
    struct fail fail = {0};
    int held[512];
    size_t count = 0, before = count_descriptors();
    expect_status(sandbox, "mkfifo fifo; mkdir dir; echo x > file", 0);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(sandbox_open_file(sandbox, "fifo", O_RDONLY, 0, &fail), -EINVAL);
        assert_int_equal(sandbox_open_file(sandbox, "none", O_RDONLY, 0, &fail), -ENOENT);
        assert_int_equal(sandbox_open_file(sandbox, "dir", O_WRONLY, 0, &fail), -EISDIR);
    }
    assert_int_equal(count_descriptors(), before);
    struct rlimit now, few = {(rlim_t)before + 60, 0};
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
    few.rlim_max = now.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    while (count < 512 && (held[count] = sandbox_open_file(sandbox, "file", O_RDONLY, 0, &fail)) >= 0)
        count++;
    assert_in_range(count, 55, 64);
    assert_int_equal(held[count], -EMFILE);
    while (count > 0)
        close(held[--count]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
    expect_works(sandbox);
    sandbox_close(&sandbox);
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(memory_of_malloc_is_killed),
        TEST(memory_of_many_processes_is_killed),
        TEST(memory_shared_by_mmap_is_killed),
        TEST(memory_of_segments_that_no_page_table_shows_is_killed),
        TEST(memory_of_detached_segments_is_killed),
        TEST(data_in_socket_pairs_is_killed),
        TEST(data_in_sockets_of_the_loopback_is_killed),
        TEST(what_lies_among_the_outputs_counts_as_memory),
        TEST(memory_of_a_tmpfs_is_the_disks),
        TEST(forks_end_at_the_limit),
        TEST(threads_end_at_the_limit),
        TEST(a_fork_bomb_burns_down_within_its_sandbox),
        TEST(the_most_processes_of_any_task_are_all_seen_and_more_are_killed),
        TEST(daemons_that_hide_end_with_their_command_and_with_their_sandbox),
        TEST(files_end_at_the_disks_inodes_and_names_at_any_depth),
        TEST(a_file_of_holes_has_a_size_at_most),
        TEST(files_that_cannot_be_opened_cost_the_worker_no_descriptor),
    };
    return cmocka_run_group_tests_name("attacks on resources", tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
