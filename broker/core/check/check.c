/*
 * The invariants. Two passes that must agree: from the groups (what each job says
 * of itself) and from the queues (who is really there). Slow, and only for tests.
 */
#include "broker/core/check/check_fair_queues.h"
#include "broker/core/check/check_faults.h"
#include "broker/core/check/check_needs.h"
#include "broker/core/check/check_samplers.h"
#include "broker/core/core.h"
#include "broker/core/engines/probes.h"
#include "broker/core/engines/load_sums.h"
#include "broker/core/engines/policies.h"
#include "broker/core/engines/versions.h"
#include "broker/core/queue/fencing_tokens.h"
#include "broker/core/queue/free_workers.h"
#include "broker/core/queue/history.h"
#include "broker/core/state/state.h"

struct census {
    size_t jobs[PLACE_COUNT][STAGE_COUNT]; /* as the groups say */
    uint64_t live, live_by_init[PLACE_COUNT];
    size_t timers;
};

typedef const char *verdict; /* NULL, or what is broken */

/* ---- from the groups --------------------------------------------------------------- */

static verdict check_job(const struct core *core, const struct job *job, struct census *census)
{
    census->jobs[job->place][job->stage]++;
    bool leased = job->place == PLACE_LEASED, timed = leased || job->place == PLACE_DELAYED;
    census->timers += timed;
    if (leased != (job->course->worker != NULL))
        return "a job is leased without a worker, or has one without being leased";
    if (timed != (job->timer.place != 0))
        return "a lease or a delay without a timer, or a timer without";
    if (leased && (!job->course->token || !job->course->attempt))
        return "a lease without a token or an attempt";
    if (leased &&
        !fencing_token_find(job, job->course->token, worker_key(job->course->worker), worker_id(job->course->worker)))
        return "a lease was not issued to the worker that has it";
    if (job->place == PLACE_NONE && job->course->tokens)
        return "a stage is over, or has not begun, and dispatches may speak for it";
    if (job->place == PLACE_BLOCKED && !job_needs_engine(job) && (job->stage != STAGE_INIT || !job->group->work->image))
        return "a job is blocked that needs neither an engine nor an image";
    if (job->place == PLACE_UNOFFERED && !job_need(core, job))
        return "a job waits for a worker that offers what it needs, and it needs nothing";
    if (job->place == PLACE_ISOLATED && job_failures(job)->deaths < 2)
        return "a job waits to run alone that is no suspect";
    return NULL;
}

static verdict check_rollout(const struct core *core, const struct group *group, uint32_t k, struct census *census)
{
    const struct rollout *rollout = &group->work->rollouts[k];
    const struct job *job = &rollout->job;
    if (job->group != group || job->sample != k || job->stage == STAGE_INIT)
        return "a rollout's job is not its own";
    if (rollout->ended && job->place != PLACE_NONE)
        return "a rollout has ended and still has a job somewhere";
    const struct judging *judging = group->work->judging;
    if (rollout->ended && (rollout->seq > group->stream->head || rollout->engine || (judging && judging->engines[k])))
        return "an ended rollout has a number beyond its stream's head, or an engine";
    if (!rollout->ended && rollout->seq)
        return "a rollout has a number and has not ended";
    if (!rollout->ended && (job->place == PLACE_NONE) == group->work->init_done)
        return "a rollout is in no place after its init, or in one before";
    return check_job(core, job, census);
}

static verdict check_work(const struct core *core, const struct group *group, struct census *census)
{
    const struct group_work *work = group->work;
    uint32_t live = 0;
    if ((work->init.place == PLACE_NONE) != work->init_done)
        return "a live group's init is in no place, or is done and still in one";
    if (work->init_done && !work->rollouts)
        return "a group is folded whose init is done";
    if (!work->rollouts)
        live = group->samples;
    for (uint32_t k = 0; work->rollouts && k < group->samples; k++) {
        live += !work->rollouts[k].ended;
        verdict bad = check_rollout(core, group, k, census);
        if (bad)
            return bad;
    }
    if (live != work->live || live == 0)
        return "a live group's count of rollouts is wrong";
    census->live += live;
    census->live_by_init[work->init.place] += live;
    return check_job(core, &work->init, census);
}

static verdict check_ended_group(const struct group *group)
{
    if (!group->seqs)
        return list_is_empty(&group->forgotten) ? "a group without numbers is not among the forgotten" : NULL;
    if (!group->ended.place)
        return "an ended group is not in its stream's heap";
    for (uint32_t k = 0; k < group->samples; k++)
        if (group->seqs[k] > group->stream->head)
            return "an ended rollout has a number beyond its stream's head";
    return (uint64_t)group->ended.key < group->stream->first ? "a group is kept that was acknowledged" : NULL;
}

static verdict check_groups(const struct core *core, struct census *census)
{
    size_t at = 0;
    for (const struct group *group; (group = table_next(&core->groups, &at));) {
        verdict bad = group->work ? check_work(core, group, census) : check_ended_group(group);
        if (bad)
            return bad;
    }
    if (census->live != core->usage[QUOTA_ROLLOUTS].used)
        return "the count of live rollouts is wrong";
    if (memcmp(census->live_by_init, core->live_by_init, sizeof(census->live_by_init)) != 0)
        return "rollouts are counted wrong by where their groups' init jobs are";
    return census->live > core->settings.rollouts_max && core->accepted ? "more rollouts are live than the limit"
                                                                        : NULL;
}

/* ---- from the queues --------------------------------------------------------------- */

static verdict check_queue(const struct queue *queue, enum place place, const struct worker *worker)
{
    size_t count = 0;
    const struct job *job;
    LIST_EACH(job, &queue->jobs, link) {
        if (job->link.next->prev != &job->link || job->link.prev->next != &job->link)
            return "a queue's links are broken";
        if (job->place != place || job->course->worker != worker)
            return "a job is in a queue of another place";
        count++;
    }
    return count == queue->count ? NULL : "a queue's count is not its length";
}

static verdict check_queues(const struct core *core, const struct census *census)
{
    for (unsigned place = PLACE_ORPHAN; place < PLACE_LEASED; place++)
        for (unsigned stage = 0; stage < STAGE_COUNT; stage++) {
            const struct queue *queue = &core->queues[place][stage];
            verdict bad = place == PLACE_QUEUED ||
                                  place == PLACE_UNOFFERED /* those are check_fair_queues' and check_needs' */
                              ? NULL
                              : check_queue(queue, (enum place)place, NULL);
            if (bad)
                return bad;
            bool is_elsewhere = place == PLACE_BLOCKED && stage == STAGE_INIT; /* with its image */
            if (queue->count != (is_elsewhere ? 0 : census->jobs[place][stage]))
                return "a job is missing from the queue of its place";
        }
    if (core->timers.count != census->timers || !heap_is_sound(&core->timers))
        return "the timers are not those of the leased and delayed jobs";
    return NULL;
}

/* ---- workers, engines, streams ----------------------------------------------------- */

static verdict check_worker(const struct core *core, const struct worker *worker)
{
    if (worker_find(core, worker_id(worker)) != worker)
        return "a worker cannot be found by its id";
    if (worker->jobs.count > worker->slots)
        return "a worker holds more than its slots";
    if (worker->hung && worker->jobs.count)
        return "a hung worker has jobs";
    if (worker->isolated && (worker->isolated->course->worker != worker || worker->isolated->place != PLACE_LEASED))
        return "a worker is alone with a job it does not have";
    if ((worker->free.place != 0) != worker_may_take(core, worker))
        return "a worker is among the free that may take nothing, or is not and may";
    if (worker->free.place && worker->free.key != worker_rank(worker))
        return "a worker's free slots are counted wrong";
    return check_queue(&worker->jobs, PLACE_LEASED, worker);
}

static verdict check_workers(const struct core *core, const struct census *census)
{
    size_t count = 0, leased[STAGE_COUNT] = {0};
    uint64_t slots[STAGE_COUNT] = {0};
    int64_t beat_ms = INT64_MIN;
    const struct worker *worker;
    LIST_EACH(worker, &core->workers, link) {
        verdict bad = check_worker(core, worker);
        if (bad)
            return bad;
        if (worker->beat_ms < beat_ms)
            return "the workers are not in the order of their beats";
        beat_ms = worker->beat_ms;
        leased[worker->stage] += worker->jobs.count;
        slots[worker->stage] += worker_is_out(worker) ? 0 : worker->slots;
        count++;
    }
    if (count != core->workers_by_id.count || count > WORKERS_MAX)
        return "the count of workers is wrong";
    for (unsigned stage = 0; stage < STAGE_COUNT; stage++) {
        if (leased[stage] != census->jobs[PLACE_LEASED][stage] || leased[stage] != core->leased[stage])
            return "a lease has no living worker";
        if (slots[stage] != core->slots[stage])
            return "a stage's slots are counted wrong";
        if (!heap_is_sound(&core->free[stage]))
            return "the order of the free workers is broken";
    }
    return NULL;
}

/* How many rollouts name this engine, and how many of them run there. */
static void count_engine(const struct core *core, const struct engine *engine, uint64_t *refs, uint64_t *live)
{
    size_t at = 0;
    for (const struct group *group; (group = table_next(&core->groups, &at));)
        for (uint32_t k = 0; group->work && group->work->rollouts && k < group->samples; k++) {
            const struct rollout *rollout = &group->work->rollouts[k];
            const struct judging *judging = group->work->judging;
            *refs += (rollout->engine == engine) + (judging && judging->engines[k] == engine);
            *live += rollout->job.place == PLACE_LEASED && job_engine(&rollout->job) == engine;
        }
}

static verdict check_sessions(const struct core *core)
{
    if (core->sessions.count > core->leased[STAGE_RUN])
        return "more sessions are open than runs are leased";
    return heap_is_sound(&core->session_waits) ? NULL : "the order of those who wait for sessions is broken";
}

static verdict check_engines(const struct core *core)
{
    size_t count = 0, registered = 0;
    const struct engine *engine;
    LIST_EACH(engine, &core->engines, link) {
        uint64_t refs = 0, live = 0;
        count_engine(core, engine, &refs, &live);
        if (refs != engine->refs || live != engine->live)
            return "an engine's rollouts are counted wrong";
        if (engine->draining && !engine->registered)
            return "an engine drains that is not registered";
        if (!engine->registered && !engine->refs)
            return "an engine is kept that nobody names";
        count++;
        registered += engine->registered;
    }
    if (count != core->engine_count || registered != core->engines_registered)
        return "the count of engines is wrong";
    verdict bad = load_check(core);
    if (!bad)
        bad = probes_check(core);
    if (!bad)
        bad = policies_check(core);
    return bad ? bad : versions_check(core);
}

static verdict check_streams(const struct core *core)
{
    size_t count = 0;
    uint64_t live = 0;
    const struct stream *stream;
    LIST_EACH(stream, &core->streams, link) {
        uint64_t pending = 0;
        for (const struct list *at = stream->live.next; at != &stream->live; at = at->next)
            pending += container_of(at, const struct group, live)->work->live;
        if (pending != stream->pending)
            return "a stream's pending rollouts are counted wrong";
        if (stream->first < 1 || stream->first > stream->head + 1)
            return "a stream begins after its end";
        if (!heap_is_sound(&stream->ended))
            return "the order of a stream's ended groups is broken";
        live += pending;
        count++;
    }
    return count == core->stream_count && live == core->usage[QUOTA_ROLLOUTS].used ? NULL
                                                                                   : "the count of streams is wrong";
}

const char *core_check(const struct core *core)
{
    struct census census = {0};
    if (core->failed || core->restoring)
        return NULL;
    verdict bad = check_groups(core, &census);
    if (!bad)
        bad = check_queues(core, &census);
    if (!bad)
        bad = check_workers(core, &census);
    if (!bad)
        bad = check_sessions(core);
    if (!bad)
        bad = check_engines(core);
    if (!bad)
        bad = check_faults(core, census.jobs[PLACE_BLOCKED][STAGE_INIT]);
    if (!bad)
        bad = check_needs(core);
    if (!bad)
        bad = check_samplers(core);
    if (!bad)
        bad = check_streams(core);
    return bad ? bad : check_fair_queues(core);
}
