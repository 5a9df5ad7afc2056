/* One command by bash in a process of its own, its output through a pipe. */
#include "workers/sandbox/command.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "workers/runtime/fiber.h"
#include "common/loop/loop_now.h"
#include "workers/sandbox/output.h"
#include "workers/sandbox/sandbox.h"
#include "workers/sandbox/requests.h"

enum {
    INLINE_MAX = 32768, /* longer commands go through a file */
    READ_MAX = 1 << 20, /* at once, and the most that a pipe can hold */
    KILLED_MS = 5000,   /* the kernel's time to end what was killed */
    TICK_MS = 5
};

struct command {
    struct sandbox *sandbox;
    pid_t pid;
    int pipes[2]; /* both streams, or its output and its errors */
    struct loop_watch *watches[2];
    struct sandbox_errors *errors; /* NULL: not apart */
    struct output output;
    struct loop *loop;
    uint64_t began_ticks;
    bool timed_out;
    int status;
    char script[64]; /* its file among the commands; "" when it is an argument */
};

/* Its end is kept. */
static void add_errors(struct sandbox_errors *errors, const uint8_t *bytes, size_t len)
{
    const size_t most = sizeof(errors->text) - 1;
    if (len > most) {
        bytes += len - most;
        len = most;
    }
    const size_t gone = errors->len + len > most ? errors->len + len - most : 0;
    memmove(errors->text, errors->text + gone, errors->len - gone);
    memcpy(errors->text + errors->len - gone, bytes, len);
    errors->len += len - gone;
    errors->text[errors->len] = '\0';
    for (char *at = errors->text; (at = memchr(at, '\0', (size_t)(errors->text + errors->len - at)));)
        *at = '?'; /* it is text */
}

/* False at the end of the pipe. */
static bool read_some(struct command *command, size_t which)
{
    uint8_t chunk[16384];
    for (size_t done = 0; done < READ_MAX;) {
        ssize_t got = read(command->pipes[which], chunk, sizeof(chunk));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 && errno == EAGAIN;
        output_append(&command->output, chunk, (size_t)got);
        if (which == 1)
            add_errors(command->errors, chunk, (size_t)got);
        done += (size_t)got;
    }
    return true;
}

static void read_or_stop(struct command *command, size_t which)
{
    if (!read_some(command, which))
        loop_unwatch(command->loop, &command->watches[which]);
}

static void on_output(void *arg, uint32_t events)
{
    (void)events;
    read_or_stop(arg, 0);
}

static void on_errors(void *arg, uint32_t events)
{
    (void)events;
    read_or_stop(arg, 1);
}

/* ---- start -------------------------------------------------------------------------- */

/* A command too long for an argument becomes a file that the sandbox can only read. */
static int write_script(struct command *command, const char *text, struct fail *fail)
{
    snprintf(command->script, sizeof(command->script), "script%lu",
             (unsigned long)sandbox_next_number(command->sandbox));
    AUTO_CLOSE int fd = openat(sandbox_commands_dir(command->sandbox), command->script,
                               O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    size_t len = strlen(text);
    errno = 0;
    if (fd < 0 || write(fd, text, len) != (ssize_t)len)
        return fail_set(fail, errno ? -errno : -ENOSPC, "the command of %zu bytes: %s", len,
                        strerror(errno ? errno : ENOSPC));
    return 0;
}

/* The end to write to, or negative errno. */
static int make_pipe(struct command *command, size_t which, struct fail *fail)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return fail_set(fail, -errno, "pipe: %s", strerror(errno));
    command->pipes[which] = ends[0];
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return ends[1];
}

static int start(struct command *command, const char *text, struct fail *fail)
{
    char path[PATH_MAX];
    int code = strlen(text) > INLINE_MAX ? write_script(command, text, fail) : 0;
    if (code < 0)
        return code;
    snprintf(path, sizeof(path), "%s/%s", sandbox_run_path(command->sandbox), command->script);
    const char *inline_argv[] = {"/bin/bash", "-c", text, NULL};
    const char *script_argv[] = {"/bin/bash", path, NULL};
    AUTO_CLOSE int output_end = make_pipe(command, 0, fail);
    AUTO_CLOSE int errors_end = output_end >= 0 && command->errors ? make_pipe(command, 1, fail) : -1;
    if (output_end < 0 || (command->errors && errors_end < 0))
        return output_end < 0 ? output_end : errors_end;
    struct sandbox_exec exec = {.argv = command->script[0] ? script_argv : inline_argv,
                                .fds = (int[]){output_end, command->errors ? errors_end : output_end},
                                .targets = (int[]){1, 2},
                                .fd_count = 2};
    return sandbox_start(command->sandbox, &exec, &command->pid, fail);
}

/* ---- end ---------------------------------------------------------------------------- */

/* 1: it ended; 0: it still runs at until_ms; negative errno. */
static int await_end(struct command *command, int64_t until_ms, struct fail *fail)
{
    for (;;) {
        int code = sandbox_poll_exit(command->sandbox, command->pid, &command->status, fail);
        if (code != 0)
            return code;
        if (loop_now_ms() >= until_ms)
            return 0;
        code = await_until(until_ms, fail);
        if (code < 0)
            return code;
    }
}

/* All others, or what it started: whatever began later than it did, unless who was there before started that. */
static int kill_rest(struct command *command, struct fail *fail)
{
    struct sandbox *sandbox = command->sandbox;
    int code = 0;
    if (!sandbox_spares(sandbox))
        return sandbox_kill_all(sandbox, 0, fail);
    if (command->timed_out)
        code = sandbox_signal_tree(sandbox, command->pid, SIGKILL, fail);
    if (code == 0)
        code = sandbox_kill_command(sandbox, 0, command->began_ticks, fail);
    return code == -EBUSY ? sandbox_kill_all(sandbox, 0, fail) : code;
}

/* What is in the pipe when the rest was killed is all there will be. */
static int finish(struct command *command, int64_t timeout_ms, struct fail *fail)
{
    int code = await_end(command, loop_now_ms() + timeout_ms, fail);
    if (code < 0)
        return code;
    command->timed_out = code == 0;
    int killed = kill_rest(command, fail);
    if (killed < 0)
        return killed;
    if (command->timed_out)
        code = await_end(command, loop_now_ms() + KILLED_MS, fail);
    if (code == 0)
        return fail_set(fail, -EIO, "the command cannot be killed");
    for (size_t i = 0; i < 2; i++)
        if (code > 0 && command->watches[i])
            read_some(command, i);
    return code < 0 ? code : 0;
}

/* So that whoever is there by now has begun in a tick before the command's. */
static int await_tick(struct command *command, struct fail *fail)
{
    const uint64_t before = clock_boot_ticks();
    int code = 0;
    while (code == 0 && (command->began_ticks = clock_boot_ticks()) == before)
        code = await_until(loop_now_ms() + TICK_MS, fail);
    return code;
}

static int run(struct command *command, const char *text, int64_t timeout_ms, struct fail *fail)
{
    int code = sandbox_spares(command->sandbox) ? await_tick(command, fail) : 0;
    if (code == 0)
        code = start(command, text, fail);
    if (code == -ETIMEDOUT || code == -ECANCELED)
        sandbox_kill_all_later(command->sandbox); /* it was asked for, and may run by now */
    if (code < 0)
        return code;
    command->watches[0] = loop_watch(command->loop, command->pipes[0], EPOLLIN, on_output, command);
    if (command->errors)
        command->watches[1] = loop_watch(command->loop, command->pipes[1], EPOLLIN, on_errors, command);
    const bool is_watched = command->watches[0] && (command->watches[1] || !command->errors);
    code = is_watched ? finish(command, timeout_ms, fail) : fail_memory(fail);
    if (code < 0) {
        sandbox_forget_exit(command->sandbox, command->pid);
        sandbox_kill_all_later(command->sandbox);
    }
    for (size_t i = 0; i < 2; i++)
        loop_unwatch(command->loop, &command->watches[i]);
    return code;
}

int sandbox_command(struct sandbox *sandbox, const char *text, int64_t timeout_ms, size_t output_max,
                    struct sandbox_output *ret, struct fail *fail)
{
    return sandbox_command_apart(sandbox, text, timeout_ms, output_max, ret, NULL, fail);
}

int sandbox_command_apart(struct sandbox *sandbox, const char *text, int64_t timeout_ms, size_t output_max,
                          struct sandbox_output *ret, struct sandbox_errors *ret_errors, struct fail *fail)
{
    struct command command = {.sandbox = sandbox, .pipes = {-1, -1}, .errors = ret_errors, .loop = fiber_loop()};
    if (ret_errors)
        *ret_errors = (struct sandbox_errors){.len = 0};
    int64_t began_us = clock_us();
    sandbox_hold(sandbox);
    output_init(&command.output, output_max);
    int code = run(&command, text, timeout_ms, fail);
    if (command.script[0])
        unlinkat(sandbox_commands_dir(sandbox), command.script, 0);
    cleanup_close(&command.pipes[0]);
    cleanup_close(&command.pipes[1]);
    if (code < 0) {
        sandbox_release(sandbox);
        output_finish(&command.output);
        return code;
    }
    *ret = (struct sandbox_output){.total = command.output.total,
                                   .status = command.status,
                                   .timed_out = command.timed_out,
                                   .seconds = (double)(clock_us() - began_us) / 1e6};
    sandbox_count_command(sandbox, ret, output_max);
    sandbox_release(sandbox);
    ret->text = output_take(&command.output, &ret->len);
    return ret->text ? 0 : fail_memory(fail);
}
