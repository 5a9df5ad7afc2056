#include "client/cli/up/child.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PAUSE_FIRST_MS = 250,
    PAUSE_LAST_MS = 10000,
    STEADY_MS = 30000 /* one that ran so long begins with the first pause again */
};

void child_add(struct child *child, const char *argument)
{
    assert(child->argument_count < CHILD_ARGUMENTS_MAX - 1);
    child->argv[child->argument_count++] = argument;
}

static void become(const struct child *child, int out, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1);
    dup2(out, STDOUT_FILENO);
    execv(child->argv[0], (char *const *)child->argv);
    dprintf(STDERR_FILENO, "sluice: cannot start %s: %s\n", child->argv[0], strerror(errno));
    _exit(127);
}

int child_start(struct child *child, int64_t now_ms, struct fail *fail)
{
    int pipe_fds[2];
    if (pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) < 0)
        return fail_set(fail, -errno, "no pipe for the %s: %s", child->title, strerror(errno));
    fcntl(pipe_fds[1], F_SETFL, 0); /* only our end does not block */
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0)
        become(child, pipe_fds[1], parent);
    int why = errno;
    close(pipe_fds[1]);
    if (pid < 0) {
        close(pipe_fds[0]);
        return fail_set(fail, -why, "cannot start the %s: %s", child->title, strerror(why));
    }
    child->pid = pid;
    child->out = pipe_fds[0];
    child->ready = false;
    child->line_len = 0;
    child->started_ms = now_ms;
    child->again_ms = 0;
    return 0;
}

static void take_line(struct child *child)
{
    child->line[child->line_len] = '\0';
    child->line_len = 0;
    const char *second = strchr(child->line, ' ');
    if (second && strncmp(second, " ready", 6) == 0 && (second[6] == ' ' || second[6] == '\0'))
        child->ready = true;
}

void child_listen(struct child *child)
{
    char bytes[512];
    ssize_t got;
    while ((got = read(child->out, bytes, sizeof(bytes))) > 0)
        for (ssize_t i = 0; i < got; i++) {
            if (bytes[i] == '\n')
                take_line(child);
            else if (child->line_len < sizeof(child->line) - 1)
                child->line[child->line_len++] = bytes[i];
        }
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        close(child->out);
        child->out = -1;
    }
}

void child_ended(struct child *child, int status, char *ret_words, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(ret_words, size, "was killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(ret_words, size, "ended with exit status %d", WEXITSTATUS(status));
    child->pid = 0;
    child->ready = false;
    if (child->out >= 0)
        close(child->out);
    child->out = -1;
}

void child_plan_restart(struct child *child, int64_t now_ms)
{
    bool was_steady = now_ms - child->started_ms >= STEADY_MS;
    if (was_steady || child->pause_ms == 0)
        child->pause_ms = PAUSE_FIRST_MS;
    else
        child->pause_ms = child->pause_ms * 2 < PAUSE_LAST_MS ? child->pause_ms * 2 : PAUSE_LAST_MS;
    child->again_ms = now_ms + child->pause_ms;
}

void child_signal(const struct child *child, int signal)
{
    if (child->pid > 0)
        kill(child->pid, signal);
}
