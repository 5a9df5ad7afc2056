/*
 * sluice-supervisor: a handler's parent, between it and the worker. It sees to it that nothing of a handler outlives
 * the handler, and no handler its worker, even one that is killed: whatever the handler starts stays below this process
 * (PR_SET_CHILD_SUBREAPER), which kills it all at the end.
 *
 *     sluice-supervisor /bin/sh -c COMMAND        with the handler's descriptors and environment
 *
 * SIGTERM is passed on; SIGUSR1, which comes also when the worker dies, kills at once. It ends as the handler did, by
 * its exit status, or with 128 + the signal. It needs no library but libc: its bytes are part of the worker.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { END_NOT_STARTED = 127, END_SIGNAL = 128, ROUNDS_MAX = 200, ROUND_MS = 10 };

static void run(char **argv, const sigset_t *old, pid_t parent)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(END_NOT_STARTED);
    sigprocmask(SIG_SETMASK, old, NULL);
    execv(argv[0], argv);
    _exit(END_NOT_STARTED);
}

/* Every child there is now, whether it was started here or left to this process. */
static void kill_children(void)
{
    char path[64];
    int child;
    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "re");
    while (file && fscanf(file, "%d", &child) == 1)
        kill(child, SIGKILL);
    if (file)
        fclose(file);
}

/* The children of those killed come to this process, and are killed in the next round. */
static void kill_all(pid_t handler)
{
    for (int round = 0; round < ROUNDS_MAX; round++) {
        if (handler > 0)
            kill(-handler, SIGKILL);
        kill_children();
        pid_t pid;
        while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
            ;
        if (pid < 0 && errno == ECHILD)
            return;
        nanosleep(&(struct timespec){.tv_nsec = ROUND_MS * 1000000L}, NULL);
    }
}

static int end_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : END_SIGNAL + WTERMSIG(status); }

/* Reaps what has ended; true, with *ret, once the handler has. */
static bool reap(pid_t handler, int *ret)
{
    int status;
    bool has_ended = false;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        if (pid == handler) {
            has_ended = true;
            *ret = end_of(status);
        }
    return has_ended;
}

static int supervise(pid_t handler, const sigset_t *awaited)
{
    int end = END_SIGNAL + SIGKILL;
    for (;;) {
        siginfo_t info;
        if (sigwaitinfo(awaited, &info) < 0)
            continue;
        if (info.si_signo == SIGUSR1)
            break;
        if (info.si_signo == SIGTERM)
            kill(-handler, SIGTERM);
        else if (reap(handler, &end))
            break;
    }
    kill_all(handler);
    return end;
}

/* The handler's descriptors are not for this process: the worker sees their end as soon as the handler's are closed. */
static void close_descriptors(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3; fd++)
        if (null < 0 || dup2(null, fd) < 0)
            close(fd);
    close_range(3, ~0U, 0);
}

int main(int argc, char **argv)
{
    sigset_t awaited, old;
    const pid_t worker = getppid();
    if (argc < 2)
        return END_NOT_STARTED;
    sigemptyset(&awaited);
    sigaddset(&awaited, SIGTERM);
    sigaddset(&awaited, SIGCHLD);
    sigaddset(&awaited, SIGUSR1);
    sigprocmask(SIG_BLOCK, &awaited, NULL);
    sigemptyset(&old);
    setsid();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, SIGUSR1);
    if (getppid() != worker || worker == 1)
        return END_NOT_STARTED;
    signal(SIGPIPE, SIG_DFL);
    pid_t self = getpid(), handler = fork();
    if (handler == 0)
        run(argv + 1, &old, self);
    if (handler < 0)
        return END_NOT_STARTED;
    setpgid(handler, handler);
    close_descriptors();
    return supervise(handler, &awaited);
}
