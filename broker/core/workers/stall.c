/*
 * When the broker itself stood still (stopped, swapped out, a disk that hung), nobody else
 * is to blame for what was not heard meanwhile: it waits in the sockets. Workers, their
 * jobs' deadlines and trainers' leases get that time back. Total times go on: they are
 * what a trainer was promised.
 */
#include "broker/core/workers/stall.h"
#include "broker/core/state/state.h"

static int64_t later(const struct core *core, int64_t then_ms, int64_t stalled_ms)
{
    return then_ms + stalled_ms < core->now_ms ? then_ms + stalled_ms : core->now_ms;
}

static void spare_jobs(struct core *core, struct worker *worker, int64_t held_up_ms)
{
    struct job *job;
    LIST_EACH(job, &worker->jobs.jobs, link)
        job->since_ms = later(core, job->since_ms, held_up_ms);
}

static void give_worker(struct core *core, struct worker *worker, int64_t stalled_ms)
{
    worker->beat_ms = later(core, worker->beat_ms, stalled_ms);
    worker->progress_ms = later(core, worker->progress_ms, stalled_ms);
    spare_jobs(core, worker, stalled_ms);
}

void stall_spare_jobs(struct core *core, int64_t held_up_ms)
{
    struct worker *worker;
    LIST_EACH(worker, &core->workers, link)
        spare_jobs(core, worker, held_up_ms);
}

void stall_give_back(struct core *core, int64_t stalled_ms)
{
    struct worker *worker;
    struct stream *stream;
    LIST_EACH(worker, &core->workers, link)
        give_worker(core, worker, stalled_ms);
    LIST_EACH(stream, &core->streams, link)
        stream->renewed_ms = later(core, stream->renewed_ms, stalled_ms);
    heap_shift(&core->timers, stalled_ms);
    int64_t adopt_most_ms = core->now_ms + core->settings.adopt_grace_ms;
    core->adopt_until_ms += stalled_ms;
    if (core->adopt_until_ms > adopt_most_ms) /* its grace may have begun just now */
        core->adopt_until_ms = adopt_most_ms;
}
