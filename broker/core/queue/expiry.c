/*
 * When a group ends though nothing ended it: its total time is over, or its trainer's
 * lease. Each live group is in core->expiries by what it saw of both when it was put
 * there; a lease that was renewed since puts it off when its turn comes.
 */
#include "broker/core/queue/expiry.h"
#include "broker/core/queue/failures.h"
#include "broker/core/queue/groups.h"
#include "broker/core/queue/history.h"
#include "broker/core/queue/jobs.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"

enum { TOTAL_DEFAULT_MS = 604800000 };

static int64_t lease_ends_ms(const struct group *group)
{
    const struct group_work *work = group->work;
    return work->lease_ms ? group->stream->renewed_ms + work->lease_ms : INT64_MAX;
}

static int64_t ends_ms(const struct group *group)
{
    int64_t lease_ms = lease_ends_ms(group), total_ms = group->work->ends_ms;
    return lease_ms < total_ms ? lease_ms : total_ms;
}

static void put(struct core *core, struct group *group)
{
    if (!heap_put(&core->expiries, &group->work->expiry, ends_ms(group)))
        core->failed = true;
}

void expiry_arm(struct core *core, struct group *group, int64_t total_ms, int64_t age_ms)
{
    int64_t whole_ms = core_ms((uint64_t)(total_ms > 0 ? total_ms : TOTAL_DEFAULT_MS));
    int64_t left_ms = age_ms < whole_ms ? whole_ms - age_ms : 0;
    group->work->total_ms = (uint32_t)whole_ms;
    group->work->ends_ms = core->now_ms + left_ms;
    put(core, group);
}

/* ---- ends -------------------------------------------------------------------------- */

/* Where the job is, for a sentence that begins "it was". */
static const char *whereabouts(const struct job *job)
{
    switch ((enum place)job->place) {
    case PLACE_ORPHAN: return "awaited from a worker that had it before the broker's start";
    case PLACE_QUEUED: return "queued";
    case PLACE_ISOLATED: return "queued to run alone on an idle worker";
    case PLACE_BLOCKED:
        return job->stage == STAGE_INIT ? "kept back until its image works again" : "waiting for an engine";
    case PLACE_HELD: return "held by its sampler";
    case PLACE_UNOFFERED: return "waiting for a worker that offers what it needs";
    case PLACE_DELAYED: return "waiting to be tried again";
    case PLACE_LEASED: return "being worked on";
    default: return "not begun";
    }
}

static void expire_rollout(struct core *core, struct rollout *rollout)
{
    struct group_work *work = rollout->job.group->work;
    const struct job *job = rollout_job(work, rollout->job.sample);
    struct slice worker = job->course->worker ? worker_id(job->course->worker) : slice_of(NULL, 0);
    struct slice words = effect_print(core, "its total time of %lld s was over: its %s job was %s%s%.*s for %lld s",
                                      (long long)work->total_ms / 1000, stage_wire(job->stage), whereabouts(job),
                                      worker.len ? " by " : "", SLICE_ARG(worker),
                                      (long long)(core->now_ms - job->since_ms) / 1000);
    core->counters.overtime++;
    rollout_end(core, rollout, &(struct ending){.outcome = OUTCOME_INFRA, .detail = failure_summary(core, job, words)});
}

static void expire(struct core *core, struct group *group)
{
    if (!group_unfold(core, group))
        return;
    for (uint32_t k = 0; group->work && k < group->samples; k++)
        if (!group->work->rollouts[k].ended)
            expire_rollout(core, &group->work->rollouts[k]);
}

static void abandon(struct core *core, struct group *group)
{
    struct slice words = effect_print(core, "its trainer was not heard from for %lld s (lease_ms)",
                                      (long long)group->work->lease_ms / 1000);
    core->counters.abandoned += group->work->live;
    group_end(core, group, &(struct ending){.outcome = OUTCOME_CANCELLED, .detail = words});
}

void expiries_tick(struct core *core)
{
    struct heap_node *first;
    uint64_t ended = 0;
    while (ended < SWEEP_SLICE && !core->failed && (first = heap_peek(&core->expiries)) && first->key <= core->now_ms) {
        struct group *group = container_of(first, struct group_work, expiry)->init.group;
        uint64_t live = group->work->live;
        if (group->work->init.place == PLACE_HELD) /* its total time begins with its release */
            group->work->ends_ms = core->now_ms + (int64_t)group->work->total_ms;
        if (group->work->ends_ms <= core->now_ms)
            expire(core, group);
        else if (lease_ends_ms(group) <= core->now_ms)
            abandon(core, group);
        else
            put(core, group);
        ended += group->work ? 1 : live;
    }
}

/* ---- jobs: their deadlines and back-offs ----------------------------------------------- */

static void overdue(struct core *core, struct job *job)
{
    int64_t limit_ms = job->group->work->limit_ms[job->stage];
    int64_t grace_ms = core->settings.deadline_grace_ms;
    struct slice detail = effect_print(core,
                                       "no result within %lld s of being handed out (its limit and %lld s of grace)",
                                       (long long)(limit_ms + grace_ms) / 1000, (long long)grace_ms / 1000);
    struct failure failure = {
        .outcome = OUTCOME_INFRA, .worker = effect_copy(core, worker_id(job->course->worker)), .detail = detail};
    core->counters.overdue++;
    job_withdraw(core, job);
    job_fail(core, job, &failure);
}

void jobs_tick(struct core *core)
{
    struct heap_node *first;
    while ((first = heap_peek(&core->timers)) && first->key <= core->now_ms) {
        struct job *job = container_of(first, struct job, timer);
        if (job->place == PLACE_LEASED)
            overdue(core, job);
        else
            job_queue(core, job, true);
    }
}
