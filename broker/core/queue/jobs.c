#include "broker/core/state.h"

/* ---- what a job is ----------------------------------------------------------------- */

struct rollout *job_rollout(struct job *job)
{
    return job->stage == STAGE_INIT ? NULL : container_of(job, struct rollout, job);
}

bool job_needs_engine(const struct job *job)
{
    return job->stage == STAGE_RUN && job->group->work->needs_engine;
}

struct slice job_name(struct core *core, const struct job *job)
{
    const struct group *group = job->group;
    if (job->stage == STAGE_INIT)
        return effect_print(core, "init:%s", group->id);
    return effect_print(core, "%s:%s/%u", stage_wire(job->stage), group->id, job->sample);
}

struct job *job_find(struct core *core, struct slice name)
{
    const uint8_t *colon = name.len ? memchr(name.data, ':', name.len) : NULL;
    enum stage stage;
    if (!colon || !stage_parse(slice_of(name.data, (size_t)(colon - name.data)), &stage))
        return NULL;
    struct slice rest = slice_of(colon + 1, name.len - (size_t)(colon + 1 - name.data));
    struct group *group = stage == STAGE_INIT ? group_find(core, rest) : NULL;
    uint32_t sample = 0;
    if (stage != STAGE_INIT && !rollout_find(core, rest, &group, &sample))
        return NULL;
    if (!group || !group->work)
        return NULL;
    struct job *job = stage == STAGE_INIT ? &group->work->init : &group->work->rollouts[sample].job;
    return job->stage == stage && job->place != PLACE_NONE ? job : NULL;
}

void job_begin_stage(struct job *job, enum stage stage)
{
    job->stage = (uint8_t)stage;
    job->token = 0;
    job->attempt = 0;
    job_clear(job);
}

/* ---- places: only this section moves jobs ------------------------------------------ */

/* But for QUEUED, whose jobs are in their streams' queues. */
static struct queue *queue_of(struct core *core, const struct job *job)
{
    if (job->place == PLACE_LEASED)
        return &job->worker->jobs;
    if (job->place == PLACE_BLOCKED && job->stage == STAGE_INIT)
        return &job->group->work->image->waiting;
    return &core->queues[job->place][job->stage];
}

static void enter(struct core *core, struct job *job, enum place place, bool front)
{
    job->place = (uint8_t)place;
    job->since_ms = core->now_ms;
    struct queue *queue = queue_of(core, job);
    if (place == PLACE_QUEUED)
        fair_queue_push(core, job, front);
    else if (front)
        list_push_front(&queue->jobs, &job->link);
    else
        list_push_back(&queue->jobs, &job->link);
    queue->count++;
}

static void set_timer(struct core *core, struct job *job, int64_t due_ms)
{
    if (!heap_put(&core->timers, &job->timer, due_ms))
        core->failed = true;
}

static void count_wait(struct core *core, struct job *job)
{
    if (job->place != PLACE_QUEUED && job->place != PLACE_ISOLATED && job->place != PLACE_BLOCKED)
        return;
    struct rollout *rollout = job_rollout(job);
    uint32_t *wait_ms = rollout ? &rollout->wait_ms : &job->group->work->init_wait_ms;
    *wait_ms = core_ms(*wait_ms + (uint64_t)(core->now_ms - job->since_ms));
}

static void end_lease(struct core *core, struct job *job)
{
    struct rollout *rollout = job_rollout(job);
    struct worker *worker = job->worker;
    core->leased[job->stage]--;
    fair_queue_release(core, job);
    if (job->stage == STAGE_RUN && rollout->engine)
        rollout->engine->live--;
    breaker_leave(core, job_breaker(job), job);
    if (worker->isolated == job)
        worker->isolated = NULL;
    job->worker = NULL;
    job->place = PLACE_NONE;
    worker_refresh(core, worker);
    if (job->stage == STAGE_RUN && rollout->engine)
        dispatch_room_came(core, rollout->engine);
}

void job_leave(struct core *core, struct job *job)
{
    if (job->place == PLACE_NONE)
        return;
    count_wait(core, job);
    queue_of(core, job)->count--;
    core->images_waiting -= job->place == PLACE_BLOCKED && job->stage == STAGE_INIT;
    if (job->place == PLACE_QUEUED)
        fair_queue_remove(core, job);
    else
        list_remove(&job->link);
    heap_remove(&core->timers, &job->timer);
    if (job->place == PLACE_LEASED)
        end_lease(core, job);
    job->place = PLACE_NONE;
}

void job_withdraw(struct core *core, struct job *job)
{
    if (job->place == PLACE_LEASED)
        send_cancel(core, job->worker, job_name(core, job), job->token);
    job_leave(core, job);
}

void job_queue(struct core *core, struct job *job, bool front)
{
    job_leave(core, job);
    enter(core, job, job_failures(job)->deaths >= 2 ? PLACE_ISOLATED : PLACE_QUEUED, front);
}

void job_block(struct core *core, struct job *job)
{
    job_leave(core, job);
    enter(core, job, PLACE_BLOCKED, false);
    if (job->stage != STAGE_INIT)
        return;
    core->images_waiting++;
    breaker_await(core, job_breaker(job));
}

void job_orphan(struct core *core, struct job *job)
{
    job_leave(core, job);
    enter(core, job, PLACE_ORPHAN, false);
    core->adopting = true;
}

void job_give_pause(struct core *core, struct job *job)
{
    const struct engine *engine = job->stage == STAGE_RUN ? job_rollout(job)->engine : NULL;
    if (engine && engine_is_paused(engine))
        set_timer(core, job, job->timer.key + engine->resume_ms - core->now_ms);
}

void job_lease(struct core *core, struct job *job, struct worker *worker, uint64_t token)
{
    struct rollout *rollout = job_rollout(job);
    bool isolated = job->place == PLACE_ISOLATED;
    int64_t limit_ms = job->group->work->limit_ms[job->stage];
    job_leave(core, job);
    job->worker = worker;
    job->token = token;
    job->seen = 0;
    enter(core, job, PLACE_LEASED, false);
    set_timer(core, job, core->now_ms + limit_ms + core->settings.deadline_grace_ms);
    if (rollout) {
        rollout->was_told_to_migrate = false;
        job_give_pause(core, job); /* adopted in it */
    }
    core->leased[job->stage]++;
    fair_queue_lease(core, job);
    if (job->stage == STAGE_RUN && rollout->engine)
        rollout->engine->live++;
    breaker_enter(core, job_breaker(job), job);
    if (isolated && worker->jobs.count == 1)
        worker->isolated = job;
    worker_refresh(core, worker);
}

void job_delay(struct core *core, struct job *job, int64_t wait_ms)
{
    job_leave(core, job);
    enter(core, job, PLACE_DELAYED, false);
    set_timer(core, job, core->now_ms + wait_ms);
}

/* ---- time -------------------------------------------------------------------------- */

static void overdue(struct core *core, struct job *job)
{
    int64_t limit_ms = job->group->work->limit_ms[job->stage];
    int64_t grace_ms = core->settings.deadline_grace_ms;
    struct slice detail = effect_print(
        core, "no result within %lld s of being handed out (its limit and %lld s of grace)",
        (long long)(limit_ms + grace_ms) / 1000, (long long)grace_ms / 1000);
    struct failure failure = {.outcome = OUTCOME_INFRA,
                              .worker = effect_copy(core, worker_id(job->worker)),
                              .detail = detail};
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
