/* The limits of a sandbox and of what a command may write: reached, named, survived. */
#include "tests/workers/sandbox_fixture.h"

#include <signal.h>

#include "workers/sandbox/output.h"

static void expect_gone(struct sandbox *sandbox, const char *command, const char *breach,
                        const char *words)
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
    expect_gone(sandbox,
                "for i in 1 2 3 4 5; do (head -c 40M /dev/zero; sleep 100) | tail & done; wait",
                "memory", "the sandbox used more than its 100 MiB of memory and was killed");
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
             "for d in /workspace /tmp /var/tmp /dev/shm; do cat /dev/zero > $d/f; ls -l $d/f; rm $d/f; done",
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

/* For an ordinary user: the limit holds for those inside, and pid 1 keeps some room above it. */
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
                          "open(F, q(>), q(/tmp/full)); sleep 1000", NULL};
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
    assert_int_equal(sandbox_command(sandbox, "setsid sleep 1000 & echo done; exit 5", COMMAND_MS, 1000,
                                     &output, &fail),
                     0);
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
                    snprintf(expected, sizeof(expected), "%.*s\n[%zu bytes left out]\n%.*s", (int)head,
                             source, len - max, (int)tail, source + len - tail);
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
        cmocka_unit_test(output_keeps_the_beginning_and_the_end),
    };
    return cmocka_run_group_tests_name("sandbox limits", tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
