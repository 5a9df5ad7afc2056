/* The bash of a shell: started with a driver that runs what it is told, and listened to. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "workers/fiber.h"
#include "workers/tools/shell_inside.h"

/* Of the shell: names of commands come in, "NAME STATUS DIRECTORY\0" goes out. */
enum { DRIVER_FD = 200, STRAYS_MAX = 64 };

/*
 * The redirections of `.` are undone after it, whatever the command did to its own; bash's
 * copies of them are close-on-exec. The loops are two so that a stray `break` comes back, and
 * the status is said at the top so that a stray `continue` does. bash's own stdout and stderr
 * are /dev/null: `set -x` traces of these lines are lost, not mixed into an output.
 *
 * A terminal (__sluice_t) becomes the controlling one as bash, a session's leader without one,
 * opens it. That it is closed when its command has ended is a SIGHUP, which bash ignores until it
 * is told the next one; what the command made of that signal is put back then.
 */
static const char driver_format[] =
    "builtin cd -- \"$1\" 2>/dev/null; __sluice_r=$2; shift 2; __sluice_n=ready __sluice_s=0 __sluice_t=\n"
    "while :; do while :; do\n"
    "case $__sluice_t in ?*) __sluice_h=$(builtin trap -p HUP); builtin trap '' HUP;; esac\n"
    "builtin printf '%%s %%d %%s\\0' \"$__sluice_n\" \"$__sluice_s\" \"${PWD:0:4000}\" >&%d\n"
    "__sluice_s=$__sluice_t\n"
    "IFS=' ' builtin read -r -u %d __sluice_n __sluice_t || builtin exit\n"
    "case $__sluice_s in ?*) builtin eval \"${__sluice_h:-builtin trap - HUP}\";; esac\n"
    "__sluice_s=0\n"
    "builtin . \"$__sluice_r/%s\" %d<&- <\"${__sluice_t:-/dev/null}\" "
    ">\"${__sluice_t:-$__sluice_r/out/$__sluice_n}\" 2>&1\n"
    "__sluice_s=$?\n"
    "done; done";

/* ---- the process -------------------------------------------------------------------- */

void shell_disconnect(struct shell *shell)
{
    cleanup_close(&shell->socket);
    shell->socket = -1;
    shell->line_len = shell->strays = 0;
}

int shell_start(struct shell *shell, struct fail *fail)
{
    char driver[2048];
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return fail_set(fail, -errno, "socketpair: %s", strerror(errno));
    AUTO_CLOSE int its_end = ends[1];
    shell_disconnect(shell);
    shell->socket = ends[0];
    fcntl(shell->socket, F_SETFL, O_NONBLOCK);
    snprintf(driver, sizeof(driver), driver_format, DRIVER_FD, DRIVER_FD, shell->name, DRIVER_FD);
    const char *argv[] = {"/bin/bash", "--norc", "--noprofile", "-c", driver,
                          "bash",      shell->cwd, sandbox_run_path(shell->sandbox), NULL};
    struct sandbox_exec exec = {
        .argv = argv, .fds = &its_end, .targets = (int[]){DRIVER_FD}, .fd_count = 1};
    return sandbox_start(shell->sandbox, &exec, &shell->pid, fail);
}

bool shell_order(const struct shell *shell, const char *name, const char *terminal)
{
    char line[128];
    int len = snprintf(line, sizeof(line), "%s %s\n", name, terminal ? terminal : "");
    return shell->pid > 0 && send(shell->socket, line, (size_t)len, MSG_NOSIGNAL) == len;
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
    shell->strays += !ours;
    return ours;
}

/* Lines about other commands are somebody else's: so many of them, and it is no use to listen on. */
static enum news read_status(struct shell *shell, const char *name, int *status)
{
    for (;;) {
        if (take_line(shell, name, status))
            return NEWS_STATUS;
        if (shell->strays > STRAYS_MAX)
            return NEWS_BROKEN;
        if (memchr(shell->line, '\0', shell->line_len))
            continue;
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

static int await_look(struct shell *shell, const char *name, int64_t until_ms,
                      const struct shell_tick *tick, int *status, struct fail *fail)
{
    for (;;) {
        int news = look(shell, name, status, fail);
        if (news != NEWS_NONE || clock_ms() >= until_ms)
            return news;
        int64_t tick_ms = clock_ms() + SHELL_TICK_MS;
        int code = await_until(tick && tick_ms < until_ms ? tick_ms : until_ms, fail);
        if (code < 0)
            return code;
        if (tick)
            tick->call(tick->arg);
    }
}

static void on_status(void *arg, uint32_t events)
{
    (void)events;
    fiber_wake(arg);
}

int shell_await_news(struct shell *shell, const char *name, int64_t until_ms,
                     const struct shell_tick *tick, int *status, struct fail *fail)
{
    struct loop *loop = fiber_loop();
    struct loop_watch *watch = loop_watch(loop, shell->socket, EPOLLIN, on_status, fiber_current());
    if (!watch)
        return fail_set(fail, -ENOMEM, "out of memory");
    int news = await_look(shell, name, until_ms, tick, status, fail);
    loop_unwatch(loop, &watch);
    if (shell->pid > 0)
        sandbox_forget_exit(shell->sandbox, shell->pid);
    return news;
}

int shell_await_exit(struct shell *shell, int *status, struct fail *fail)
{
    int64_t until_ms = clock_ms() + SHELL_RETURN_MS;
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
