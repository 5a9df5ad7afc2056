#include "workers/handlers/processes/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/cleanup.h"

enum { FIRST_FREE = 10, HANDLER_FD = 3, END_NOT_STARTED = 127 };

struct ends {
    int socket[2], input[2], said[2]; /* ours, the handler's; to read, to write */
};

static void ends_close(struct ends *ends)
{
    for (size_t i = 0; i < 2; i++) {
        cleanup_close(&ends->socket[i]);
        cleanup_close(&ends->input[i]);
        cleanup_close(&ends->said[i]);
    }
}

static int socket_open(int ret[2])
{
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ret) < 0 ? -1 : fcntl(ret[0], F_SETFL, O_NONBLOCK);
}

/* Of lines each direction has a socket, so that the end of the handler's output is seen while it reads on. */
static int ends_open(struct ends *ends, bool is_lines)
{
    *ends = (struct ends){{-1, -1}, {-1, -1}, {-1, -1}};
    if (socket_open(ends->socket) < 0 || (is_lines && socket_open(ends->input) < 0) ||
        pipe2(ends->said, O_CLOEXEC) < 0 || fcntl(ends->said[0], F_SETFL, O_NONBLOCK) < 0) {
        const int code = -errno;
        ends_close(ends);
        return code;
    }
    return 0;
}

/* ---- the environment ---------------------------------------------------------------------- */

enum { OWN_VARIABLES = 3 };

static bool is_own(const char *variable)
{
    static const char *const names[] = {"SLUICE_HANDLER=", "SLUICE_HANDLER_FD=", "SLUICE_STAGE=", "SLUICE_SEARCH_KEY="};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strncmp(variable, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* The worker's, without the key of its web search, and the handler's own; `own` are theirs. */
static char **make_environment(char *own[OWN_VARIABLES], size_t own_count)
{
    size_t count = 0;
    while (environ[count])
        count++;
    char **all = calloc(count + OWN_VARIABLES + 1, sizeof(*all));
    size_t at = 0;
    for (size_t i = 0; all && i < count; i++)
        if (!is_own(environ[i]))
            all[at++] = environ[i];
    for (size_t i = 0; all && i < own_count; i++)
        all[at++] = own[i];
    return all;
}

/* ---- the process --------------------------------------------------------------------------- */

/* After a fork of a program with threads: system calls alone. */
static _Noreturn void become(int program, char *const *argv, char *const *env, bool is_lines, const struct ends *ends)
{
    sigset_t none;
    const int input = is_lines ? ends->input[1] : open("/dev/null", O_RDONLY);
    const int high_input = fcntl(input, F_DUPFD, FIRST_FREE), high_socket = fcntl(ends->socket[1], F_DUPFD, FIRST_FREE);
    const int high_said = fcntl(ends->said[1], F_DUPFD, FIRST_FREE), high_program = fcntl(program, F_DUPFD, FIRST_FREE);
    if (high_input < 0 || high_socket < 0 || high_said < 0 || high_program < 0)
        _exit(END_NOT_STARTED);
    dup2(high_input, STDIN_FILENO);
    dup2(is_lines ? high_socket : high_said, STDOUT_FILENO);
    dup2(high_said, STDERR_FILENO);
    if (!is_lines)
        dup2(high_socket, HANDLER_FD);
    close_range(is_lines ? HANDLER_FD : HANDLER_FD + 1, ~0U, CLOSE_RANGE_CLOEXEC);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    syscall(SYS_execveat, high_program, "", argv, env, AT_EMPTY_PATH);
    _exit(END_NOT_STARTED);
}

int handler_launch(int program, const struct handler_spec *spec, const char *stage, struct launched *ret,
                   struct fail *fail)
{
    struct ends ends;
    char name[HANDLER_NAME_MAX + 32], word[32], fd[] = "SLUICE_HANDLER_FD=3";
    char *own[OWN_VARIABLES] = {name, word, fd};
    char *const argv[] = {(char *)"sluice-supervisor", (char *)"/bin/sh", (char *)"-c", (char *)spec->command, NULL};
    snprintf(name, sizeof(name), "SLUICE_HANDLER=%s", spec->name);
    snprintf(word, sizeof(word), "SLUICE_STAGE=%s", stage);
    AUTO_FREE char **env = make_environment(own, spec->is_lines ? OWN_VARIABLES - 1 : OWN_VARIABLES);
    int code = env ? ends_open(&ends, spec->is_lines) : -ENOMEM;
    if (code < 0)
        return fail_set(fail, code, "it cannot be started: %s", strerror(-code));
    const pid_t pid = fork();
    if (pid == 0)
        become(program, argv, env, spec->is_lines, &ends);
    if (pid < 0)
        code = fail_set(fail, -errno, "it cannot be started: %s", strerror(errno));
    else
        *ret = (struct launched){pid, take_fd(&ends.socket[0]), take_fd(&ends.input[0]), take_fd(&ends.said[0])};
    ends_close(&ends);
    return code;
}
