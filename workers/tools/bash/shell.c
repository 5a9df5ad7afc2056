#include "workers/tools/bash/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/loop/loop_now.h"
#include "workers/sandbox/requests.h"
#include "workers/tools/bash/shell_driver.h"
#include "workers/tools/bash/shell_inside.h"
#include "workers/tools/bash/shell_output.h"
#include "workers/tools/bash/shell_terminal.h"

enum {
    START_MS = 60000, /* a cold image on a slow file system */
    SHELL_PIECE_MAX = 16384,
    NOT_RUN = 126 /* as a bash says of what it cannot execute */
};

/* ---- life --------------------------------------------------------------------------- */

/* It and all it runs, but not what other tools have started, unless too many processes appear. */
static int kill_shell(struct shell *shell, struct fail *fail)
{
    int code = sandbox_kill_command(shell->sandbox, shell->pid, 0, fail);
    return code == -EBUSY ? sandbox_kill_all(shell->sandbox, 0, fail) : code;
}

/* Starts a shell where the last one was; nothing of that one is left running. */
static int revive(struct shell *shell, struct fail *fail)
{
    int status, code = 0;
    if (shell->pid > 0)
        code = kill_shell(shell, fail);
    if (shell->pid > 0 && code == 0)
        sandbox_poll_exit(shell->sandbox, shell->pid, &status, NULL); /* its end came before */
    shell->pid = 0;
    if (code == 0)
        code = shell_start(shell, fail);
    if (code < 0)
        return code;
    code = shell_await_news(shell, SHELL_READY, loop_now_ms() + START_MS, NULL, &status, fail);
    if (code == NEWS_STATUS)
        return 0;
    shell_disconnect(shell); /* whatever was started there is not listened to */
    return code < 0 ? code : fail_set(fail, -ENOEXEC, "/bin/bash does not do what a bash does");
}

int shell_open(struct sandbox *sandbox, struct shell **ret, struct fail *fail)
{
    struct shell *shell = calloc(1, sizeof(*shell));
    if (!shell)
        return fail_memory(fail);
    snprintf(shell->name, sizeof(shell->name), "bash%lu", (unsigned long)sandbox_next_number(sandbox));
    shell->sandbox = sandbox;
    shell->socket = -1;
    strcpy(shell->cwd, "."); /* where a process begins */
    int code = revive(shell, fail);
    if (code < 0)
        shell_close(&shell);
    else
        *ret = shell;
    return code;
}

void shell_close(struct shell **shell)
{
    if (!*shell)
        return;
    cleanup_close(&(*shell)->socket); /* which it reads as its end */
    free(take_ptr(shell));
}

int shell_restart(struct shell *shell, struct fail *fail)
{
    strcpy(shell->cwd, "."); /* where a process begins */
    int code = kill_shell(shell, fail);
    return code < 0 ? code : revive(shell, fail);
}

/* ---- its text ---------------------------------------------------------------------- */

static int write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t wrote = write(fd, data, len);
        if (wrote < 0 && errno != EINTR)
            return -errno;
        if (wrote > 0) {
            data += wrote;
            len -= (size_t)wrote;
        }
    }
    return 0;
}

static int write_command(struct shell *shell, const char *text, struct fail *fail)
{
    char made[64];
    int dir = sandbox_commands_dir(shell->sandbox);
    snprintf(made, sizeof(made), "%s.new", shell->name);
    AUTO_CLOSE int fd = openat(dir, made, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int code = fd < 0 ? -errno : write_all(fd, text, strlen(text));
    if (code == 0)
        code = write_all(fd, "\n", 1);
    if (code == 0 && renameat(dir, made, dir, shell->name) < 0)
        code = -errno;
    if (code < 0)
        unlinkat(dir, made, 0);
    return code < 0 ? fail_set(fail, code, "the command of %zu bytes: %s", strlen(text), strerror(-code)) : 0;
}

/* ---- one command ------------------------------------------------------------------------ */

struct run {
    struct shell *shell;
    const struct shell_command *command;
    struct shell_output file; /* what it writes to where it has no terminal */
    struct output *output;
    struct terminal terminal;
    uint64_t began_ticks;
    uint64_t told; /* bytes that on_output has had, or that were left out for it */
    int status;
    bool timed_out;
    const char *what; /* NULL, or why there is a new shell */
};

/* The order to run it, to a new shell if the old one is gone. */
static int order(struct run *run, struct fail *fail)
{
    struct shell *shell = run->shell;
    const char *terminal = run->command->tty ? run->terminal.path : NULL;
    int code = sandbox_check(shell->sandbox, fail);
    run->began_ticks = clock_boot_ticks();
    if (code == 0 && terminal)
        code = terminal_open(&run->terminal, shell->sandbox, run->command, run->output, fail);
    if (code == 0 && !terminal)
        code = shell_output_open(&run->file, fail);
    if (code == 0)
        code = write_command(shell, run->command->text, fail);
    if (code < 0 || shell_order(shell, run->file.name, terminal))
        return code;
    code = revive(shell, fail);
    if (code == 0 && !shell_order(shell, run->file.name, terminal))
        code = fail_set(fail, -ENOEXEC, "/bin/bash does not listen");
    return code;
}

/* ---- its output --------------------------------------------------------------------- */

static const char full_note[] =
    "[/run/sluice/out is full, and what was written there is lost: background jobs that write "
    "to it end with a restart of the shell]\n";

static void collect(struct run *run)
{
    struct buffer *text = &run->output->head;
    if (run->command->tty)
        terminal_drain(&run->terminal);
    else if (shell_output_is_begun(&run->file))
        output_append_file(run->output, run->file.file, shell_output_size(&run->file));
    else {
        run->what = run->what ? run->what : "the shell did not take the command";
        run->status = run->status ? run->status : NOT_RUN;
    }
    if (run->file.is_full)
        buffer_append_str(text, full_note);
}

/* What is new in the file, or its end where that is more than a piece. */
static void tell_progress(struct run *run)
{
    const struct shell_command *command = run->command;
    uint8_t piece[SHELL_PIECE_MAX];
    uint64_t size = shell_output_size(&run->file);
    if (size <= run->told || !shell_output_is_begun(&run->file))
        return;
    uint64_t from = size - run->told > sizeof(piece) ? size - sizeof(piece) : run->told;
    ssize_t got = pread(run->file.file, piece, (size_t)(size - from), (off_t)from);
    run->told = size;
    if (got > 0)
        command->on_output(command->on_output_arg, slice_of(piece, (size_t)got));
}

static void tick(void *arg)
{
    struct run *run = arg;
    if (run->command->tty)
        terminal_end_input(&run->terminal);
    else
        tell_progress(run);
}

/* Past its time: what it started is killed, then also what it may be waiting for, the background jobs
 * of earlier commands; and the shell if it does not come back. */
static int stop(struct run *run, struct fail *fail)
{
    struct shell *shell = run->shell;
    const uint64_t began_ticks[] = {run->began_ticks, 1};
    int news = NEWS_NONE;
    for (size_t i = 0; i < sizeof(began_ticks) / sizeof(*began_ticks) && news == NEWS_NONE; i++) {
        int code = sandbox_kill_command(shell->sandbox, shell->pid, began_ticks[i], fail);
        if (code < 0 && code != -EBUSY)
            return code;
        news = shell_await_news(shell, run->file.name, loop_now_ms() + SHELL_RETURN_MS, NULL, &run->status, fail);
    }
    return news;
}

static int await_ending(struct run *run, struct fail *fail)
{
    const struct shell_command *command = run->command;
    const struct shell_tick ticking = {tick, run};
    int news = shell_await_news(run->shell, run->file.name, loop_now_ms() + command->timeout_ms,
                                command->on_output || command->tty ? &ticking : NULL, &run->status, fail);
    if (news == NEWS_NONE) {
        run->timed_out = true;
        news = stop(run, fail);
    }
    if (news == NEWS_BROKEN)
        news = shell_await_exit(run->shell, &run->status, fail);
    if (news < 0)
        return news;
    if (news == NEWS_EXIT)
        run->what = "the shell ended";
    if (news == NEWS_NONE || news == NEWS_BROKEN) {
        run->what = "the shell did not come back";
        run->status = 256 + SIGKILL;
    }
    return 0;
}

static int run_it(struct run *run, uint64_t *total, struct fail *fail)
{
    struct shell *shell = run->shell;
    char note[PATH_MAX + 128];
    int code = order(run, fail);
    if (code == 0)
        code = await_ending(run, fail);
    if (code == -ENOEXEC) /* nothing was begun */
        return code;
    if (code < 0) {
        sandbox_kill_all_later(shell->sandbox); /* the next one finds a new shell */
        shell_disconnect(shell);
        return code;
    }
    collect(run);
    *total = run->output->total;
    if (!run->what)
        return 0;
    code = revive(shell, fail);
    int len = code == -ENOEXEC
                  ? snprintf(note, sizeof(note), "[%s; no new one starts: %.400s]\n", run->what, fail->text)
                  : snprintf(note, sizeof(note), "[%s; a new one runs in %s]\n", run->what, shell->cwd);
    output_append(run->output, note, (size_t)len);
    return code == -ENOEXEC ? 0 : code;
}

int shell_run_as(struct shell *shell, const struct shell_command *command, struct sandbox_output *ret,
                 struct fail *fail)
{
    struct output output;
    struct run run = {.shell = shell,
                      .command = command,
                      .output = &output,
                      .terminal = {.master = -1},
                      .file = {.dir = sandbox_outputs_dir(shell->sandbox), .file = -1}};
    int64_t began_us = clock_us();
    uint64_t total = 0;
    snprintf(run.file.name, sizeof(run.file.name), "%s.%lu", shell->name, (unsigned long)++shell->count);
    sandbox_hold(shell->sandbox);
    output_init(&output, command->output_max);
    int code = run_it(&run, &total, fail);
    terminal_close(&run.terminal);
    shell_output_close(&run.file);
    if (code < 0) {
        sandbox_release(shell->sandbox);
        output_finish(&output);
        return code;
    }
    *ret = (struct sandbox_output){.total = total,
                                   .status = run.status,
                                   .timed_out = run.timed_out,
                                   .seconds = (double)(clock_us() - began_us) / 1e6};
    sandbox_count_command(shell->sandbox, ret, command->output_max);
    sandbox_release(shell->sandbox);
    ret->text = output_take(&output, &ret->len);
    return ret->text ? 0 : fail_memory(fail);
}

int shell_run(struct shell *shell, const char *command, int64_t timeout_ms, size_t output_max,
              struct sandbox_output *ret, struct fail *fail)
{
    struct shell_command it = {.text = command, .timeout_ms = timeout_ms, .output_max = output_max};
    return shell_run_as(shell, &it, ret, fail);
}
