/*
 * Limits that the kernel holds. All of it wants a cgroup v2 that is delegated to who runs it or that root may make
 * (cgroup_fixture.h), and is skipped where there is none:
 *
 *     systemd-run --user --scope -p Delegate=yes build/debug/tests/workers_test_cgroup
 *     bash tests/vm/run.sh build/debug/tests/workers_test_cgroup
 */
#define FIXTURE_LIMIT_MS 300000 /* in a machine that is emulated */
#define FIXTURE_COMMAND_MS 120000
#include "tests/workers/sandbox/cgroup/cgroup_fixture.h"
#include "tests/workers/sandbox/sandbox_fixture.h"

#include <dirent.h>
#include <sys/socket.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "workers/sandbox/cgroup/cgroup_base.h"
#include "workers/sandbox/cgroup/cgroup_files.h"
#include "workers/sandbox/command.h"
#include "workers/sandbox/proto/usage.h"
#include "workers/sandbox/embedded/program.h"
#include "workers/sandbox/requests.h"
#include "workers/sandbox/spawner_start.h"

enum { WAIT_MS = 120000, MANY = 60, AT_ONCE = 6 };

/* ---- a kernel that is too old ------------------------------------------------------- */

static bool is_old_kernel;

PROGRAM_BYTES(usual_spawner, SLUICE_SPAWNER)
PROGRAM_BYTES(old_spawner, OWN_SPAWNER)

struct slice spawner_program(void) { return is_old_kernel ? old_spawner() : usual_spawner(); }

/* ---- what is seen of groups --------------------------------------------------------- */

/* The groups of sandboxes, and the last of their names: those that wait for a plan have no limit. */
static size_t list_containers(char *ret, size_t size)
{
    size_t count = 0;
    int again = openat(cgroups.ours, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fdopendir(again);
    const struct dirent *entry;
    assert_non_null(stream);
    while ((entry = readdir(stream))) {
        char path[512], most[32];
        snprintf(path, sizeof(path), "%s/memory.max", entry->d_name);
        if (strncmp(entry->d_name, "sandbox-", 8) != 0 || !cgroup_read(cgroups.ours, path, most, sizeof(most)) ||
            strcmp(most, "max\n") == 0)
            continue;
        snprintf(ret, size, "%s", entry->d_name);
        count++;
    }
    closedir(stream);
    return count;
}

static size_t count_containers(void)
{
    char name[256];
    return list_containers(name, sizeof(name));
}

/* Of the only sandbox there is. */
static void read_of_container(const char *file, char *ret, size_t size)
{
    char name[256], path[512];
    assert_int_equal(list_containers(name, sizeof(name)), 1);
    snprintf(path, sizeof(path), "%s/%s", name, file);
    cgroup_read(cgroups.ours, path, ret, size);
    ret[strcspn(ret, "\n")] = '\0';
}

static void expect_of_container(const char *file, const char *expected)
{
    char text[256];
    read_of_container(file, text, sizeof(text));
    assert_string_equal(text, expected);
}

static void wait_until_containers_are(size_t count)
{
    int64_t until_ms = clock_ms() + WAIT_MS;
    while (count_containers() != count) {
        assert_true(clock_ms() < until_ms);
        await_sleep(5);
    }
}

static struct sandbox_usage usage_of(const struct sandbox *sandbox)
{
    struct sandbox_usage usage;
    sandbox_get_usage(sandbox, &usage);
    return usage;
}

static void write_script(struct sandbox *sandbox, const char *python)
{
    struct fail fail = {0};
    assert_int_equal(sandbox_write_file(sandbox, "/workspace/s.py", python, strlen(python), 0644, &fail), 0);
}

/* ---- its files ---------------------------------------------------------------------- */

FIBER_TEST(each_sandbox_has_a_group_with_its_limits_and_takes_it_along)
{
    struct sandbox_plan plan = host_plan();
    char procs[64];
    struct sandbox *sandbox = open_sandbox(&plan);
    uint64_t mib = 512 + 16 + (tier_is_on_disk(fixture_tier) && !cgroup_is_memory("/tmp") ? 0 : 64);
    snprintf(procs, sizeof(procs), "%llu", (unsigned long long)mib << 20);
    expect_of_container("memory.max", procs);
    expect_of_container("pids.max", "73");
    expect_of_container("memory.oom.group", "1");
    read_of_container("memory.swap.max", procs, sizeof(procs));
    assert_true(strcmp(procs, "0") == 0 || strcmp(procs, "") == 0); /* a kernel without swap has no such file */
    read_of_container("cgroup.procs", procs, sizeof(procs));
    assert_true(atoi(procs) > 0);
    expect_text(sandbox, "cat /proc/self/cgroup | grep ^0:", "0::/\n"); /* nothing is told of where that is */
    sandbox_close(&sandbox);
    wait_until_containers_are(0);
}

FIBER_TEST(a_kernel_that_cannot_clone_into_a_group_has_it_moved)
{
    is_old_kernel = true; /* for another spawner: spawners/cgroup.c */
    char path[128];
    struct fail fail = {0};
    spawner_stop(&spawner);
    snprintf(path, sizeof(path), "%s/scratch", directory);
    char disks[128];
    snprintf(disks, sizeof(disks), "%s/disks", directory);
    spawner = spawner_start_bounded(path, fixture_tier, disks, &cgroups, &fail);
    is_old_kernel = false;
    assert_non_null(spawner);
    assert_true(spawner_attach(spawner, loop));
    struct sandbox *sandbox = open_host();
    char procs[64];
    read_of_container("cgroup.procs", procs, sizeof(procs));
    assert_true(atoi(procs) > 0);
    expect_text(sandbox, "cat /proc/self/cgroup | grep ^0:", "0::/\n");
    sandbox_close(&sandbox);
    wait_until_containers_are(0);
}

FIBER_TEST(many_sandboxes_leave_no_group)
{
    struct sandbox *open[AT_ONCE] = {NULL};
    for (int i = 0; i < MANY; i++) {
        sandbox_close(&open[i % AT_ONCE]);
        open[i % AT_ONCE] = open_host();
    }
    for (int i = 0; i < AT_ONCE; i++)
        sandbox_close(&open[i]);
    wait_until_containers_are(0);
}

/* ---- memory ------------------------------------------------------------------------- */

static void expect_memory_held(uint64_t memory_mib, const char *python)
{
    struct sandbox_plan plan = host_plan();
    struct sandbox_output output = {0};
    struct fail fail = {0};
    char words[128];
    plan.memory_mib = memory_mib;
    plan.disk_mib = 8;
    struct sandbox *neighbour = open_host(), *sandbox = open_sandbox(&plan);
    write_script(sandbox, python);
    int code = sandbox_command(sandbox, "exec /usr/bin/python3 -S s.py", WAIT_MS, 1000, &output, &fail);
    if (code == 0)
        fail_msg("the sandbox lives: status %d, %s", output.status, output.text);
    snprintf(words, sizeof(words), "the sandbox used more than its %llu MiB of memory and was killed",
             (unsigned long long)memory_mib);
    assert_string_equal(fail.text, words);
    assert_string_equal(sandbox_breach(sandbox), "memory");
    assert_int_equal(usage_of(sandbox).breaches[LIMIT_MEMORY], 1);
    assert_in_range(usage_of(sandbox).peak_memory_kib, (memory_mib - 8) << 10, (memory_mib + 32) << 10);
    sandbox_close(&sandbox);
    expect_text(neighbour, "echo fine", "fine\n");
    sandbox_close(&neighbour);
    wait_until_containers_are(0);
}

FIBER_TEST(memory_of_one_process_is_held) { expect_memory_held(96, "x = bytearray(400 << 20)\nwhile 1: pass"); }

FIBER_TEST(memory_of_many_processes_is_held)
{
    expect_memory_held(96, "import os, time\nfor i in range(20):\n  if os.fork() == 0:\n    x = bytearray(20 << 20)\n"
                           "    time.sleep(100)\ntime.sleep(100)");
}

/* In no process's account: */
FIBER_TEST(memory_of_unread_sockets_is_held)
{
    expect_memory_held(96, "import socket, time\nkept = []\nfor i in range(2000):\n  a, b = socket.socketpair()\n"
                           "  a.setblocking(False)\n  kept += [a, b]\n  try:\n    while 1: a.send(b'x' * 4096)\n"
                           "  except OSError: pass\ntime.sleep(100)");
}

/* The pipes of a user hold 64 MiB at most. */
FIBER_TEST(memory_of_unread_pipes_is_held)
{
    expect_memory_held(24, "import os, time\nfor i in range(2000):\n  r, w = os.pipe()\n  os.set_blocking(w, False)\n"
                           "  try:\n    while 1: os.write(w, b'x' * 4096)\n  except OSError: pass\ntime.sleep(100)");
}

FIBER_TEST(memory_of_a_shared_mapping_unmapped_in_part_is_held)
{
    expect_memory_held(96, "import ctypes, time\nc = ctypes.CDLL(None)\nc.mmap.restype = ctypes.c_void_p\n"
                           "c.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + "
                           "[ctypes.c_long]\n"
                           "c.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]\nn = 8 << 20\nfor i in range(50):\n"
                           "  at = c.mmap(None, n, 3, 0x21, -1, 0)\n  ctypes.memset(at, 1, n)\n"
                           "  c.munmap(at, n - 4096)\ntime.sleep(100)");
}

/* Where what is written lies in memory, it is the disk's: it takes nothing of the memory's limit. */
FIBER_TEST(what_is_written_is_no_memory)
{
    struct sandbox_plan plan = host_plan();
    plan.memory_mib = 16;
    plan.disk_mib = 32;
    struct sandbox *sandbox = open_sandbox(&plan);
    expect_status(sandbox, "head -c 25M /dev/zero > big && cat big > /dev/null", 0);
    assert_in_range(usage_of(sandbox).peak_memory_kib, 100, 16 << 10);
    assert_int_equal(usage_of(sandbox).breaches[LIMIT_MEMORY], 0);
    expect_text(sandbox, "echo fine", "fine\n");
    sandbox_close(&sandbox);
}

/* The walls of memory and disk are one, but the limits are two. */
FIBER_TEST(memory_does_not_take_what_the_disk_leaves)
{
    struct sandbox_plan plan = host_plan();
    struct sandbox_output output = {0};
    struct fail fail = {0};
    plan.memory_mib = 48;
    plan.disk_mib = 512;
    struct sandbox *sandbox = open_sandbox(&plan);
    write_script(sandbox, "x = bytearray(200 << 20)\nimport time\ntime.sleep(100)");
    assert_int_equal(sandbox_command(sandbox, "exec /usr/bin/python3 -S s.py", WAIT_MS, 1000, &output, &fail), -EIO);
    assert_string_equal(sandbox_breach(sandbox), "memory");
    assert_int_equal(usage_of(sandbox).breaches[LIMIT_MEMORY], 1);
    sandbox_close(&sandbox);
}

/* The kernel kills sandboxes first; that is then nobody's breach. */
FIBER_TEST(memory_that_others_took_is_not_its_limit)
{
    struct sandbox_plan plan = host_plan();
    struct sandbox_output output = {0};
    struct fail fail = {0};
    char now[32], most[32];
    plan.memory_mib = 2048;
    struct sandbox *sandbox = open_sandbox(&plan);
    assert_true(cgroup_read(cgroups.ours, "memory.current", now, sizeof(now)));
    snprintf(most, sizeof(most), "%llu", strtoull(now, NULL, 10) + (64ull << 20));
    assert_int_equal(cgroup_write(cgroups.ours, "memory.max", most), 0);
    write_script(sandbox, "x = bytearray(400 << 20)\nwhile 1: pass");
    assert_int_equal(sandbox_command(sandbox, "exec /usr/bin/python3 -S s.py", WAIT_MS, 1000, &output, &fail), -EIO);
    assert_int_equal(cgroup_write(cgroups.ours, "memory.max", "max"), 0);
    assert_null(sandbox_breach(sandbox));
    assert_string_equal(fail.text, "the kernel killed the sandbox, which was within its limit: no memory was left on "
                                   "the node or in the worker's own cgroup");
    assert_int_equal(usage_of(sandbox).breaches[LIMIT_MEMORY], 0);
    sandbox_close(&sandbox);
}

/* ---- processes ---------------------------------------------------------------------- */

FIBER_TEST(processes_are_refused_beyond_their_limit_and_nobody_is_killed)
{
    struct sandbox_plan plan = host_plan();
    struct fail fail = {0};
    char *text;
    plan.processes = 24;
    struct sandbox *sandbox = open_sandbox(&plan);
    write_script(sandbox, "import os, time\nn = 0\nwhile n < 500:\n  try:\n    if os.fork() == 0: time.sleep(100)\n"
                          "  except BlockingIOError: break\n  n += 1\nprint(n)");
    assert_int_equal(run_text(sandbox, "exec /usr/bin/python3 -S s.py", &text), 0);
    assert_in_range(atoi(text), 20, 24 + 8);
    free(text);
    assert_null(sandbox_breach(sandbox));
    assert_int_equal(usage_of(sandbox).breaches[LIMIT_PROCESSES], 1);
    assert_in_range(usage_of(sandbox).peak_processes, 24, 24 + 8);
    assert_int_equal(sandbox_kill_all(sandbox, 0, &fail), 0);
    expect_text(sandbox, "echo fine", "fine\n");
    sandbox_close(&sandbox);
}

/* Its processes come from outside, from the fork server of the image. */
FIBER_TEST(a_forked_kernel_is_in_the_group)
{
    struct sandbox_plan plan = host_plan();
    struct fail fail = {0};
    int ends[2];
    char count[32] = "", said[600] = "";
    if (fixture_tier != TIER_overlay_tmpfs)
        return;
    plan.kernels = true;
    struct sandbox *sandbox = open_sandbox(&plan);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    AUTO_CLOSE int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    expect_of_container("pids.current", "1");
    if (sandbox_fork_kernel(sandbox, (int[]){ends[1], null}, &fail) < 0)
        fail_msg("%s", fail.text);
    for (int64_t until_ms = clock_ms() + WAIT_MS; atoi(count) < 2;) {
        assert_true(clock_ms() < until_ms);
        await_sleep(5);
        read_of_container("pids.current", count, sizeof(count));
        if (recv(ends[0], said, sizeof(said) - 1, MSG_DONTWAIT | MSG_PEEK) > 4 && strstr(said + 4, "error"))
            fail_msg("%s", said + 4);
    }
    close(ends[0]);
    close(ends[1]);
    sandbox_close(&sandbox);
    wait_until_containers_are(0);
}

/* ---- all of them -------------------------------------------------------------------- */

static int run_group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(each_sandbox_has_a_group_with_its_limits_and_takes_it_along),
        TEST(a_kernel_that_cannot_clone_into_a_group_has_it_moved),
        TEST(many_sandboxes_leave_no_group),
        TEST(memory_of_one_process_is_held),
        TEST(memory_of_many_processes_is_held),
        TEST(memory_of_unread_sockets_is_held),
        TEST(memory_of_unread_pipes_is_held),
        TEST(memory_of_a_shared_mapping_unmapped_in_part_is_held),
        TEST(what_is_written_is_no_memory),
        TEST(memory_does_not_take_what_the_disk_leaves),
        TEST(memory_that_others_took_is_not_its_limit),
        TEST(processes_are_refused_beyond_their_limit_and_nobody_is_killed),
        TEST(a_forked_kernel_is_in_the_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL); /* "memory*" */
    int status = cgroup_fixture_enter();
    if (status != CGROUP_FIXTURE_GO)
        return status;
    int failed = run_group();
    fixture_tier = TIER_overlay_disk;
    return run_group() || failed;
}
