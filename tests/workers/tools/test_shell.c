/* The shell: its life, its limits, what it tells while a command runs, terminals. */
#include "tests/workers/tools/shell_world.h"

#include "common/base/buffer.h"
#include "common/base/clock.h"

/* ---- one thing at a time --------------------------------------------------------------- */

FIBER_TEST(a_timeout_kills_the_whole_tree_and_keeps_the_state)
{
    struct sandbox *sandbox = open_host();
    struct shell *shell = open_shell(sandbox);
    expect(shell, "cd /tmp; X=kept", 0, "");
    struct sandbox_output output = run(
        shell, "(trap '' TERM INT HUP; setsid sleep 1000 & setsid sleep 1000) & sleep 1000", 300, 1000);
    assert_true(output.timed_out);
    assert_true(output.seconds < 5);
    free(output.text);
    output = run(shell, "grep -ls sleep /proc/[0-9]*/comm; echo $PWD $X", COMMAND_MS, 1000);
    assert_null(strstr(output.text, "/comm")); /* bash may say that its jobs were killed */
    assert_non_null(strstr(output.text, "/tmp kept\n"));
    free(output.text);
    shell_close(&shell);
    sandbox_close(&sandbox);
}

FIBER_TEST(a_shell_that_makes_new_processes_for_ever_is_replaced)
{
    struct sandbox *sandbox = open_host();
    struct shell *shell = open_shell(sandbox);
    struct sandbox_output output = run(shell, "cd /tmp; while :; do /bin/true; done", 300, 1000);
    assert_true(output.timed_out);
    assert_int_equal(output.status, 256 + SIGKILL);
    assert_non_null(strstr(output.text, "[the shell did not come back; a new one runs in /workspace]"));
    free(output.text);
    expect(shell, "echo ok", 0, "ok\n");
    shell_close(&shell);
    sandbox_close(&sandbox);
}

FIBER_TEST(output_is_kept_within_its_bound)
{
    struct sandbox *sandbox = open_host();
    struct shell *shell = open_shell(sandbox);
    struct sandbox_output output = run(shell, "seq 1 1000000", COMMAND_MS, 20);
    assert_int_equal(output.total, 6888896);
    assert_string_equal(output.text, "1\n2\n3\n4\n5\n\n[6888876 bytes left out]\n9\n1000000\n");
    free(output.text);
    output = run(shell, "echo 123456789", COMMAND_MS, 10);
    assert_string_equal(output.text, "123456789\n");
    free(output.text);
    output = run(shell, "echo 123456789", COMMAND_MS, 0);
    assert_string_equal(output.text, "\n[10 bytes left out]\n");
    free(output.text);
    shell_close(&shell);
    sandbox_close(&sandbox);
}

FIBER_TEST(endless_output_ends_at_the_size_of_its_own_disk)
{
    struct sandbox *sandbox = open_host();
    struct shell *shell = open_shell(sandbox);
    struct sandbox_output output = run(shell, "yes 2>/dev/null; rm -f /tmp/x; echo $?", COMMAND_MS, 100);
    assert_false(output.timed_out);
    assert_int_equal(output.total, 64 << 20);
    free(output.text);
    expect(shell, "echo ok", 0, "ok\n");
    shell_close(&shell);
    sandbox_close(&sandbox);
}

FIBER_TEST(a_full_disk_does_not_silence_the_shell)
{
    struct sandbox *sandbox = open_host();
    struct shell *shell = open_shell(sandbox);
    struct sandbox_output output = run(shell, "cat /dev/zero > /workspace/full; cat /dev/zero > /dev/shm/full",
                                       COMMAND_MS, 1000);
    assert_int_equal(output.status, 1);
    assert_non_null(strstr(output.text, "No space left on device"));
    free(output.text);
    expect(shell, "echo ok", 0, "ok\n");
    shell_close(&shell);
    sandbox_close(&sandbox);
}

FIBER_TEST(two_shells_of_one_sandbox_do_not_mix)
{
    struct sandbox *sandbox = open_host();
    struct shell *a = open_shell(sandbox), *b = open_shell(sandbox);
    expect(a, "cd /tmp; X=a", 0, "");
    expect(b, "echo $PWD-$X", 0, "/workspace-\n");
    expect(a, "echo $PWD-$X", 0, "/tmp-a\n");
    shell_close(&a);
    expect(b, "echo ok", 0, "ok\n");
    shell_close(&b);
    sandbox_close(&sandbox);
}

FIBER_TEST(after_a_deadline_the_next_command_finds_a_new_shell)
{
    struct sandbox *sandbox = open_host();
    struct shell *shell = open_shell(sandbox);
    struct sandbox_output output;
    struct fail fail = {0};
    expect(shell, "cd /tmp", 0, "");
    fiber_push_deadline(clock_ms() + 100);
    assert_int_equal(shell_run(shell, "sleep 1000", 30000, 100, &output, &fail), -ETIMEDOUT);
    fiber_pop_deadline();
    expect(shell, "pwd; grep -ls sleep /proc/[0-9]*/comm; true", 0, "/tmp\n");
    shell_close(&shell);
    sandbox_close(&sandbox);
}

FIBER_TEST(the_end_of_the_sandbox_is_the_end_of_the_shell_with_words)
{
    struct sandbox_plan plan = host_plan();
    struct sandbox_output output;
    struct fail fail = {0};
    plan.memory_mib = 100;
    struct sandbox *sandbox = open_sandbox(&plan);
    struct shell *shell = open_shell(sandbox);
    assert_int_equal(shell_run(shell, "head -c 400M /dev/zero | tail", COMMAND_MS, 100, &output, &fail), -EIO);
    assert_string_equal(fail.text, "the sandbox used more than its 100 MiB of memory and was killed");
    assert_string_equal(sandbox_breach(sandbox), "memory");
    assert_int_equal(shell_run(shell, "true", COMMAND_MS, 100, &output, &fail), -EIO);
    shell_close(&shell);
    sandbox_close(&sandbox);
}

FIBER_TEST(an_image_without_bash_is_refused_with_words)
{
    char image[128];
    struct shell *shell = NULL;
    struct fail fail = {0};
    make_dir(image, sizeof(image), "image");
    struct sandbox_plan plan = host_plan();
    plan.image = image;
    struct sandbox *sandbox = open_sandbox(&plan);
    assert_int_equal(shell_open(sandbox, &shell, &fail), -ENOEXEC);
    assert_string_equal(fail.text, "cannot execute /bin/bash: No such file or directory");
    assert_null(shell);
    sandbox_close(&sandbox);
}

/* ---- terminals --------------------------------------------------------------------------- */

static struct sandbox_output run_on_terminal(struct shell *shell, const char *text, int64_t timeout_ms)
{
    struct shell_command command = {.text = text, .timeout_ms = timeout_ms, .output_max = 4096, .tty = true};
    struct sandbox_output output;
    struct fail fail = {0};
    if (shell_run_as(shell, &command, &output, &fail) < 0)
        fail_msg("%s: %s", text, fail.text);
    return output;
}

static void expect_on_terminal(struct shell *shell, const char *command, const char *text)
{
    struct sandbox_output output = run_on_terminal(shell, command, COMMAND_MS);
    if (strcmp(output.text, text) != 0)
        fail_msg("%s: %s", command, output.text);
    free(output.text);
}

FIBER_TEST(a_terminal_is_one_as_programs_ask_for_it)
{
    struct sandbox *sandbox = open_host();
    struct shell *shell = open_shell(sandbox);
    expect_on_terminal(shell, "test -t 0 && test -t 1 && test -t 2 && stty size && echo $TERM", "50 200\ndumb\n");
    expect_on_terminal(shell, "stty -a | grep -o -e '-echo ' -e '-opost'", "-opost\n-echo \n");
    expect_on_terminal(shell, "echo to it > /dev/tty; ps -o tty= -p $$ | grep -c pts", "to it\n1\n");
    expect_on_terminal(shell, "cat; read x; echo \"<$x>\"", "<>\n");
    shell_close(&shell);
    sandbox_close(&sandbox);
}

FIBER_TEST(a_terminal_is_gone_with_its_command_and_the_state_stays)
{
    struct sandbox *sandbox = open_host();
    struct shell *shell = open_shell(sandbox);
    expect(shell, "cd /tmp; x=1; trap 'echo hup' HUP", 0, "");
    expect_on_terminal(shell, "x=$((x+1)); sleep 300 & echo $PWD $x", "/tmp 2\n");
    expect(shell,
           "echo $PWD $x $(jobs -r | wc -l); (: < /dev/tty) 2>/dev/null || echo no terminal; ls "
           "/dev/pts",
           0, "/tmp 2 1\nno terminal\nptmx\n");
    expect(shell, "kill -HUP $$; trap - HUP", 0, "hup\n");
    expect_on_terminal(shell, "x=$((x+1))", "");
    expect(shell, "echo $x; trap -p", 0, "3\n");
    shell_close(&shell);
    sandbox_close(&sandbox);
}

FIBER_TEST(a_command_on_a_terminal_has_the_same_bounds)
{
    struct sandbox *sandbox = open_host();
    struct shell *shell = open_shell(sandbox);
    struct sandbox_output output = run_on_terminal(shell, "seq 1 300000", COMMAND_MS);
    assert_int_equal(output.total, 1988895);
    assert_memory_equal(output.text, "1\n2\n", 4);
    assert_non_null(strstr(output.text, "bytes left out]"));
    assert_string_equal(output.text + output.len - 7, "300000\n");
    free(output.text);
    output = run_on_terminal(shell, "echo begun; sleep 1000", 300);
    assert_true(output.timed_out);
    assert_memory_equal(output.text, "begun\n", 6);
    free(output.text);
    output = run_on_terminal(shell, "while :; do :; done", 300);
    assert_int_equal(output.status, 256 + SIGKILL);
    free(output.text);
    expect(shell, "echo ok", 0, "ok\n");
    shell_close(&shell);
    sandbox_close(&sandbox);
}

/* ---- while it runs ------------------------------------------------------------------------ */

struct heard {
    struct buffer bytes;
    size_t pieces;
    struct shell *shell;
};

static void hear(void *arg, struct slice bytes)
{
    struct heard *heard = arg;
    buffer_append(&heard->bytes, bytes.data, bytes.len);
    heard->pieces++;
}

FIBER_TEST(what_a_command_writes_is_told_while_it_runs)
{
    struct sandbox *sandbox = open_host();
    struct shell *shell = open_shell(sandbox);
    for (int tty = 0; tty <= 1; tty++) {
        struct heard heard = {0};
        struct shell_command command = {.text = "echo one; sleep 0.5; echo two; sleep 0.5",
                                        .timeout_ms = COMMAND_MS,
                                        .output_max = 4096,
                                        .tty = tty,
                                        .on_output = hear,
                                        .on_output_arg = &heard};
        struct sandbox_output output;
        assert_int_equal(shell_run_as(shell, &command, &output, NULL), 0);
        assert_int_equal(heard.pieces, 2);
        assert_true(slice_is(buffer_peek(&heard.bytes), "one\ntwo\n"));
        assert_string_equal(output.text, "one\ntwo\n");
        free(output.text);
        buffer_finish(&heard.bytes);
    }
    shell_close(&shell);
    sandbox_close(&sandbox);
}

FIBER_TEST(of_much_at_a_time_the_end_is_told)
{
    struct sandbox *sandbox = open_host();
    struct shell *shell = open_shell(sandbox);
    struct heard heard = {0};
    struct shell_command command = {.text = "head -c 10M /dev/zero | tr '\\0' x; echo end; sleep 0.5",
                                    .timeout_ms = COMMAND_MS,
                                    .output_max = 100,
                                    .on_output = hear,
                                    .on_output_arg = &heard};
    struct sandbox_output output;
    assert_int_equal(shell_run_as(shell, &command, &output, NULL), 0);
    assert_true(heard.bytes.len < 2 << 20);
    assert_memory_equal(heard.bytes.data + heard.bytes.len - 5, "xend\n", 5);
    free(output.text);
    buffer_finish(&heard.bytes);
    shell_close(&shell);
    sandbox_close(&sandbox);
}

FIBER_TEST(a_restart_kills_everything_and_forgets)
{
    struct sandbox *sandbox = open_host();
    struct shell *shell = open_shell(sandbox);
    struct fail fail = {0};
    expect(shell, "cd /tmp; x=1; (trap '' TERM; setsid sleep 1000) & sleep 0.1", 0, "");
    assert_int_equal(shell_restart(shell, &fail), 0);
    expect(shell, "pwd; echo \"<$x>\"; grep -ls sleep /proc/[0-9]*/comm; true", 0, "/workspace\n<>\n");
    shell_close(&shell);
    sandbox_close(&sandbox);
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_timeout_kills_the_whole_tree_and_keeps_the_state),
        TEST(a_shell_that_makes_new_processes_for_ever_is_replaced),
        TEST(output_is_kept_within_its_bound),
        TEST(endless_output_ends_at_the_size_of_its_own_disk),
        TEST(a_full_disk_does_not_silence_the_shell),
        TEST(two_shells_of_one_sandbox_do_not_mix),
        TEST(after_a_deadline_the_next_command_finds_a_new_shell),
        TEST(the_end_of_the_sandbox_is_the_end_of_the_shell_with_words),
        TEST(an_image_without_bash_is_refused_with_words),
        TEST(a_terminal_is_one_as_programs_ask_for_it),
        TEST(a_terminal_is_gone_with_its_command_and_the_state_stays),
        TEST(a_command_on_a_terminal_has_the_same_bounds),
        TEST(what_a_command_writes_is_told_while_it_runs),
        TEST(of_much_at_a_time_the_end_is_told),
        TEST(a_restart_kills_everything_and_forgets),
    };
    return cmocka_run_group_tests_name("shell", tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
