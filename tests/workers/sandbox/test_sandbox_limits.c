/* The limits of a sandbox and of what a command may write: reached, named, survived. */
#include "tests/workers/sandbox/sandbox_fixture.h"

#include <sched.h>
#include <signal.h>

#include "workers/sandbox/command.h"
#include "workers/sandbox/output.h"
#include "workers/sandbox/requests.h"

static void expect_gone(struct sandbox *sandbox, const char *command, const char *breach, const char *words)
{
    struct sandbox_output output;
    struct fail fail = {0};
    assert_int_equal(sandbox_command(sandbox, command, COMMAND_MS, 1000, &output, &fail), -EIO);
    assert_string_equal(fail.text, words);
    assert_string_equal(sandbox_breach(sandbox), breach);
    assert_false(sandbox_is_alive(sandbox));
    assert_int_equal(sandbox_open_file(sandbox, "/tmp", O_RDONLY, 0, &fail), -EIO);
    assert_string_equal(fail.text, words);
}

FIBER_TEST(memory_of_one_process_is_limited)
{
    struct sandbox_plan plan = host_plan();
    plan.memory_mib = 100;
    struct sandbox *sandbox = open_sandbox(&plan);
    assert_null(sandbox_breach(sandbox));
    expect_status(sandbox, "head -c 50M /dev/zero | tail | wc -c", 0);
    expect_gone(sandbox, "head -c 400M /dev/zero | tail", "memory",
                "the sandbox used more than its 100 MiB of memory and was killed");
    sandbox_close(&sandbox);
}

FIBER_TEST(memory_of_many_processes_is_summed)
{
    struct sandbox_plan plan = host_plan();
    plan.memory_mib = 100;
    struct sandbox *sandbox = open_sandbox(&plan);
    expect_gone(sandbox, "for i in 1 2 3 4 5; do (head -c 40M /dev/zero; sleep 100) | tail & done; wait", "memory",
                "the sandbox used more than its 100 MiB of memory and was killed");
    sandbox_close(&sandbox);
}

FIBER_TEST(memory_shared_by_forks_counts_once)
{
    struct sandbox_plan plan = host_plan();
    plan.memory_mib = 200;
    struct sandbox *sandbox = open_sandbox(&plan);
    expect_text(sandbox,
                "perl -e '$x = q(a) x 60_000_000; for (1..8) { if (!fork) { sleep 1; exit } }"
                " 1 while wait > 0; print qq(fine\\n)'",
                "fine\n");
    sandbox_close(&sandbox);
}

FIBER_TEST(memory_in_a_detached_segment_counts)
{
    struct sandbox_plan plan = host_plan();
    plan.memory_mib = 100;
    struct sandbox *sandbox = open_sandbox(&plan);
    expect_gone(sandbox,
                "perl -e 'use IPC::SysV; for (1..20) { $id = shmget(0, 20_000_000, 0600 | 01000);"
                " shmwrite($id, q(x) x 20_000_000, 0, 20_000_000) } sleep 100'",
                "memory", "the sandbox used more than its 100 MiB of memory and was killed");
    sandbox_close(&sandbox);
}

FIBER_TEST(the_disk_is_limited_in_bytes_wherever_it_is_written)
{
    struct sandbox_plan plan = host_plan();
    plan.disk_mib = 8;
    struct sandbox *sandbox = open_sandbox(&plan);
    char *text;
    run_text(sandbox,
             "for d in /workspace /tmp /var/tmp /dev/shm; do cat /dev/zero > $d/f; ls -l $d/f; rm "
             "$d/f; done",
             &text);
    int full = 0;
    for (const char *at = text; (at = strstr(at, "No space left on device")); at++)
        full++;
    assert_int_equal(full, 4);
    free(text);
    struct fail fail = {0};
    expect_status(sandbox, "cat /dev/zero > /tmp/f 2>/dev/null", 1);
    assert_int_equal(sandbox_write_file(sandbox, "f", "data", 4, 0644, &fail), -ENOSPC);
    assert_string_equal(fail.text, "f: No space left on device");
    sandbox_close(&sandbox);
}

FIBER_TEST(the_disk_is_limited_in_files)
{
    struct sandbox_plan plan = host_plan();
    plan.disk_mib = 8;
    struct sandbox *sandbox = open_sandbox(&plan);
    expect_status(sandbox,
                  "perl -e 'for (1..20000) { open(F, q(>), $_) or print(qq($!)), exit 3 }' "
                  "| grep -q 'No space left'",
                  0);
    sandbox_close(&sandbox);
}

FIBER_TEST(a_file_of_holes_may_be_larger_than_the_disk_but_not_beyond_reason)
{
    struct sandbox *sandbox = open_host();
    expect_status(sandbox, "truncate -s 1T f && ! truncate -s 1025G g", 0);
    expect_text(sandbox, "stat -c %s f g", "1099511627776\n0\n");
    sandbox_close(&sandbox);
}

/* For an ordinary user fork fails at the limit; for root the watch ends the sandbox. */
FIBER_TEST(a_fork_bomb_is_bounded)
{
    struct sandbox_plan plan = host_plan();
    struct sandbox_output output;
    struct fail fail = {0};
    plan.processes = 32;
    struct sandbox *sandbox = open_sandbox(&plan);
    const char *bomb = "perl -e '$n = 0; while ($n < 2000 and defined($p = fork)) { $n++; "
                       "if (!$p) { sleep 1000; exit } } print qq($n\n)'; sleep 1";
    int code = sandbox_command(sandbox, bomb, 5000, 1000, &output, &fail);
    if (geteuid() == 0) {
        assert_int_equal(code, -EIO);
        assert_string_equal(fail.text, "the sandbox had more than its 32 processes and was killed");
        assert_string_equal(sandbox_breach(sandbox), "processes");
    } else {
        assert_int_equal(code, 0);
        assert_true(atoi(output.text) >= 25 && atoi(output.text) <= 32);
        free(output.text);
        assert_int_equal(sandbox_command(sandbox, ":() { : | : & }; :; sleep 1", 2000, 1000, &output, &fail), 0);
        free(output.text);
        expect_text(sandbox, "echo ok", "ok\n");
    }
    sandbox_close(&sandbox);
    sandbox = open_host();
    expect_text(sandbox, "echo ok", "ok\n");
    sandbox_close(&sandbox);
}

/* For an ordinary user: the limit holds for those inside, and pid 1 keeps some container above it. */
FIBER_TEST(a_sandbox_full_of_processes_still_starts_one)
{
    struct sandbox_plan plan = host_plan();
    struct fail fail = {0};
    pid_t first, second;
    int fd;
    plan.processes = 32;
    struct sandbox *sandbox = open_sandbox(&plan);
    const char *argv[] = {"/usr/bin/perl", "-e",
                          "for (1..40) { defined($p = fork) or last; if (!$p) { sleep 1000; exit } }"
                          "open(F, q(>), q(/tmp/full)); sleep 1000",
                          NULL};
    const char *plain[] = {"/bin/true", NULL};
    assert_int_equal(sandbox_start(sandbox, &(struct sandbox_exec){.argv = argv}, &first, &fail), 0);
    while ((fd = sandbox_open_file(sandbox, "/tmp/full", O_RDONLY, 0, &fail)) == -ENOENT)
        assert_int_equal(await_sleep(1), 0);
    close(fd);
    assert_int_equal(sandbox_start(sandbox, &(struct sandbox_exec){.argv = plain}, &second, &fail), 0);
    assert_int_equal(sandbox_wait(sandbox, second, &fail), 0);
    sandbox_close(&sandbox);
}

FIBER_TEST(a_command_past_its_time_is_killed_with_its_whole_tree)
{
    struct sandbox *sandbox = open_host();
    struct sandbox_output output;
    struct fail fail = {0};
    assert_int_equal(sandbox_command(sandbox,
                                     "echo begun; trap '' TERM INT HUP; (setsid bash -c \"trap '' TERM;"
                                     " sleep 1000\" &); sleep 1000 & wait; sleep 1000",
                                     300, 1000, &output, &fail),
                     0);
    assert_true(output.timed_out);
    assert_int_equal(output.status, 256 + SIGKILL);
    assert_string_equal(output.text, "begun\n");
    assert_true(output.seconds < 5);
    free(output.text);
    expect_text(sandbox, "grep -ls sleep /proc/[0-9]*/comm", "");
    sandbox_close(&sandbox);
}

FIBER_TEST(a_background_child_that_keeps_the_pipe_does_not_hold_the_command)
{
    struct sandbox *sandbox = open_host();
    struct sandbox_output output;
    struct fail fail = {0};
    assert_int_equal(
        sandbox_command(sandbox, "setsid sleep 1000 & echo done; exit 5", COMMAND_MS, 1000, &output, &fail), 0);
    assert_false(output.timed_out);
    assert_int_equal(output.status, 5);
    assert_string_equal(output.text, "done\n");
    free(output.text);
    sandbox_close(&sandbox);
}

FIBER_TEST(long_commands_and_long_outputs_pass)
{
    struct sandbox *sandbox = open_host();
    struct sandbox_output output;
    struct fail fail = {0};
    char *command = calloc(1, 300010);
    strcpy(command, "echo ");
    memset(command + 5, 'x', 300000);
    assert_int_equal(sandbox_command(sandbox, command, COMMAND_MS, 1 << 20, &output, &fail), 0);
    assert_int_equal(output.len, 300001);
    free(output.text);
    free(command);
    assert_int_equal(sandbox_command(sandbox, "seq 1 5000000; exit 2", COMMAND_MS, 100, &output, &fail), 0);
    assert_int_equal(output.total, 38888896);
    assert_int_equal(output.status, 2);
    assert_non_null(strstr(output.text, "1\n2\n3\n"));
    assert_non_null(strstr(output.text, "\n[38888796 bytes left out]\n"));
    assert_non_null(strstr(output.text, "4999999\n5000000\n"));
    free(output.text);
    sandbox_close(&sandbox);
}

/* ---- what is told of it ----------------------------------------------------------------- */

static struct sandbox_usage usage_of(const struct sandbox *sandbox)
{
    struct sandbox_usage usage;
    sandbox_get_usage(sandbox, &usage);
    return usage;
}

/* Waits until the watch, or the end of a process, has counted it. */
static void await_breach(const struct sandbox *sandbox, enum limit_id limit, uint32_t count)
{
    while (usage_of(sandbox).breaches[limit] < count)
        assert_int_equal(await_sleep(5), 0);
    assert_int_equal(usage_of(sandbox).breaches[limit], count);
}

FIBER_TEST(a_full_disk_is_told_by_name_and_counted_each_time_it_fills)
{
    struct sandbox_plan plan = host_plan();
    plan.disk_mib = 8;
    struct sandbox *sandbox = open_sandbox(&plan);
    expect_status(sandbox, "head -c 1M /dev/zero > f", 0);
    assert_int_equal(usage_of(sandbox).breaches[LIMIT_DISK], 0);
    expect_status(sandbox, "cat /dev/zero > f 2>/dev/null", 1);
    await_breach(sandbox, LIMIT_DISK, 1);
    expect_status(sandbox, "true", 0);
    expect_status(sandbox, "rm f", 0);
    assert_int_equal(usage_of(sandbox).breaches[LIMIT_DISK], 1);
    expect_status(sandbox, "cat /dev/zero > /dev/shm/f 2>/dev/null", 1);
    await_breach(sandbox, LIMIT_DISK, 2);
    assert_in_range(usage_of(sandbox).peak_disk_bytes, 7 << 20, 8 << 20);
    assert_true(sandbox_is_alive(sandbox));
    sandbox_close(&sandbox);
}

FIBER_TEST(inodes_have_a_limit_of_their_own_and_a_name)
{
    struct sandbox_plan plan = host_plan();
    plan.inodes = 500;
    struct sandbox *sandbox = open_sandbox(&plan);
    expect_text(sandbox, "for i in {1..500}; do > f$i; done; ls | wc -l; rm f*", "500\n");
    assert_int_equal(usage_of(sandbox).breaches[LIMIT_INODES], 0);
    assert_in_range(usage_of(sandbox).peak_inodes, 0, 510);
    expect_status(sandbox,
                  "perl -e 'for (1..1000) { open(F, q(>), $_) or print(qq($!)), exit 3 }' | grep "
                  "-q 'No space left'",
                  0);
    await_breach(sandbox, LIMIT_INODES, 1);
    assert_in_range(usage_of(sandbox).peak_inodes, 500, 564);
    assert_int_equal(usage_of(sandbox).breaches[LIMIT_DISK], 0);
    sandbox_close(&sandbox);
}

FIBER_TEST(a_file_too_large_is_refused_and_told)
{
    struct sandbox_plan plan = host_plan();
    plan.file_mib = 4;
    struct sandbox *sandbox = open_sandbox(&plan);
    expect_status(sandbox, "head -c 4M /dev/zero > f", 0);
    assert_int_equal(usage_of(sandbox).breaches[LIMIT_FILE_SIZE], 0);
    expect_status(sandbox, "head -c 5M /dev/zero > f", 128 + SIGXFSZ);
    expect_status(sandbox, "exec truncate -s 5M g", 256 + SIGXFSZ);
    assert_int_equal(usage_of(sandbox).breaches[LIMIT_FILE_SIZE], 2);
    expect_text(sandbox, "trap '' XFSZ; truncate -s 5M g; stat -c %s f g",
                "truncate: failed to truncate 'g' at 5242880 bytes: File too large\n4194304\n0\n");
    sandbox_close(&sandbox);
}

FIBER_TEST(processes_at_their_limit_are_told_threads_included)
{
    struct sandbox_plan plan = host_plan();
    struct sandbox_output output;
    struct fail fail = {0};
    plan.processes = 24;
    struct sandbox *sandbox = open_sandbox(&plan);
    const char *threads = "exec python3 -c 'import threading, time\nn = 0\nwhile n < 500:\n"
                          "  try: threading.Thread(target=time.sleep, args=(100,), daemon=True).start()\n"
                          "  except RuntimeError: break\n"
                          "  n += 1\nprint(n, flush=True)\ntime.sleep(1)'";
    int code = sandbox_command(sandbox, threads, 20000, 1000, &output, &fail);
    assert_int_equal(usage_of(sandbox).breaches[LIMIT_PROCESSES], 1);
    assert_in_range(usage_of(sandbox).peak_processes, 24, 500);
    if (geteuid() == 0) {
        assert_int_equal(code, -EIO);
        assert_string_equal(sandbox_breach(sandbox), "processes");
    } else {
        assert_int_equal(code, 0);
        assert_in_range(atoi(output.text), 18, 23);
        free(output.text);
    }
    sandbox_close(&sandbox);
}

FIBER_TEST(what_a_sandbox_used_is_told)
{
    struct sandbox *sandbox = open_host();
    struct sandbox_output output;
    struct fail fail = {0};
    expect_status(sandbox, "python3 -c 'x = b\"a\" * 100_000_000; s = sum(range(3_000_000))'", 0);
    struct sandbox_usage usage = usage_of(sandbox);
    assert_in_range(usage.peak_memory_kib, 97000, 300000);
    assert_true(usage.cpu_seconds > 0.02 && usage.cpu_seconds < 60);
    assert_int_equal(usage.commands, 1);
    for (size_t i = 0; i < LIMIT_COUNT; i++)
        assert_int_equal(usage.breaches[i], 0);
    assert_int_equal(sandbox_command(sandbox, "seq 100; sleep 100", 200, 100, &output, &fail), 0);
    free(output.text);
    usage = usage_of(sandbox);
    assert_int_equal(usage.commands, 2);
    assert_int_equal(usage.timed_out, 1);
    assert_int_equal(usage.output_bytes, 292);
    assert_int_equal(usage.cut_bytes, 192);
    assert_int_equal(usage.breaches[LIMIT_COMMAND_TIME], 1);
    assert_int_equal(usage.breaches[LIMIT_OUTPUT], 1);
    sandbox_close(&sandbox);
}

FIBER_TEST(memory_that_killed_a_sandbox_is_told_with_what_it_was)
{
    struct sandbox_plan plan = host_plan();
    plan.memory_mib = 100;
    struct sandbox *sandbox = open_sandbox(&plan);
    expect_gone(sandbox, "head -c 400M /dev/zero | tail", "memory",
                "the sandbox used more than its 100 MiB of memory and was killed");
    assert_int_equal(usage_of(sandbox).breaches[LIMIT_MEMORY], 1);
    assert_in_range(usage_of(sandbox).peak_memory_kib, 100 << 10, 500 << 10);
    sandbox_close(&sandbox);
}

/* ---- CPUs --------------------------------------------------------------------------------- */

static int cpu_of(struct sandbox *sandbox)
{
    char *text;
    run_text(sandbox, "nproc; python3 -c 'import os; print(*os.sched_getaffinity(0))'", &text);
    assert_int_equal(text[0], '1');
    int cpu = atoi(text + 2);
    free(text);
    return cpu;
}

FIBER_TEST(sandboxes_with_one_cpu_each_are_spread_and_cannot_leave_it)
{
    cpu_set_t ours;
    struct sandbox_plan plan = host_plan();
    plan.cpus = 1;
    CPU_ZERO(&ours);
    assert_int_equal(sched_getaffinity(0, sizeof(ours), &ours), 0);
    if (CPU_COUNT(&ours) < 2)
        return;
    struct sandbox *first = open_sandbox(&plan), *second = open_sandbox(&plan);
    int cpu = cpu_of(first), other = cpu_of(second);
    assert_true(CPU_ISSET(cpu, &ours) && CPU_ISSET(other, &ours) && cpu != other);
    expect_text(first,
                "python3 -c 'import os\ntry: os.sched_setaffinity(0, range(64))\n"
                "except OSError as e: print(e.errno)'",
                "1\n");
    sandbox_close(&first);
    plan.cpus = 1000;
    first = open_sandbox(&plan);
    char all[32];
    snprintf(all, sizeof(all), "%d\n", CPU_COUNT(&ours));
    expect_text(first, "nproc", all);
    sandbox_close(&first);
    sandbox_close(&second);
}

/* Every length around every bound, in pieces of every size: head + line + tail. */
static void output_keeps_the_beginning_and_the_end(void **state)
{
    (void)state;
    for (size_t max = 0; max < 12; max++)
        for (size_t len = 0; len < 30; len++)
            for (size_t piece = 1; piece < 14; piece++) {
                char source[31] = "abcdefghijklmnopqrstuvwxyzABCD", expected[128];
                struct output output;
                size_t got, head = max - max / 2, tail = max / 2;
                output_init(&output, max);
                for (size_t at = 0; at < len; at += piece)
                    output_append(&output, source + at, len - at < piece ? len - at : piece);
                if (len <= max)
                    snprintf(expected, sizeof(expected), "%.*s", (int)len, source);
                else
                    snprintf(expected, sizeof(expected), "%.*s\n[%zu bytes left out]\n%.*s", (int)head, source,
                             len - max, (int)tail, source + len - tail);
                char *text = output_take(&output, &got);
                assert_string_equal(text, expected);
                assert_int_equal(got, strlen(expected));
                free(text);
            }
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(memory_of_one_process_is_limited),
        TEST(memory_of_many_processes_is_summed),
        TEST(memory_shared_by_forks_counts_once),
        TEST(memory_in_a_detached_segment_counts),
        TEST(the_disk_is_limited_in_bytes_wherever_it_is_written),
        TEST(the_disk_is_limited_in_files),
        TEST(a_file_of_holes_may_be_larger_than_the_disk_but_not_beyond_reason),
        TEST(a_fork_bomb_is_bounded),
        TEST(a_sandbox_full_of_processes_still_starts_one),
        TEST(a_command_past_its_time_is_killed_with_its_whole_tree),
        TEST(a_background_child_that_keeps_the_pipe_does_not_hold_the_command),
        TEST(long_commands_and_long_outputs_pass),
        TEST(a_full_disk_is_told_by_name_and_counted_each_time_it_fills),
        TEST(inodes_have_a_limit_of_their_own_and_a_name),
        TEST(a_file_too_large_is_refused_and_told),
        TEST(processes_at_their_limit_are_told_threads_included),
        TEST(what_a_sandbox_used_is_told),
        TEST(memory_that_killed_a_sandbox_is_told_with_what_it_was),
        TEST(sandboxes_with_one_cpu_each_are_spread_and_cannot_leave_it),
        cmocka_unit_test(output_keeps_the_beginning_and_the_end),
    };
    return cmocka_run_group_tests_name("sandbox limits", tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
