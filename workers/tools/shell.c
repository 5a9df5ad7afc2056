#include "workers/tools/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "workers/fiber.h"
#include "workers/sandbox/output.h"
#include "workers/sandbox/process.h"

enum {
    DRIVER_FD = 200, /* of the shell: names of commands come in, "NAME STATUS DIRECTORY\0" goes out */
    START_MS = 10000,
    RETURN_MS = 200, /* after the kill, to come back by itself */
    STATUS_MAX = PATH_MAX + 128,
};

struct shell {
    struct sandbox *sandbox;
    pid_t pid;  /* 0: none is running */
    int socket; /* the other end of DRIVER_FD; a socket cannot be opened through /proc */
    uint64_t count;
    char name[32]; /* of its files: "bash1", as its error messages begin */
    char cwd[PATH_MAX];
    char line[STATUS_MAX]; /* the status as far as it came */
    size_t line_len;
};

/*
 * The redirections of `.` are undone after it, whatever the command did to its own; bash's
 * copies of them are close-on-exec. The loops are two so that a stray `break` comes back, and
 * the status is said at the top so that a stray `continue` does. bash's own stdout and stderr
 * are /dev/null: `set -x` traces of these lines are lost, not mixed into an output.
 */
static const char driver_format[] =
    "builtin cd -- \"$1\" 2>/dev/null; shift; __sluice_n=ready __sluice_s=0\n"
    "while :; do while :; do\n"
    "builtin printf '%%s %%d %%s\\0' \"$__sluice_n\" \"$__sluice_s\" \"${PWD:0:4000}\" >&%d\n"
    "IFS= builtin read -r -u %d __sluice_n || builtin exit\n"
    "__sluice_s=0\n"
    "builtin . /run/sluice/%s %d<&- </dev/null >\"/run/sluice/out/$__sluice_n\" 2>&1\n"
    "__sluice_s=$?\n"
    "done; done";

/* ---- the process -------------------------------------------------------------------- */

static void disconnect(struct shell *shell)
{
    cleanup_close(&shell->socket);
    shell->socket = -1;
    shell->line_len = 0;
}

static int start(struct shell *shell, struct fail *fail)
{
    char driver[1024];
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return fail_set(fail, -errno, "socketpair: %s", strerror(errno));
    AUTO_CLOSE int its_end = ends[1];
    disconnect(shell);
    shell->socket = ends[0];
    fcntl(shell->socket, F_SETFL, O_NONBLOCK);
    snprintf(driver, sizeof(driver), driver_format, DRIVER_FD, DRIVER_FD, shell->name, DRIVER_FD);
    const char *argv[] = {"/bin/bash", "--norc", "--noprofile", "-c", driver,
                          "bash",      shell->cwd, NULL};
    struct sandbox_exec exec = {
        .argv = argv, .fds = &its_end, .targets = (int[]){DRIVER_FD}, .fd_count = 1};
    int code = sandbox_start(shell->sandbox, &exec, &shell->pid, fail);
    if (code == -ENOENT)
        return fail_set(fail, -EINVAL, "there is no /bin/bash in the image");
    return code;
}

/* ---- its answers -------------------------------------------------------------------- */

/* A whole line is in shell->line: is it the one about `name`? Then its status and directory. */
static bool take_line(struct shell *shell, const char *name, int *status)
{
    char *end = memchr(shell->line, '\0', shell->line_len);
    size_t name_len = strlen(name);
    if (!end)
        return false;
    bool ours = strncmp(shell->line, name, name_len) == 0 && shell->line[name_len] == ' ';
    char *directory = NULL;
    if (ours) {
        *status = (int)strtol(shell->line + name_len, &directory, 10) & 255;
        ours = directory && directory[0] == ' ' && directory[1] == '/';
    }
    if (ours)
        snprintf(shell->cwd, sizeof(shell->cwd), "%s", directory + 1);
    size_t used = (size_t)(end - shell->line) + 1;
    memmove(shell->line, shell->line + used, shell->line_len - used);
    shell->line_len -= used;
    return ours;
}

enum news { NEWS_NONE, NEWS_STATUS, NEWS_EXIT, NEWS_BROKEN };

static enum news read_status(struct shell *shell, const char *name, int *status)
{
    for (;;) {
        if (take_line(shell, name, status))
            return NEWS_STATUS;
        if (memchr(shell->line, '\0', shell->line_len))
            continue; /* about another one: somebody else wrote it */
        if (shell->line_len == sizeof(shell->line))
            return NEWS_BROKEN;
        ssize_t got = read(shell->socket, shell->line + shell->line_len,
                           sizeof(shell->line) - shell->line_len);
        if (got > 0)
            shell->line_len += (size_t)got;
        else if (got == 0 || (errno != EAGAIN && errno != EINTR))
            return NEWS_BROKEN;
        else if (errno == EAGAIN)
            return NEWS_NONE;
    }
}

/* Its end is looked for first: what it said before is in the socket then. */
static int look(struct shell *shell, const char *name, int *status, struct fail *fail)
{
    int ended = sandbox_poll_exit(shell->sandbox, shell->pid, status, fail);
    if (ended == 1)
        shell->pid = 0;
    enum news news = read_status(shell, name, status);
    if (news == NEWS_STATUS || ended == 0)
        return (int)news;
    return ended < 0 ? ended : NEWS_EXIT;
}

/* Awaits a wake or until_ms; an error when the fiber's own time is over. */
static int await_until(int64_t until_ms, struct fail *fail)
{
    int64_t left_ms = until_ms - clock_ms();
    int woken = left_ms > 0 ? await_wake(left_ms) : 0;
    if (woken == -ECANCELED || (woken == -ETIMEDOUT && clock_ms() < until_ms))
        return fail_set(fail, woken, woken == -ECANCELED ? "cancelled" : "out of time");
    return 0;
}

static int await_look(struct shell *shell, const char *name, int64_t until_ms, int *status,
                      struct fail *fail)
{
    for (;;) {
        int news = look(shell, name, status, fail);
        if (news != NEWS_NONE || clock_ms() >= until_ms)
            return news;
        int code = await_until(until_ms, fail);
        if (code < 0)
            return code;
    }
}

static void on_status(void *arg, uint32_t events)
{
    (void)events;
    fiber_wake(arg);
}

/* What became of the command `name`: NEWS_NONE when it still runs at until_ms, or errno. */
static int await_news(struct shell *shell, const char *name, int64_t until_ms, int *status,
                      struct fail *fail)
{
    struct loop *loop = fiber_loop();
    struct loop_watch *watch = loop_watch(loop, shell->socket, EPOLLIN, on_status, fiber_current());
    if (!watch)
        return fail_set(fail, -ENOMEM, "out of memory");
    int news = await_look(shell, name, until_ms, status, fail);
    loop_unwatch(loop, &watch);
    if (shell->pid > 0)
        sandbox_forget_exit(shell->sandbox, shell->pid);
    return news;
}

/* After it fell silent: NEWS_EXIT, NEWS_BROKEN when it lives on all the same, or errno. */
static int await_exit(struct shell *shell, int *status, struct fail *fail)
{
    int64_t until_ms = clock_ms() + RETURN_MS;
    for (;;) {
        int ended = sandbox_poll_exit(shell->sandbox, shell->pid, status, fail);
        if (ended < 0)
            return ended;
        if (ended == 1)
            shell->pid = 0;
        if (ended == 1 || clock_ms() >= until_ms)
            return ended == 1 ? NEWS_EXIT : NEWS_BROKEN;
        int code = await_until(until_ms, fail);
        if (code < 0)
            return code;
    }
}

/* ---- life --------------------------------------------------------------------------- */

/* Starts a shell where the last one was; nothing of that one is left running. */
static int revive(struct shell *shell, struct fail *fail)
{
    int status, code = 0;
    if (shell->pid > 0)
        code = sandbox_kill_all(shell->sandbox, 0, fail);
    if (shell->pid > 0 && code == 0)
        sandbox_poll_exit(shell->sandbox, shell->pid, &status, NULL); /* its end came before */
    shell->pid = 0;
    if (code == 0)
        code = start(shell, fail);
    if (code < 0)
        return code;
    code = await_news(shell, "ready", clock_ms() + START_MS, &status, fail);
    if (code == NEWS_STATUS)
        return 0;
    return code < 0 ? code : fail_set(fail, -EIO, "bash does not start");
}

int shell_open(struct sandbox *sandbox, struct shell **ret, struct fail *fail)
{
    struct shell *shell = calloc(1, sizeof(*shell));
    if (!shell)
        return fail_set(fail, -ENOMEM, "out of memory");
    snprintf(shell->name, sizeof(shell->name), "bash%lu",
             (unsigned long)sandbox_next_number(sandbox));
    shell->sandbox = sandbox;
    shell->socket = -1;
    strcpy(shell->cwd, "/workspace");
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

/* ---- a command ---------------------------------------------------------------------- */

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
    return code < 0 ? fail_set(fail, code, "the command of %zu bytes: %s", strlen(text),
                               strerror(-code))
                    : 0;
}

static bool send_order(const struct shell *shell, const char *name)
{
    char line[80];
    int len = snprintf(line, sizeof(line), "%s\n", name);
    return shell->pid > 0 && send(shell->socket, line, (size_t)len, MSG_NOSIGNAL) == len;
}

/* The order to run it, to a new shell if the old one is gone. */
static int order(struct shell *shell, const char *text, const char *name, struct fail *fail)
{
    int code = sandbox_check(shell->sandbox, fail);
    if (code == 0)
        code = write_command(shell, text, fail);
    if (code < 0 || send_order(shell, name))
        return code;
    code = revive(shell, fail);
    if (code == 0 && !send_order(shell, name))
        code = fail_set(fail, -EIO, "bash does not listen");
    return code;
}

/* The name may be anything by now: only a regular file is read. */
static void collect(struct shell *shell, const char *name, struct output *output)
{
    struct stat it;
    int dir = sandbox_outputs_dir(shell->sandbox);
    AUTO_CLOSE int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &it) == 0 && S_ISREG(it.st_mode))
        output_append_file(output, fd, (uint64_t)it.st_size);
    else
        buffer_append_str(&output->head, "[the output was lost]\n");
    unlinkat(dir, name, 0);
}

/* Past its time: kill all but the shell, and that too if it does not come back. */
static int stop(struct shell *shell, const char *name, int *status, struct fail *fail)
{
    int code = sandbox_kill_all(shell->sandbox, shell->pid, fail);
    if (code < 0 && code != -EBUSY)
        return code;
    return await_news(shell, name, clock_ms() + RETURN_MS, status, fail);
}

struct ending {
    int status;
    bool timed_out;
    uint64_t total;
    const char *what; /* NULL, or why there is a new shell */
};

static int await_ending(struct shell *shell, const char *name, int64_t timeout_ms,
                        struct ending *ret, struct fail *fail)
{
    int news = await_news(shell, name, clock_ms() + timeout_ms, &ret->status, fail);
    if (news == NEWS_NONE) {
        ret->timed_out = true;
        news = stop(shell, name, &ret->status, fail);
    }
    if (news == NEWS_BROKEN)
        news = await_exit(shell, &ret->status, fail);
    if (news < 0)
        return news;
    if (news == NEWS_EXIT)
        ret->what = "the shell ended";
    if (news == NEWS_NONE || news == NEWS_BROKEN) {
        ret->what = "the shell did not come back";
        ret->status = 256 + SIGKILL;
    }
    return 0;
}

static int run(struct shell *shell, const char *text, int64_t timeout_ms, struct output *output,
               struct ending *ending, struct fail *fail)
{
    char name[64], note[PATH_MAX + 128];
    snprintf(name, sizeof(name), "%s.%lu", shell->name, (unsigned long)++shell->count);
    int code = order(shell, text, name, fail);
    if (code == 0)
        code = await_ending(shell, name, timeout_ms, ending, fail);
    if (code < 0) {
        sandbox_kill_all_later(shell->sandbox); /* the next one finds a new shell */
        disconnect(shell);
        return code;
    }
    collect(shell, name, output);
    ending->total = output->total;
    if (!ending->what)
        return 0;
    code = revive(shell, fail);
    int len = snprintf(note, sizeof(note), "[%s; a new one runs in %s]\n", ending->what, shell->cwd);
    output_append(output, note, (size_t)len);
    return code;
}

int shell_run(struct shell *shell, const char *command, int64_t timeout_ms, size_t output_max,
              struct sandbox_output *ret, struct fail *fail)
{
    struct output output;
    struct ending ending = {0};
    int64_t began_us = clock_us();
    sandbox_hold(shell->sandbox);
    output_init(&output, output_max);
    int code = run(shell, command, timeout_ms, &output, &ending, fail);
    if (code < 0) {
        sandbox_release(shell->sandbox);
        output_finish(&output);
        return code;
    }
    *ret = (struct sandbox_output){.total = ending.total,
                                   .status = ending.status,
                                   .timed_out = ending.timed_out,
                                   .seconds = (double)(clock_us() - began_us) / 1e6};
    sandbox_count_command(shell->sandbox, ret, output_max);
    sandbox_release(shell->sandbox);
    ret->text = output_take(&output, &ret->len);
    return ret->text ? 0 : fail_set(fail, -ENOMEM, "out of memory");
}
