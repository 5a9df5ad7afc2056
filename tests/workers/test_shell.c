/* The bash tool: what a model may type at it, and that the next command still works. */
#include "tests/workers/sandbox_fixture.h"

#include <signal.h>

#include "common/clock.h"
#include "workers/tools/shell.h"

static struct shell *open_shell(struct sandbox *sandbox)
{
    struct shell *shell = NULL;
    struct fail fail = {0};
    if (shell_open(sandbox, &shell, &fail) < 0)
        fail_msg("shell_open: %s", fail.text);
    return shell;
}

static struct sandbox_output run(struct shell *shell, const char *command, int64_t timeout_ms,
                                 size_t output_max)
{
    struct sandbox_output output;
    struct fail fail = {0};
    if (shell_run(shell, command, timeout_ms, output_max, &output, &fail) < 0)
        fail_msg("%s: %s", command, fail.text);
    assert_int_equal(strlen(output.text) <= output.len, 1);
    return output;
}

static void expect(struct shell *shell, const char *command, int status, const char *text)
{
    struct sandbox_output output = run(shell, command, COMMAND_MS, 1 << 20);
    if (output.status != status || strcmp(output.text, text) != 0)
        fail_msg("%s: %d, not %d: %s", command, output.status, status, output.text);
    free(output.text);
}

/* ---- every trap we know, each followed by a plain command ----------------------------- */

enum match { EXACT, CONTAINS, REPEATED };

static const struct trap {
    const char *name, *command;
    int64_t timeout_ms;
    int status;
    bool timed_out;
    enum match match;
    const char *text; /* REPEATED: `text` length times 'y' */
    size_t len;
} traps[] = {
    {"no trailing newline", "printf abc", 5000, 0, false, EXACT, "abc", 3},
    {"binary", "printf '\\000\\001\\377\\015\\012\\004\\003\\032x'", 5000, 0, false, EXACT,
     "\000\001\377\015\012\004\003\032x", 9},
    {"64 KiB exactly", "head -c 65536 /dev/zero | tr '\\0' y", 5000, 0, false, REPEATED, "y", 65536},
    {"reads stdin", "cat", 5000, 0, false, EXACT, "", 0},
    {"reads a line", "read x; echo got:$x", 5000, 0, false, EXACT, "got:\n", 5},
    {"background job", "sleep 300 & echo started", 5000, 0, false, EXACT, "started\n", 8},
    {"late output", "(sleep 0.15; echo LATE) & echo now", 5000, 0, false, EXACT, "now\n", 4},
    {"after late output", "sleep 0.3; echo next", 5000, 0, false, EXACT, "next\n", 5},
    {"timeout", "sleep 100", 300, 137, true, CONTAINS, "Killed", 0},
    {"ignores signals", "bash -c \"trap '' TERM INT HUP; sleep 100\"", 300, 137, true, CONTAINS, "Killed", 0},
    {"setsid and wait", "setsid sleep 100 & wait", 300, 0, true, CONTAINS, "", 0},
    {"busy builtin loop", "while :; do :; done", 300, 256 + SIGKILL, true, EXACT,
     "[the shell did not come back; a new one runs in /workspace]\n", 60},
    {"unbalanced quote", "echo \"abc", 5000, 2, false, CONTAINS, "unexpected EOF", 0},
    {"syntax error", "echo a; )", 5000, 2, false, CONTAINS, "syntax error", 0},
    {"set -v", "set -v; echo v", 5000, 0, false, EXACT, "v\n", 2},
    {"set +v", "set +v", 5000, 0, false, CONTAINS, "", 0},
    {"set -x", "set -x; echo x", 5000, 0, false, EXACT, "++ echo x\nx\n", 12},
    {"set +x", "set +x", 5000, 0, false, CONTAINS, "", 0},
    {"exec >/dev/null", "exec >/dev/null 2>&1", 5000, 0, false, EXACT, "", 0},
    {"echo after exec", "echo visible", 5000, 0, false, EXACT, "visible\n", 8},
    {"line of 5000 bytes", NULL, 5000, 0, false, REPEATED, "y", 5001},
    {"260 KB heredoc", NULL, 5000, 0, false, EXACT, "260000\n", 7},
    {"stty echo", "stty echo 2>/dev/null; echo z", 5000, 0, false, EXACT, "z\n", 2},
    {"after stty echo", "echo w", 5000, 0, false, EXACT, "w\n", 2},
    {"an interpreter at its prompt", "if test -x /usr/bin/python3; then python3 -q; else sh; fi",
     10000, 0, false, EXACT, "", 0},
    {"cd and variables", "cd /usr; X=5; f() { echo fn; }; export Y=6", 5000, 0, false, EXACT, "", 0},
    {"state is kept", "echo $PWD $X $Y $(f)", 5000, 0, false, EXACT, "/usr 5 6 fn\n", 12},
    {"set -e; false", "set -e; false", 5000, 1, false, EXACT,
     "[the shell ended; a new one runs in /usr]\n", 42},
    {"exit 3", "exit 3", 5000, 3, false, EXACT, "[the shell ended; a new one runs in /usr]\n", 42},
    /* and some more */
    {"break", "break", 5000, 0, false, CONTAINS, "", 0},
    {"break 2", "break 2", 5000, 0, false, CONTAINS, "", 0},
    {"continue", "continue", 5000, 0, false, CONTAINS, "", 0},
    {"return 4", "return 4", 5000, 4, false, EXACT, "", 0},
    {"kill -9 $$", "kill -9 $$", 5000, 256 + SIGKILL, false, CONTAINS, "[the shell ended", 0},
    {"exec another program", "exec true", 5000, 0, false, CONTAINS, "[the shell ended", 0},
    {"positional parameters", "set -- a b; shift", 5000, 0, false, EXACT, "", 0},
    {"IFS, PATH", "IFS=x; PATH=", 5000, 0, false, EXACT, "", 0},
    {"functions of our names", "read() { :; }; printf() { :; }; cd() { :; }", 5000, 0, false, EXACT, "", 0},
    {"a new shell without them", "exit 0", 5000, 0, false, CONTAINS, "[the shell ended", 0},
    {"removes its outputs", "rm -rf /run/sluice/out/*; echo gone", 5000, 0, false, EXACT,
     "[the output was lost]\n", 22},
    {"a FIFO for an output", "cd /run/sluice/out; for f in *; do rm $f; mkfifo $f; done; cd /", 5000, 0,
     false, EXACT, "[the output was lost]\n", 22},
    {"a link for an output", "for f in /run/sluice/out/*; do rm $f; ln -s /etc/passwd $f; done", 5000,
     0, false, EXACT, "[the output was lost]\n", 22},
    {"a descriptor of ours", "echo 'x 0 /' >&200", 5000, 1, false, CONTAINS, "Bad file descriptor", 0},
};

static char *make_command(const struct trap *trap)
{
    if (trap->command)
        return strdup(trap->command);
    char *command = calloc(1, 300000);
    if (trap->match == REPEATED) { /* echo yyyy... */
        strcpy(command, "echo ");
        memset(command + 5, 'y', 5000);
        return command;
    }
    strcpy(command, "cat > /tmp/big.txt <<'XX'\n");
    size_t len = strlen(command);
    for (int line = 0; line < 4000; line++, len += 65)
        memcpy(command + len, "line of text in a long heredoc 0123456789 0123456789 0123456789 \n", 65);
    strcpy(command + len, "XX\nwc -c < /tmp/big.txt");
    return command;
}

static bool is_matched(const struct trap *trap, const struct sandbox_output *output)
{
    if (trap->match == EXACT)
        return output->len == trap->len && memcmp(output->text, trap->text, trap->len) == 0;
    if (trap->match == CONTAINS)
        return strstr(output->text, trap->text) != NULL;
    size_t same = strspn(output->text, trap->text);
    return output->len == trap->len && (same == trap->len || (same == trap->len - 1 && output->text[same] == '\n'));
}

FIBER_TEST(every_trap_gives_what_it_should_and_the_next_command_works)
{
    struct sandbox *sandbox = open_host();
    struct shell *shell = open_shell(sandbox);
    unsigned wrong = 0;
    for (size_t i = 0; i < sizeof(traps) / sizeof(*traps); i++) {
        const struct trap *trap = &traps[i];
        char *command = make_command(trap);
        struct sandbox_output output = run(shell, command, trap->timeout_ms, 1 << 20);
        if (output.status != trap->status || output.timed_out != trap->timed_out ||
            !is_matched(trap, &output)) {
            wrong++;
            print_error("%s: status %d, %s, %zu bytes: %s\n", trap->name, output.status,
                        output.timed_out ? "timed out" : "in time", output.len, output.text);
        }
        free(output.text);
        free(command);
        output = run(shell, "echo ok", 5000, 1000);
        if (output.status != 0 || !strstr(output.text, "ok\n")) {
            wrong++;
            print_error("after %s: %d: %s\n", trap->name, output.status, output.text);
        }
        free(output.text);
    }
    assert_int_equal(wrong, 0);
    shell_close(&shell);
    sandbox_close(&sandbox);
}

/* ---- one thing at a time --------------------------------------------------------------- */

FIBER_TEST(a_timeout_kills_the_whole_tree_and_keeps_the_state)
{
    struct sandbox *sandbox = open_host();
    struct shell *shell = open_shell(sandbox);
    expect(shell, "cd /tmp; X=kept", 0, "");
    struct sandbox_output output =
        run(shell, "(trap '' TERM INT HUP; setsid sleep 1000 & setsid sleep 1000) & sleep 1000", 300, 1000);
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
    struct sandbox_output output =
        run(shell, "cat /dev/zero > /workspace/full; cat /dev/zero > /dev/shm/full", COMMAND_MS, 1000);
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
    assert_int_equal(shell_open(sandbox, &shell, &fail), -EINVAL);
    assert_string_equal(fail.text, "there is no /bin/bash in the image");
    assert_null(shell);
    sandbox_close(&sandbox);
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(every_trap_gives_what_it_should_and_the_next_command_works),
        TEST(a_timeout_kills_the_whole_tree_and_keeps_the_state),
        TEST(a_shell_that_makes_new_processes_for_ever_is_replaced),
        TEST(output_is_kept_within_its_bound),
        TEST(endless_output_ends_at_the_size_of_its_own_disk),
        TEST(a_full_disk_does_not_silence_the_shell),
        TEST(two_shells_of_one_sandbox_do_not_mix),
        TEST(after_a_deadline_the_next_command_finds_a_new_shell),
        TEST(the_end_of_the_sandbox_is_the_end_of_the_shell_with_words),
        TEST(an_image_without_bash_is_refused_with_words),
    };
    return cmocka_run_group_tests_name("shell", tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
