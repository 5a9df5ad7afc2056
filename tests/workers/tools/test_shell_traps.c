/* What a model may type at the shell by mistake or in earnest, and that the next command works. */
#include "tests/workers/tools/shell_world.h"

#include "common/base/clock.h"

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
    const char *on_terminal; /* a part of it; NULL: the same */
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
    {"an interpreter at its prompt", "if test -x /usr/bin/python3; then python3 -q; else sh; fi", 10000, 0, false,
     EXACT, "", 0, ""},
    {"cd and variables", "cd /usr; X=5; f() { echo fn; }; export Y=6", 5000, 0, false, EXACT, "", 0},
    {"state is kept", "echo $PWD $X $Y $(f)", 5000, 0, false, EXACT, "/usr 5 6 fn\n", 12},
    {"set -e; false", "set -e; false", 5000, 1, false, EXACT, "[the shell ended; a new one runs in /usr]\n", 42},
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
    {"removes its outputs", "rm -rf /run/sluice/out/*; echo gone", 5000, 0, false, EXACT, "gone\n", 5},
    {"a FIFO for an output", "cd /run/sluice/out; for f in *; do rm $f; mkfifo $f; done; cd /; echo there", 5000, 0,
     false, EXACT, "there\n", 6, "there\n"},
    {"a link for an output", "for f in /run/sluice/out/*; do rm $f; ln -s /etc/passwd $f; done; echo there", 5000, 0,
     false, EXACT, "there\n", 6, ""},
    {"a descriptor of ours", "echo 'x 0 /' >&200", 5000, 1, false, CONTAINS, "Bad file descriptor", 0},
    /* what reached the driver */
    {"PWD is a variable", "cd /usr; PWD=x", 5000, 0, false, EXACT, "", 0},
    {"its directory is known all the same", "exit 0", 5000, 0, false, EXACT,
     "[the shell ended; a new one runs in /usr]\n", 42},
    {"no PWD", "unset PWD OLDPWD", 5000, 0, false, EXACT, "", 0},
    {"a directory that is gone", "mkdir /tmp/gone; cd /tmp/gone; rmdir /tmp/gone", 5000, 0, false, EXACT, "", 0},
    {"a very deep directory", "cd /tmp; for i in {1..40}; do mkdir $(printf 'd%0200d' 1); cd d*; done; cd", 5000, 0,
     false, EXACT, "", 0},
    {"and in it", "cd /tmp; for i in {1..40}; do cd d*; done", 5000, 0, false, EXACT, "", 0},
    {"out of it", "cd /usr; echo out", 5000, 0, false, EXACT, "out\n", 4},
    {"umask 777", "umask 777; echo seen", 5000, 0, false, EXACT, "seen\n", 5},
    {"after umask 777", "umask; umask 022", 5000, 0, false, EXACT, "0777\n", 5},
    {"a locked directory of outputs", "chmod 0 /run/sluice/out; echo seen", 5000, 0, false, EXACT, "seen\n", 5},
    {"a full one", "head -c 100M /dev/zero > /run/sluice/out/x", 5000, 1, false, CONTAINS, "", 0},
    {"one full of names", "for i in {1..1100}; do : > /run/sluice/out/$i || break; done 2>/dev/null", 5000, 0, false,
     CONTAINS, "", 0},
    {"aliases",
     "shopt -s expand_aliases; for a in builtin printf read cd eval trap while case exit; do alias "
     "$a='echo aliased'; done",
     5000, 0, false, EXACT, "", 0},
    {"no aliases", "\\unalias -a", 5000, 0, false, EXACT, "", 0},
    {"no variables", "unset $(compgen -v | grep -v BASH) 2>/dev/null; echo none", 5000, 0, false, EXACT, "none\n", 5},
    {"names of ours", "for v in ${!__sluice_*}; do printf -v $v /forged; done; echo forged", 5000, 0, false, EXACT,
     "forged\n", 7},
    {"a new one for those", "exit 0", 5000, 0, false, CONTAINS, "[the shell ended", 0},
    {"names of ours, fixed", "readonly ${!__sluice_*}; echo fixed", 5000, 1, false, CONTAINS,
     "[the shell ended; a new one runs in ", 0},
    {"names of ours in upper case", "declare -u __sluice_n; echo upper", 5000, 256 + SIGKILL, false, CONTAINS,
     "[the shell", 0},
    {"no IFS to set", "readonly IFS=x; echo kept", 5000, 0, false, EXACT, "kept\n", 5},
    {"and none needed", "echo still", 5000, 0, false, EXACT, "still\n", 6},
    {"one that splits our words", "exit 0", 5000, 0, false, CONTAINS, "[the shell ended", 0},
    {"restricted", "set -r; echo restricted", 5000, 0, false, CONTAINS,
     "restricted\n[the shell ended; a new one runs in ", 0},
    {"a function builtin", "builtin() { :; }; echo mine", 5000, 127, false, CONTAINS, "mine\n[the shell ended", 0},
    {"few descriptors", "ulimit -n 5; echo few", 5000, 0, false, CONTAINS, "few\n[the shell ended", 0},
    {"hardly more of them", "ulimit -n 13; echo few", 5000, 0, false, CONTAINS, "few\n", 0},
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

static bool is_matched(const struct trap *trap, const struct sandbox_output *output, bool tty)
{
    if (tty && trap->on_terminal)
        return strstr(output->text, trap->on_terminal) != NULL;
    if (trap->match == EXACT)
        return output->len == trap->len && memcmp(output->text, trap->text, trap->len) == 0;
    if (trap->match == CONTAINS)
        return strstr(output->text, trap->text) != NULL;
    size_t same = strspn(output->text, trap->text);
    return output->len == trap->len && (same == trap->len || (same == trap->len - 1 && output->text[same] == '\n'));
}

static unsigned spring(struct shell *shell, const struct trap *trap, bool tty)
{
    unsigned wrong = 0;
    char *text = make_command(trap);
    struct shell_command command = {.text = text, .timeout_ms = trap->timeout_ms, .output_max = 1 << 20, .tty = tty};
    struct sandbox_output output;
    struct fail fail = {0};
    if (shell_run_as(shell, &command, &output, &fail) < 0)
        fail_msg("%s: %s", trap->name, fail.text);
    if (output.status != trap->status || output.timed_out != trap->timed_out || !is_matched(trap, &output, tty)) {
        wrong++;
        print_error("%s: status %d, %s, %zu bytes: %s\n", trap->name, output.status,
                    output.timed_out ? "timed out" : "in time", output.len, output.text);
    }
    free(output.text);
    free(text);
    output = run(shell, "echo ok", 5000, 1000);
    if (output.status != 0 || !strstr(output.text, "ok\n")) {
        wrong++;
        print_error("after %s: %d: %s\n", trap->name, output.status, output.text);
    }
    free(output.text);
    return wrong;
}

static void spring_all(bool tty)
{
    struct sandbox *sandbox = open_host();
    struct shell *shell = open_shell(sandbox);
    unsigned wrong = 0;
    for (size_t i = 0; i < sizeof(traps) / sizeof(*traps); i++)
        wrong += spring(shell, &traps[i], tty);
    assert_int_equal(wrong, 0);
    shell_close(&shell);
    sandbox_close(&sandbox);
}

FIBER_TEST(every_trap_gives_what_it_should_and_the_next_command_works) { spring_all(false); }

FIBER_TEST(every_trap_does_so_on_a_terminal_too) { spring_all(true); }

FIBER_TEST(a_job_that_fills_the_outputs_is_told_of_and_ends_with_a_restart)
{
    struct sandbox *sandbox = open_host();
    struct shell *shell = open_shell(sandbox);
    struct fail fail = {0};
    struct sandbox_output output;
    bool is_told = false;
    expect(shell, "while :; do head -c 1M /dev/zero; done 2>/dev/null & :", 0, "");
    for (int64_t until_ms = clock_ms() + 60000; !is_told && clock_ms() < until_ms;) {
        output = run(shell, "head -c 5000 /dev/zero", COMMAND_MS, 100);
        is_told = strstr(output.text, "[/run/sluice/out is full") != NULL;
        free(output.text);
    }
    assert_true(is_told);
    assert_int_equal(shell_restart(shell, &fail), 0);
    expect(shell, "echo room", 0, "room\n");
    shell_close(&shell);
    sandbox_close(&sandbox);
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(every_trap_gives_what_it_should_and_the_next_command_works),
        TEST(every_trap_does_so_on_a_terminal_too),
        TEST(a_job_that_fills_the_outputs_is_told_of_and_ends_with_a_restart),
    };
    return cmocka_run_group_tests_name("shell_traps", tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
