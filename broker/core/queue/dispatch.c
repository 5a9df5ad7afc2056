/*
 * Who gets what. What is next in a stage (core/queue/fair_queue.h) goes to the worker with the
 * most free slots, of those that offer what it needs if it needs something of handlers; where there is none, it makes
 * room for what comes after it, until one of those has a slot again. A suspect runs alone: on an idle worker, or on one
 * that is kept from new work until it is idle, one a stage at a time.
 */
#include "broker/core/queue/dispatch.h"
#include "broker/core/engines/breaker.h"
#include "broker/core/engines/engines.h"
#include "broker/core/engines/placing.h"
#include "broker/core/needs/needs.h"
#include "broker/core/queue/blocked.h"
#include "broker/core/queue/fair_queue.h"
#include "broker/core/queue/fencing_tokens.h"
#include "broker/core/queue/free_workers.h"
#include "broker/core/queue/history.h"
#include "broker/core/queue/jobs.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"
#include "broker/core/watches/watches.h"

static void emit_job(struct core *core, const struct job *job)
{
    const struct group *group = job->group;
    struct rollout *rollout = job_rollout((struct job *)job);
    struct slice name = job_name(core, job);
    struct slice worker = effect_copy(core, worker_id(job->course->worker));
    struct slice engine = effect_copy(core, engine_url(job_engine(job)));
    struct slice of_group = effect_copy(core, group_id(group));
    struct slice stream = effect_copy(core, stream_name(group->stream));
    size_t prefix = strlen(stage_wire(job->stage)) + 1;
    struct effect *send = effect_push(core, LANE_JOB);
    send->worker = worker;
    send->job = name;
    send->stage = job->stage;
    send->group = of_group;
    send->stream = stream;
    if (rollout && name.len > prefix)
        send->rollout = slice_of(name.data + prefix, name.len - prefix);
    send->sample = rollout ? job->sample : 0;
    send->token = job->course->token;
    send->attempt = job->course->attempt;
    send->engine = engine;
    send->reads_record = job->stage == STAGE_EVAL && group->work->reads_record;
    send->shares_tasks = job->course->worker->shares_tasks;
}

/* False when out of memory. */
static bool hand_out(struct core *core, struct job *job, struct worker *worker)
{
    struct job_course *course = job_course_open(core, job);
    if (!course)
        return false;
    if (job_needs_engine(job))
        job_set_engine(core, job, placing_choose(core, job));
    if (course->attempt < ATTEMPTS_MAX)
        course->attempt++;
    core->counters.dispatched++;
    core->dispatches++;
    job_lease(core, job, worker, fencing_token_newest(core));
    fencing_token_issue(core, job);
    emit_job(core, job);
    watch_tell(core, job, false);
    return true;
}

static struct job *first_job(struct core *core, enum place place, enum stage stage)
{
    struct queue *queue = &core->queues[place][stage];
    if (place == PLACE_QUEUED)
        return fair_queue_next(core, stage);
    return queue->count ? container_of(queue->jobs.next, struct job, link) : NULL;
}

/* Whether the job may be handed out as far as engines and images go. */
static bool job_may_start(const struct core *core, const struct job *job)
{
    const struct image *image = job->group->work->image;
    if (job->stage == STAGE_INIT)
        return !image || breaker_lets(core, &image->breaker);
    return !job_needs_engine(job) || engine_is_ready(core, job_policy(job));
}

/* The worker with the fewest jobs that could run one alone, once it is idle. */
static struct worker *least_busy(const struct core *core, enum stage stage, const struct need *need)
{
    struct worker *worker, *best = NULL;
    LIST_EACH(worker, &core->workers, link)
        if (worker->stage == stage && !worker_is_out(worker) && !worker->isolated && need_is_met(need, worker) &&
            (!best || worker->jobs.count < best->jobs.count))
            best = worker;
    return best;
}

/* Whether no worker that offers what it needs has a slot; or, for one that is to run alone, could be kept for it. */
static bool is_unoffered(const struct core *core, const struct job *job)
{
    const struct need *need = job_need(core, job);
    if (!need)
        return false;
    return job->place == PLACE_ISOLATED ? !least_busy(core, (enum stage)job->stage, need)
                                        : !need_free_slots(core, need);
}

/*
 * The first job of a place that can run; those that lack an engine or an image are blocked. While
 * every engine is full the runs wait as they are, so that turns and priorities stay what they are; where only those
 * of the job's policy are, it makes room for the jobs of others. So it does among evaluations, most of which need no
 * engine.
 */
static struct job *next_startable(struct core *core, enum place place, enum stage stage)
{
    struct job *job;
    while ((job = first_job(core, place, stage))) {
        if (job_may_start(core, job)) {
            if (is_unoffered(core, job)) {
                job_keep_back(core, job);
                continue;
            }
            struct policy *policy = job_policy(job);
            if (!policy || placing_has_room(core, policy))
                return job;
            if (stage == STAGE_RUN && !placing_has_room(core, NULL))
                return NULL;
            policy->is_waited = true;
        }
        job_block(core, job);
    }
    return NULL;
}

/* ---- suspects ---------------------------------------------------------------------- */

static void reserve(struct core *core, enum stage stage, struct worker *worker)
{
    struct worker *old = core->reserved[stage];
    core->reserved[stage] = worker;
    if (old)
        worker_refresh(core, old);
    if (worker)
        worker_refresh(core, worker);
}

static void dispatch_isolated(struct core *core, enum stage stage)
{
    struct job *job;
    struct worker *kept = core->reserved[stage];
    if (kept && worker_is_out(kept))
        reserve(core, stage, NULL);
    while ((job = next_startable(core, PLACE_ISOLATED, stage))) {
        const struct need *need = job_need(core, job);
        struct worker *worker = core->reserved[stage];
        const bool is_kept = worker && need_is_met(need, worker);
        if (!is_kept || worker->jobs.count)
            worker = least_busy(core, stage, need);
        if (!worker)
            return;
        if (worker->jobs.count) {
            if (!is_kept)
                reserve(core, stage, worker);
            return;
        }
        if (core->reserved[stage] == worker)
            reserve(core, stage, NULL);
        if (!hand_out(core, job, worker))
            return;
    }
    if (core->reserved[stage])
        reserve(core, stage, NULL);
}

/* ---- everything else --------------------------------------------------------------- */

/* `freest` is that of all workers. What failed by a handler goes to another worker's, if there is one. */
static struct worker *worker_for(const struct core *core, const struct job *job, struct worker *freest)
{
    const struct need *need = job_need(core, job);
    if (!need)
        return freest;
    return need_worker(core, need, job_failures(job)->by_handler ? fencing_token_worker(job) : slice_of(NULL, 0));
}

static void dispatch_queue(struct core *core, enum stage stage)
{
    struct heap_node *freest;
    struct job *job;
    while ((freest = heap_peek(&core->free[stage])) && (job = next_startable(core, PLACE_QUEUED, stage))) {
        struct worker *worker = worker_for(core, job, container_of(freest, struct worker, free));
        if (!worker || !hand_out(core, job, worker)) /* memory is out */
            return;
    }
}

void dispatch(struct core *core)
{
    for (enum stage stage = STAGE_INIT; stage < STAGE_COUNT && !core->failed; stage++) {
        blocked_release_needs(core, stage);
        dispatch_isolated(core, stage);
        do
            dispatch_queue(core, stage);
        while (blocked_release_needs(core, stage)); /* slots that who was let go did not take */
    }
}
