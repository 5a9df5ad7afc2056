/* The bash of a shell: started with a driver that runs what it is told, and listened to. */
#include "workers/tools/bash/shell_driver.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "common/base/cleanup.h"
#include "workers/runtime/fiber.h"
#include "common/loop/loop_now.h"
#include "workers/sandbox/requests.h"
#include "workers/tools/bash/shell_inside.h"

/* Of the shell: orders come in, "DIRECTORY\n\0NAME STATUS\0" goes out. */
enum { DRIVER_FD = 200, DIRECTORY_MAX = 1 << 20 /* bytes of a path, however deep */ };

/*
 * An order is two lines in one piece: "NAME TERMINAL RUN_PATH" is read before the command is run, and
 * "NAME TERMINAL", whom to answer, after it; the terminal is "-" where there is none. So no variable of ours
 * has to live through a command, and what one makes of $PWD, of aliases or of names like ours does not count:
 * all of this was parsed before the first.
 *
 * Whatever bash does not do for us any more (`set -r` forbids its redirections, a function `builtin` takes each of
 * our commands) ends it: a read that fails, an answer that cannot be given, an empty name at ${...:?}, which no
 * command can redefine. A bash that has ended is replaced at once (shell.c); one that has to be waited for costs
 * the agent its time-out.
 *
 * The redirections of `.` are undone after it, whatever the command did to its own; bash's
 * copies of them are close-on-exec. The loops are two so that a stray `break` comes back, and
 * the status is said at the top so that a stray `continue` does. bash's own stdout and stderr
 * are /dev/null: `set -x` traces of these lines are lost, not mixed into an output.
 *
 * A terminal becomes the controlling one as bash, a session's leader without one, opens it. That
 * it is closed when its command has ended is a SIGHUP, which bash ignores until it is told the
 * next one; what the command made of that signal is put back then.
 */
static const char driver_format[] = /* 1: DRIVER_FD, 2: the script's name */
    "builtin cd -- \"$1\" 2>/dev/null; builtin shift; __sluice_s=0\n"
    "while :; do while :; do\n"
    "__sluice_n=; builtin read -r -u %1$d -d ' ' __sluice_n && builtin read -r -u %1$d __sluice_t "
    "|| builtin exit \"${__sluice_s:-0}\"\n"
    "case $- in *r*) builtin exit \"${__sluice_s:-0}\";; esac\n"
    "case ${__sluice_n:?}$__sluice_t in */*) __sluice_h=$(builtin trap -p HUP); builtin trap '' "
    "HUP;; esac\n"
    "{ builtin pwd; builtin printf '\\0%%s %%d\\0' \"$__sluice_n\" \"${__sluice_s:-0}\"; } >&%1$d "
    "|| builtin exit \"${__sluice_s:-0}\"\n"
    "__sluice_s=$__sluice_t __sluice_n=\n"
    "builtin read -r -u %1$d -d ' ' __sluice_n && builtin read -r -u %1$d -d ' ' __sluice_t && "
    "builtin read -r -u %1$d __sluice_r || builtin exit\n"
    "case ${__sluice_n:?}$__sluice_s in */*) builtin eval \"'builtin' ${__sluice_h:-trap - "
    "HUP}\";; esac\n"
    "case $__sluice_t in */*) __sluice_o=$__sluice_t;; *) __sluice_t=/dev/null "
    "__sluice_o=$__sluice_r/out/$__sluice_n;; esac\n"
    "__sluice_s=0\n"
    "builtin . \"$__sluice_r/%2$s\" %1$d<&- <\"$__sluice_t\" >|\"$__sluice_o\" 2>&1\n"
    "__sluice_s=$?\n"
    "done; done";

/* ---- the process -------------------------------------------------------------------- */

void shell_disconnect(struct shell *shell)
{
    cleanup_close(&shell->socket);
    shell->socket = -1;
    shell->line_len = shell->skipped = 0;
    shell->has_directory = false;
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
    snprintf(driver, sizeof(driver), driver_format, DRIVER_FD, shell->name);
    const char *argv[] = {"/bin/bash", "--norc", "--noprofile", "-c", driver, "bash", shell->cwd, NULL};
    struct sandbox_exec exec = {.argv = argv, .fds = &its_end, .targets = (int[]){DRIVER_FD}, .fd_count = 1};
    static const char first[] = SHELL_READY " -\n"; /* whom it answers when it has begun */
    if (send(shell->socket, first, strlen(first), MSG_NOSIGNAL) < 0)
        return fail_set(fail, -errno, "a socket: %s", strerror(errno));
    return sandbox_start(shell->sandbox, &exec, &shell->pid, fail);
}

bool shell_order(const struct shell *shell, const char *name, const char *terminal)
{
    char lines[PATH_MAX + 256];
    if (!terminal)
        terminal = "-";
    int len = snprintf(lines, sizeof(lines), "%s %s %s\n%s %s\n", name, terminal, sandbox_run_path(shell->sandbox),
                       name, terminal);
    return shell->pid > 0 && send(shell->socket, lines, (size_t)len, MSG_NOSIGNAL) == len;
}

/* ---- its answers -------------------------------------------------------------------- */

/* An answer's first piece; what is no path or did not fit leaves the directory as it was. */
static enum news take_directory(struct shell *shell, size_t len)
{
    const char *piece = shell->line;
    if (piece[0] == '/' && shell->skipped == 0)
        snprintf(shell->cwd, sizeof(shell->cwd), "%.*s", (int)len - (piece[len - 1] == '\n'), piece);
    shell->has_directory = true;
    shell->skipped = 0;
    return NEWS_NONE;
}

/* Its second. What nobody asked for, the driver does not say. */
static enum news take_status(struct shell *shell, const char *name, int *status)
{
    const size_t name_len = strlen(name);
    shell->has_directory = false;
    if (shell->skipped > 0 || strncmp(shell->line, name, name_len) != 0 || shell->line[name_len] != ' ')
        return NEWS_BROKEN;
    *status = (int)strtol(shell->line + name_len, NULL, 10) & 255;
    return NEWS_STATUS;
}

static enum news take_pieces(struct shell *shell, const char *name, int *status)
{
    enum news news = NEWS_NONE;
    char *end;
    while (news == NEWS_NONE && (end = memchr(shell->line, '\0', shell->line_len))) {
        size_t used = (size_t)(end - shell->line) + 1;
        news = shell->has_directory ? take_status(shell, name, status) : take_directory(shell, used - 1);
        memmove(shell->line, shell->line + used, shell->line_len - used);
        shell->line_len -= used;
    }
    if (shell->line_len == sizeof(shell->line)) {
        shell->skipped += shell->line_len;
        shell->line_len = 0;
    }
    return shell->skipped > DIRECTORY_MAX ? NEWS_BROKEN : news;
}

static enum news read_status(struct shell *shell, const char *name, int *status)
{
    for (;;) {
        enum news news = take_pieces(shell, name, status);
        if (news != NEWS_NONE)
            return news;
        ssize_t got = read(shell->socket, shell->line + shell->line_len, sizeof(shell->line) - shell->line_len);
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

static int await_look(struct shell *shell, const char *name, int64_t until_ms, const struct shell_tick *tick,
                      int *status, struct fail *fail)
{
    for (;;) {
        int news = look(shell, name, status, fail);
        if (news != NEWS_NONE || loop_now_ms() >= until_ms)
            return news;
        int64_t tick_ms = loop_now_ms() + SHELL_TICK_MS;
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

int shell_await_news(struct shell *shell, const char *name, int64_t until_ms, const struct shell_tick *tick,
                     int *status, struct fail *fail)
{
    struct loop *loop = fiber_loop();
    struct loop_watch *watch = loop_watch(loop, shell->socket, EPOLLIN, on_status, fiber_current());
    if (!watch)
        return fail_memory(fail);
    int news = await_look(shell, name, until_ms, tick, status, fail);
    loop_unwatch(loop, &watch);
    if (shell->pid > 0)
        sandbox_forget_exit(shell->sandbox, shell->pid);
    return news;
}

int shell_await_exit(struct shell *shell, int *status, struct fail *fail)
{
    int64_t until_ms = loop_now_ms() + SHELL_RETURN_MS;
    for (;;) {
        int ended = sandbox_poll_exit(shell->sandbox, shell->pid, status, fail);
        if (ended < 0)
            return ended;
        if (ended == 1)
            shell->pid = 0;
        if (ended == 1 || loop_now_ms() >= until_ms)
            return ended == 1 ? NEWS_EXIT : NEWS_BROKEN;
        int code = await_until(until_ms, fail);
        if (code < 0)
            return code;
    }
}
