#include "client/cli/up/run.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/cli/connect.h"
#include "client/cli/up/registrar.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"

enum {
    START_MS = 30000,      /* for the broker, and then for all workers, to be ready */
    WORKERS_END_MS = 4000, /* beyond their grace */
    BROKER_END_MS = 10000,
    KILLED_END_MS = 2000
};

static struct child *broker_of(struct up *up) { return &up->children[0]; }

static bool is_broker(const struct up *up, const struct child *child) { return child == &up->children[0]; }

/* ---- one turn of the loop -------------------------------------------------------------------- */

/* A broker that would only end so again; its own words are on stderr. */
static bool is_hopeless(int status)
{
    return WIFEXITED(status) && (WEXITSTATUS(status) == EXITS_DISK_FULL || WEXITSTATUS(status) == EXITS_DAMAGED);
}

/* What to do about a child that ended by itself. */
static void take_end(struct up *up, struct child *child, int status, const char *words)
{
    if (is_broker(up, child) && is_hopeless(status)) {
        up->failed = WEXITSTATUS(status);
        cli_say("the broker %s, %s; it is not started again", words,
                up->failed == EXITS_DISK_FULL ? "its disk is full" : "its ledger is damaged");
    } else if (!is_broker(up, child) && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        cli_say("the %s was drained; it is not started again", child->title);
    } else {
        child_plan_restart(child, clock_ms());
        cli_say("the %s %s", child->title, words);
    }
}

static void bury(struct up *up, pid_t pid, int status)
{
    if (pid == up->registrar.pid)
        up->registrar = (struct registrar){.succeeded = WIFEXITED(status) && !WEXITSTATUS(status)};
    for (size_t i = 0; i < up->child_count; i++) {
        struct child *child = &up->children[i];
        char words[96];
        if (child->pid != pid)
            continue;
        child_ended(child, status, words, sizeof(words));
        if (!up->stopping)
            take_end(up, child, status, words);
    }
}

static void take_signals(struct up *up)
{
    struct signalfd_siginfo info;
    while (read(up->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        pid_t pid;
        int status;
        if (info.ssi_signo != SIGCHLD)
            up->stop_signals++;
        while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
            bury(up, pid, status);
    }
}

static void leave_parent(struct up *up)
{
    if (up->parent_fd >= 0)
        close(up->parent_fd);
    up->parent_fd = -1;
}

/* Waits for at most wait_ms, then takes what happened. */
static void turn(struct up *up, int64_t wait_ms)
{
    struct pollfd *fds = calloc(up->child_count + 2, sizeof(*fds));
    if (!fds) {
        take_signals(up);
        return;
    }
    for (size_t i = 0; i < up->child_count; i++)
        fds[i] = (struct pollfd){up->children[i].out, POLLIN, 0};
    fds[up->child_count] = (struct pollfd){up->signal_fd, POLLIN, 0};
    fds[up->child_count + 1] = (struct pollfd){up->parent_fd, POLLIN, 0};
    poll(fds, up->child_count + 2, wait_ms < 0 ? 0 : (int)wait_ms);
    for (size_t i = 0; i < up->child_count; i++)
        if (fds[i].revents && up->children[i].out >= 0)
            child_listen(&up->children[i]);
    take_signals(up);
    if (fds[up->child_count + 1].revents) {
        up->stop_signals++;
        leave_parent(up);
    }
    free(fds);
}

static size_t count_running(const struct up *up, bool with_broker)
{
    size_t running = 0;
    for (size_t i = with_broker ? 0 : 1; i < up->child_count; i++)
        running += up->children[i].pid > 0;
    return running;
}

/* ---- starting ---------------------------------------------------------------------------------- */

/* Children [first, end) are all ready; false when one died, time ran out or it was told to stop. */
static bool await_ready(struct up *up, size_t first, size_t end)
{
    int64_t deadline_ms = clock_ms() + START_MS;
    for (;;) {
        size_t ready = 0;
        for (size_t i = first; i < end; i++)
            ready += up->children[i].ready;
        for (size_t i = 0; i < end; i++)
            if (!up->children[i].pid)
                return false;
        if (ready == end - first || up->stop_signals)
            return !up->stop_signals;
        if (clock_ms() >= deadline_ms) {
            cli_say("not everything was ready within %d s", START_MS / 1000);
            return false;
        }
        turn(up, deadline_ms - clock_ms());
    }
}

static bool start_children(struct up *up, size_t first, size_t end)
{
    struct fail fail;
    for (size_t i = first; i < end; i++)
        if (child_start(&up->children[i], clock_ms(), &fail)) {
            cli_say("%s", fail.text);
            return false;
        }
    return await_ready(up, first, end);
}

/*
 * By a process of its own, for who is asked may be silent: Ctrl-C ends that at once. False when it
 * could not, or was told to stop.
 */
static bool register_engines(struct up *up)
{
    const struct up_options *options = up->options;
    if (!options->engines.count && !options->judges.count && !options->teachers.count)
        return true;
    int64_t deadline_ms = clock_ms() + START_MS;
    struct fail fail;
    if (registrar_start(&up->registrar, up, &fail)) {
        cli_say("%s", fail.text);
        return false;
    }
    while (up->registrar.pid && !up->stop_signals && !up->failed && clock_ms() < deadline_ms)
        turn(up, deadline_ms - clock_ms());
    return registrar_end(&up->registrar);
}

static bool write_ready_file(const struct up *up)
{
    const char *path = up->options->ready_file;
    if (!path)
        return true;
    AUTO_FCLOSE FILE *file = fopen(path, "w");
    if (file && fprintf(file, "%s\n", up->url) > 0 && fclose(take_ptr(&file)) == 0)
        return true;
    cli_say("cannot write %s: %s", path, strerror(errno));
    return false;
}

static bool start(struct up *up)
{
    if (!start_children(up, 0, 1) || !register_engines(up) || !start_children(up, 1, up->child_count) ||
        !write_ready_file(up))
        return false;
    printf("up front=%s data=%s workers=%zu", up->url, up->options->data, up->worker_count);
    printf(up->options->gateway ? " gateway=%s\n" : "\n", up->options->gateway);
    fflush(stdout);
    return true;
}

/* ---- running and stopping ------------------------------------------------------------------------ */

/* Starts again what is due; returns how long until the next is. */
static int64_t restart_due(struct up *up, int64_t now_ms)
{
    int64_t wait_ms = 60000;
    for (size_t i = 0; i < up->child_count; i++) {
        struct child *child = &up->children[i];
        struct fail fail;
        if (!child->again_ms)
            continue;
        if (child->again_ms <= now_ms) {
            if (child_start(child, now_ms, &fail)) {
                cli_say("%s", fail.text);
                child_plan_restart(child, now_ms);
            } else {
                cli_say("started the %s again", child->title);
            }
        }
        if (child->again_ms && child->again_ms - now_ms < wait_ms)
            wait_ms = child->again_ms - now_ms;
    }
    return wait_ms;
}

static void signal_running(struct up *up, int signal, bool broker)
{
    for (size_t i = 0; i < up->child_count; i++)
        if (is_broker(up, &up->children[i]) == broker)
            child_signal(&up->children[i], signal);
}

/* SIGTERM, then SIGKILL when it takes too long or the user insists. */
static void stop_these(struct up *up, bool broker, int64_t patience_ms, unsigned patience_signals)
{
    int64_t kill_ms = clock_ms() + patience_ms, give_up_ms = kill_ms + KILLED_END_MS;
    bool killed = false;
    signal_running(up, SIGTERM, broker);
    while (broker ? broker_of(up)->pid > 0 : count_running(up, false) > 0) {
        int64_t now_ms = clock_ms();
        if (!killed && (now_ms >= kill_ms || up->stop_signals > patience_signals)) {
            signal_running(up, SIGKILL, broker);
            killed = true;
        }
        if (now_ms >= give_up_ms)
            return;
        turn(up, 100);
    }
}

static void stop(struct up *up)
{
    unsigned patience = up->stop_signals > 1 ? up->stop_signals : 1;
    up->stopping = true;
    stop_these(up, false, (int64_t)up->options->grace_ms + WORKERS_END_MS, patience);
    stop_these(up, true, BROKER_END_MS, patience);
    if (count_running(up, true))
        cli_say("some processes did not end");
}

static bool take_over_signals(struct up *up)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    up->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (up->signal_fd < 0)
        cli_say("no signalfd: %s", strerror(errno));
    return up->signal_fd >= 0;
}

/* The whole process's end: that of the thread which started us, as a parent-death signal has it, is none. */
static void follow_parent(struct up *up)
{
    up->parent_fd = (int)syscall(SYS_pidfd_open, getppid(), 0);
    if (up->parent_fd < 0) /* Linux before 5.3 */
        prctl(PR_SET_PDEATHSIG, SIGTERM);
}

int up_run(struct up *up)
{
    if (!take_over_signals(up))
        return EXITS_FAILED;
    if (up->options->with_parent)
        follow_parent(up);
    bool started = start(up);
    while (started && !up->stop_signals && !up->failed)
        turn(up, restart_due(up, clock_ms()));
    bool told = up->stop_signals > 0;
    if (told || (started && up->failed))
        cli_say("stopping");
    else
        cli_say("could not start everything; stopping");
    stop(up);
    close(up->signal_fd);
    leave_parent(up);
    if (up->failed)
        return up->failed;
    return told ? EXITS_OK : EXITS_FAILED;
}
