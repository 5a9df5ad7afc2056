/* The ends of a sandbox's processes: heard of, and brought about. */
#include "workers/sandbox/init/init_ends.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "workers/sandbox/init/init_answer.h"
#include "workers/sandbox/proto/usage.h"
#include "workers/sandbox/init/init_inside.h"
#include "workers/sandbox/init/proc.h"

/* KILL_PASSES: in which processes appear; those that were killed may take KILL_WAIT_MS to end. */
enum { KILL_PASSES = 64, KILL_PAUSE_US = 500, KILL_WAIT_MS = 10000 };

/* ---- what they use ------------------------------------------------------------------ */

/* What has ended, and what it left on the disk. */
static void see_usage(const struct init *init)
{
    struct rusage ended;
    struct usage *usage = init->plan.usage;
    if (getrusage(RUSAGE_CHILDREN, &ended) == 0) {
        atomic_store(&usage->cpu_us, (uint64_t)(ended.ru_utime.tv_sec + ended.ru_stime.tv_sec) * 1000000 +
                                         (uint64_t)(ended.ru_utime.tv_usec + ended.ru_stime.tv_usec));
        usage_peak(&usage->memory_kib, (uint64_t)ended.ru_maxrss);
    }
    usage_see_disk(usage, init->container.disk);
}

/* ---- beginnings ----------------------------------------------------------------------- */

/* Tells what became of one under way, once that is known. False: it came to nothing and is dropped. */
static bool settle(struct init *init, struct pending_exec *start)
{
    struct fail fail = {0};
    int code = start->report < 0 ? 0 : execs_look(start, &fail);
    if (code == 0)
        return true;
    struct wire_head head = {WIRE_DONE, start->id, {code < 0 ? code : 0, start->pid}};
    if (code < 0)
        execs_drop(&init->execs, start);
    init_tell(init, &head, fail.text, NULL, 0);
    return code > 0;
}

void init_settle(struct init *init)
{
    for (size_t i = init->execs.count; i-- > 0;)
        settle(init, &init->execs.each[i]);
}

/* ---- ends --------------------------------------------------------------------------- */

/* Never before the worker knows who that is. */
static void report_end(struct init *init, pid_t pid, int status)
{
    int said = WIFSIGNALED(status) ? 256 + WTERMSIG(status) : WEXITSTATUS(status);
    struct pending_exec *start = execs_find(&init->execs, pid);
    if (!start || !settle(init, start))
        return;
    struct wire_head head = {WIRE_EXITED, start->id, {said}};
    execs_drop(&init->execs, start);
    init_tell(init, &head, "", NULL, 0);
}

static void reap(struct init *init, int flags)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, flags)) > 0) {
        see_usage(init);
        report_end(init, pid, status);
    }
}

void init_reap(struct init *init) { reap(init, WNOHANG); }

struct pass {
    pid_t pids[PROC_SEEN_MAX];
    size_t count;
};

/* One signal to every living process but ours and the spared. */
static void kill_once(const struct init *init, const struct proc_spared *spared, struct pass *pass)
{
    pass->count = proc_others(init->container.proc, init->pid, spared, pass->pids, PROC_SEEN_MAX);
    for (size_t i = 0; i < pass->count; i++)
        kill(pass->pids[i], SIGKILL);
}

/* Whether there are any that had no signal in the pass before; /proc lists them in order. */
static bool has_news(const struct pass *pass, const struct pass *before)
{
    size_t b = 0;
    for (size_t i = 0; i < pass->count; i++) {
        while (b < before->count && before->pids[b] < pass->pids[i])
            b++;
        if (b == before->count || before->pids[b] != pass->pids[i])
            return true;
    }
    return false;
}

static void pause_briefly(void) { nanosleep(&(struct timespec){0, KILL_PAUSE_US * 1000}, NULL); }

static bool has_children(void)
{
    siginfo_t ignored;
    return waitid(P_ALL, 0, &ignored, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* As the first of a pid namespace we are asked for all at once; elsewhere -1 would be all of the user's. */
static void kill_all(struct init *init)
{
    if (init->pid == 1) {
        kill(-1, SIGKILL);
        reap(init, 0);
    }
    while (has_children()) {
        proc_signal_tree(init->container.proc, init->pid, init->pid, SIGKILL);
        init_reap(init);
        pause_briefly();
    }
}

bool init_kill_but(struct init *init, const struct proc_spared *spared)
{
    static struct pass passes[2];
    const int64_t until_ms = clock_ms() + KILL_WAIT_MS;
    int with_news = 0;
    passes[1].count = 0;
    for (int turn = 0; with_news < KILL_PASSES && clock_ms() < until_ms; turn = !turn) {
        kill_once(init, spared, &passes[turn]);
        init_reap(init);
        if (passes[turn].count == 0)
            return true;
        with_news += has_news(&passes[turn], &passes[!turn]);
        pause_briefly();
    }
    return false;
}

bool init_kill_others(struct init *init, pid_t spared)
{
    if (spared != 0)
        return init_kill_but(init, &(struct proc_spared){.alone = spared});
    kill_all(init);
    return true;
}

void init_end(struct init *init)
{
    cleanup_close(&init->control);
    init->control = -1; /* their ends are no news any more */
    if (init->pid != 1) /* or the kernel does it */
        kill_all(init);
    _exit(0);
}
