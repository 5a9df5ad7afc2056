#include "broker/core/queue/jobs.h"
#include "broker/core/engines/breaker.h"
#include "broker/core/metrics/counting.h"
#include "broker/core/needs/lines.h"
#include "broker/core/queue/fair_queue.h"
#include "broker/core/queue/free_workers.h"
#include "broker/core/queue/history.h"
#include "broker/core/queue/job_progress.h"
#include "broker/core/sessions/sessions.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"

/* ---- what a job is ----------------------------------------------------------------- */

void job_begin_stage(struct job *job, enum stage stage)
{
    job->stage = (uint8_t)stage;
    job_clear(job);
}

/* ---- places: only this section moves jobs ------------------------------------------ */

/* But for QUEUED, whose jobs are in their streams' queues, and UNOFFERED, whose jobs are in their needs' lines. */
static struct queue *queue_of(struct core *core, const struct job *job)
{
    if (job->place == PLACE_LEASED)
        return &job->course->worker->jobs;
    if (job->place == PLACE_BLOCKED && job->stage == STAGE_INIT)
        return &job->group->work->image->waiting;
    return &core->queues[job->place][job->stage];
}

static void count_queued(const struct core *core, const struct job *job, uint64_t by)
{
    struct need *need = job->place == PLACE_QUEUED ? job_need(core, job) : NULL;
    if (need)
        need->queued += by;
}

/* A group's rollouts are where its init job is, as long as that has a place. */
static void move_live(struct core *core, const struct job *job, enum place from, enum place to)
{
    if (job->stage != STAGE_INIT)
        return;
    core->live_by_init[from] -= job->group->work->live;
    core->live_by_init[to] += job->group->work->live;
}

static bool is_wait(enum place place)
{
    return place == PLACE_QUEUED || place == PLACE_ISOLATED || place == PLACE_BLOCKED || place == PLACE_UNOFFERED;
}

static void enter(struct core *core, struct job *job, enum place place, bool front)
{
    job->place = (uint8_t)place;
    move_live(core, job, PLACE_NONE, place);
    if (is_wait(place) && !job->timer.key)
        job->timer.key = core->now_ms;
    job->since_ms = core->now_ms;
    struct queue *queue = queue_of(core, job);
    if (place == PLACE_QUEUED)
        fair_queue_push(core, job, front);
    else if (place == PLACE_UNOFFERED)
        line_push(core, job_need(core, job), job);
    else if (front)
        list_push_front(&queue->jobs, &job->link);
    else
        list_push_back(&queue->jobs, &job->link);
    queue->count++;
    count_queued(core, job, 1);
}

static void set_timer(struct core *core, struct job *job, int64_t due_ms)
{
    if (!heap_put(&core->timers, &job->timer, due_ms))
        core->failed = true;
}

static void count_wait(struct core *core, struct job *job)
{
    if (!is_wait((enum place)job->place))
        return;
    struct rollout *rollout = job_rollout(job);
    uint32_t *wait_ms = rollout ? &rollout->wait_ms : &job->group->work->init_wait_ms;
    *wait_ms = core_ms(*wait_ms + (uint64_t)(core->now_ms - job->since_ms));
}

static void end_lease(struct core *core, struct job *job)
{
    struct engine *engine = job_engine(job);
    struct worker *worker = job->course->worker;
    core->leased[job->stage]--;
    job_progress_forget(core, job);
    session_forget(core, job);
    fair_queue_release(core, job);
    if (engine)
        engine->live--;
    breaker_leave(core, job_breaker(job), job);
    if (worker->isolated == job)
        worker->isolated = NULL;
    job_course(job)->worker = NULL;
    job->place = PLACE_NONE;
    worker_refresh(core, worker);
    if (engine)
        engine_note(core, engine, ENGINE_CAPACITY);
}

void job_leave(struct core *core, struct job *job)
{
    if (job->place == PLACE_NONE)
        return;
    count_wait(core, job);
    queue_of(core, job)->count--;
    count_queued(core, job, (uint64_t)-1);
    core->images_waiting -= job->place == PLACE_BLOCKED && job->stage == STAGE_INIT;
    if (job->place == PLACE_QUEUED)
        fair_queue_remove(core, job);
    else if (job->place == PLACE_UNOFFERED)
        line_remove(job_need(core, job), job);
    else
        list_remove(&job->link);
    heap_remove(&core->timers, &job->timer);
    if (!is_wait((enum place)job->place))
        job->timer.key = 0;
    move_live(core, job, (enum place)job->place, PLACE_NONE);
    if (job->place == PLACE_LEASED)
        end_lease(core, job);
    job->place = PLACE_NONE;
}

void job_withdraw(struct core *core, struct job *job)
{
    if (job->place == PLACE_LEASED)
        send_cancel(core, job->course->worker, job_name(core, job), job->course->token);
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

void job_keep_back(struct core *core, struct job *job)
{
    job_leave(core, job);
    enter(core, job, PLACE_UNOFFERED, false);
    core->counters.unoffered++;
}

void job_hold(struct core *core, struct job *job)
{
    job_leave(core, job);
    enter(core, job, PLACE_HELD, false);
}

void job_orphan(struct core *core, struct job *job)
{
    job_leave(core, job);
    enter(core, job, PLACE_ORPHAN, false);
    core->adopting = true;
}

void job_give_pause(struct core *core, struct job *job)
{
    const struct engine *engine = job_engine(job);
    if (engine && engine_is_paused(engine))
        set_timer(core, job, job->timer.key + engine->resume_ms - core->now_ms);
}

void job_lease(struct core *core, struct job *job, struct worker *worker, uint64_t token)
{
    struct rollout *rollout = job_rollout(job);
    bool isolated = job->place == PLACE_ISOLATED;
    int64_t limit_ms = job->group->work->limit_ms[job->stage];
    if (is_wait((enum place)job->place))
        counting_wait(core, job, core->now_ms - job->timer.key);
    job_leave(core, job);
    struct job_course *course = job_course(job);
    course->worker = worker;
    course->token = token;
    course->seen = 0;
    enter(core, job, PLACE_LEASED, false);
    set_timer(core, job, core->now_ms + limit_ms + core->settings.deadline_grace_ms);
    if (rollout) {
        rollout->was_told_to_migrate = false;
        job_give_pause(core, job); /* adopted in it */
    }
    core->leased[job->stage]++;
    fair_queue_lease(core, job);
    if (job_engine(job))
        job_engine(job)->live++;
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
