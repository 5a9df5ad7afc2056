#include "workers/service/leave.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/text.h"
#include "workers/engines/engines.h"
#include "workers/handlers/handlers.h"
#include "common/loop/loop_now.h"
#include "workers/sandbox/spawner_start.h"
#include "workers/service/cancel.h"

enum {
    LEAVE_MS = 5000,       /* for cancelled jobs to clean up, and for the last acknowledgements */
    LEAVE_AT_ONCE_MS = 500 /* after a second signal */
};

void worker_stop_when_idle(struct worker *worker)
{
    if (worker->state != WORKER_WORKING && worker->running.live_count == 0 && worker->running.leaving_count == 0 &&
        worker->outbox.count == 0) {
        engines_stop_probes(worker->context.engines); /* the last of them comes here again */
        handlers_stop(worker->context.handlers);      /* so does the last of these */
        if (!engines_are_probing(worker->context.engines) && handlers_are_over(worker->context.handlers))
            loop_stop(worker->context.loop);
    }
}

/* ---- leaving ---------------------------------------------------------------------------- */

static void leave_overdue(void *arg)
{
    struct worker *worker = arg;
    worker->leave_timer = NULL;
    log_event(LOG_WARN, "worker.left-behind", "jobs=%zu unacknowledged=%zu action=given-back",
              worker->running.leaving_count, worker->outbox.count);
    loop_stop(worker->context.loop);
}

static void give_back(struct worker *worker, struct running_job *job)
{
    worker_end_job(worker, job,
                   &(struct job_result){.outcome = OUTCOME_CANCELLED, .detail = "given back by its worker"});
}

static void leave(struct worker *worker, int64_t bound_ms)
{
    log_event(LOG_INFO, "worker.leaving", "running=%zu unacknowledged=%zu action=given-back",
              worker->running.live_count, worker->outbox.count);
    worker->state = WORKER_LEAVING;
    worker->beat_wanted = true;
    while (!TAILQ_EMPTY(&worker->running.live))
        give_back(worker, TAILQ_FIRST(&worker->running.live));
    loop_cancel(worker->context.loop, &worker->leave_timer);
    worker->leave_timer = loop_after(worker->context.loop, bound_ms, leave_overdue, worker);
    if (!worker->leave_timer)
        loop_stop(worker->context.loop);
    worker_stop_when_idle(worker);
}

/* ---- draining --------------------------------------------------------------------------- */

static void grace_over(void *arg)
{
    struct worker *worker = arg;
    worker->leave_timer = NULL;
    leave(worker, LEAVE_MS);
}

void worker_drain(struct worker *worker, int64_t grace_ms, const char *why)
{
    int64_t leave_at_ms = loop_now_ms() + grace_ms;
    if (worker->end == WORKER_TO_BEGIN_ANEW)
        worker->end = WORKER_STOPPED; /* that was before it was told to end */
    if (worker->state == WORKER_LEAVING || (worker->state == WORKER_DRAINING && worker->leave_at_ms <= leave_at_ms))
        return;
    log_event(LOG_INFO, "worker.draining", "running=%zu unacknowledged=%zu grace_s=%lld why=\"%s\"",
              worker->running.live_count, worker->outbox.count, (long long)grace_ms / 1000, why);
    worker->state = WORKER_DRAINING;
    worker->beat_wanted = true;
    worker->leave_at_ms = leave_at_ms;
    loop_cancel(worker->context.loop, &worker->leave_timer);
    worker->leave_timer = loop_after(worker->context.loop, grace_ms, grace_over, worker);
    if (!worker->leave_timer)
        leave(worker, LEAVE_MS);
    worker_stop_when_idle(worker);
}

/* ---- signals ---------------------------------------------------------------------------- */

/* Without the spawner every job would fail here, and fast; other children come and go. */
static void child_ended(struct worker *worker)
{
    pid_t pid = spawner_pid(worker->context.spawner);
    siginfo_t child = {0};
    if (waitid(P_PID, (id_t)pid, &child, WEXITED | WNOHANG | WNOWAIT) < 0 || child.si_pid == 0 ||
        worker->end == WORKER_BROKEN)
        return;
    log_event(LOG_ERROR, "spawner.died", "pid=%d action=leaving", (int)pid);
    worker->end = WORKER_BROKEN;
    leave(worker, LEAVE_MS);
}

/* ---- the cache ---------------------------------------------------------------------------- */

void worker_watch_cache(struct worker *worker)
{
    struct fail fail;
    if (worker->end != WORKER_STOPPED || worker->state == WORKER_LEAVING ||
        cache_watch_look(&worker->cache_watch, &fail) == 0)
        return;
    struct slice fits = text_cut(fail.text, sizeof(worker->node_error) - 1);
    snprintf(worker->node_error, sizeof(worker->node_error), "%.*s", SLICE_ARG(fits));
    text_sanitize(worker->node_error);
    worker->node_error_until_ms = INT64_MAX;
    const bool is_ending = worker->state != WORKER_WORKING;
    worker->end = is_ending ? WORKER_STOPPED : WORKER_TO_BEGIN_ANEW;
    log_event(LOG_ERROR, "cache.gone", "why=\"%s\" action=%s", worker->node_error,
              is_ending ? "leaving" : "begins-anew");
    leave(worker, LEAVE_MS);
}

static void signal_came(void *arg, uint32_t events)
{
    (void)events;
    struct worker *worker = arg;
    struct signalfd_siginfo info;
    if (read(worker->signals, &info, sizeof(info)) != sizeof(info))
        return;
    if (info.ssi_signo == SIGCHLD)
        child_ended(worker);
    else if (++worker->signals_seen == 1)
        worker_drain(worker, (int64_t)worker->plan.given.grace_ms, "a signal");
    else
        leave(worker, LEAVE_AT_ONCE_MS);
}

int worker_take_signals(struct worker *worker, struct fail *fail)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGCHLD);
    signal(SIGPIPE, SIG_IGN);
    sigprocmask(SIG_BLOCK, &set, NULL);
    worker->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (worker->signals < 0)
        return fail_set(fail, -errno, "no signalfd: %s", strerror(errno));
    worker->watches[2] = loop_watch(worker->context.loop, worker->signals, EPOLLIN, signal_came, worker);
    return worker->watches[2] ? 0 : fail_memory(fail);
}
