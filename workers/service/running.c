#include "workers/service/running.h"

#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "workers/runtime/fiber.h"
#include "workers/runtime/fiber_sanitize.h"
#include "common/loop/loop_now.h"
#include "workers/jobs/result.h"
#include "workers/jobs/shaping.h"
#include "workers/live/live.h"
#include "workers/stages/kinds.h"

enum {
    STUCK_MS = 5000,
#if defined(__SANITIZE_ADDRESS__) /* it is to see who uses a job that has ended */
    SPARE_MAX = 0,
#else
    SPARE_MAX = 64,
#endif
    COPIED_MAX = 8192 /* bytes of a message that libzmq may have left among others, in a buffer which it would keep */
};

void running_init(struct running *running, const struct job_context *context)
{
    *running = (struct running){.context = context};
    TAILQ_INIT(&running->live);
    TAILQ_INIT(&running->leaving);
    TAILQ_INIT(&running->spare);
}

/* NULL when out of memory. */
static struct running_job *room_take(struct running *running)
{
    struct running_job *room = TAILQ_FIRST(&running->spare);
    if (!room)
        return calloc(1, sizeof(*room));
    TAILQ_REMOVE(&running->spare, room, links);
    running->spare_count--;
    *room = (struct running_job){0};
    return room;
}

static void room_release(struct running *running, struct running_job *room)
{
    if (running->spare_count == SPARE_MAX) {
        free(room);
        return;
    }
    TAILQ_INSERT_HEAD(&running->spare, room, links);
    running->spare_count++;
}

void running_finish(struct running *running)
{
    struct running_job *room;
    table_finish(&running->by_job);
    while ((room = TAILQ_FIRST(&running->spare))) {
        TAILQ_REMOVE(&running->spare, room, links);
        free(room);
    }
}

/* ---- those that are worked on ------------------------------------------------------------ */

/* False when out of memory. */
static bool live_add(struct running *running, struct running_job *job)
{
    if (!table_put(&running->by_job, job->job.start.job, job))
        return false;
    TAILQ_INSERT_TAIL(&running->live, job, links);
    running->live_count++;
    return true;
}

static void live_remove(struct running *running, struct running_job *job)
{
    TAILQ_REMOVE(&running->live, job, links);
    running->live_count--;
    table_take(&running->by_job, job->job.start.job);
}

struct running_job *running_find(const struct running *running, struct slice job)
{
    return table_find(&running->by_job, job);
}

/* ---- one job, in its fiber -------------------------------------------------------------- */

static void overdue(void *arg)
{
    struct running_job *self = arg;
    int64_t given_ms = fiber_given_time(self->fiber) - self->given_ms;
    self->given_ms += given_ms;
    struct loop *loop = self->running->context->loop;
    self->overdue_timer = given_ms > 0 ? loop_after(loop, given_ms, overdue, self) : NULL;
    if (!self->overdue_timer)
        self->running->overdue(self->running->arg, self);
}

static void work_stage(struct running_job *self, const struct task_kind *kind, enum stage stage)
{
    struct job *job = &self->job;
    void (*const stages[STAGE_COUNT])(struct job * job) = {
        [STAGE_INIT] = kind->init, [STAGE_RUN] = kind->run, [STAGE_EVAL] = kind->eval};
    job->result.outcome = OUTCOME_INFRA;
    job_begin(job, stage);
    const uint64_t more_s[STAGE_COUNT] = {[STAGE_RUN] = task_after_run_s(job->task),
                                          [STAGE_EVAL] = task_before_eval_s(job->task) + task_score_s(job->task)};
    const int64_t more_ms = (int64_t)more_s[stage] * 1000;
    self->overdue_timer = loop_after(
        fiber_loop(), JOB_PREPARE_MS + job->limit_ms + more_ms + JOB_PACK_MS + JOB_OVERDUE_MS, overdue, self);
    if (self->overdue_timer)
        stages[stage](job);
    else
        job_set_fault(job, OUTCOME_INFRA, FAULT_NODE, "out of memory");
    if (job->result.outcome == OUTCOME_INFRA && !job->result.detail[0])
        job_set_outcome(job, OUTCOME_INFRA, "the %s stage of kind %s did not say how it ended", stage_wire(stage),
                        kind->name);
    if (stage == STAGE_EVAL)
        shaping_apply(job);
}

/* NULL with a refusal. */
static const struct task *read_task(struct running_job *self, struct refusal *no)
{
    if (self->shared)
        return shared_task_read(self->shared, no);
    return self->own_task = task_parse(self->job.start.task, no);
}

static void work(void *arg)
{
    struct running_job *self = arg;
    struct job *job = &self->job;
    struct refusal no = {0};
    enum stage stage = STAGE_INIT;
    stage_parse(job->start.stage, &stage);
    job->task = read_task(self, &no);
    if (!job->task) {
        job_set_outcome(job, OUTCOME_TASK, "the task is refused: %s%s%s", no.field, no.field[0] ? ": " : "", no.text);
        return;
    }
    const struct task_kind *kind = task_kind_find(job->task->kind);
    if (kind)
        work_stage(self, kind, stage);
    else
        job_set_outcome(job, OUTCOME_TASK, "this worker knows no kind of task \"%s\"", job->task->kind);
}

static void running_job_destroy(struct running_job *self)
{
    live_end(&self->activity);
    result_finish(&self->job.result);
    verdict_finish(&self->job.session.posted);
    task_destroy(self->own_task);
    shared_task_release(&self->shared);
    buffer_finish(&self->job.bytes);
    zmq_msg_close(&self->message);
    spent_finish(&self->activity.spent);
    activity_finish(&self->activity);
    room_release(self->running, self);
}

static void work_ended(void *arg)
{
    struct running_job *self = arg;
    struct running *running = self->running;
    loop_cancel(running->context->loop, &self->overdue_timer);
    if (self->is_cancelled) {
        TAILQ_REMOVE(&running->leaving, self, links);
        running->leaving_count--;
    } else {
        live_remove(running, self);
    }
    running->ended(running->arg, self);
    running_job_destroy(self);
}

/* ---- all of them ------------------------------------------------------------------------ */

/* False when out of memory. */
static bool set_start(struct running_job *self, const struct ordered_job *ordered, bool is_copied)
{
    const struct slice bytes = ordered->bytes;
    struct msg_job_start *start = &self->job.start;
    *start = *ordered->start;
    if (is_copied && !buffer_append(&self->job.bytes, bytes.data, bytes.len))
        return false;
    if (is_copied)
        message_rebase(MSG_job_start, start, bytes.data, self->job.bytes.data);
    if (!start->has_task) {
        self->shared = shared_task_keep(ordered->shared);
        shared_task_fill(self->shared, start);
    }
    return true;
}

bool running_start(struct running *running, const struct ordered_job *ordered)
{
    zmq_msg_t *frame = ordered->frame;
    const bool is_copied = !frame || ordered->bytes.len <= COPIED_MAX;
    struct running_job *self = room_take(running);
    if (!self)
        return false;
    zmq_msg_init(&self->message);
    self->running = running;
    self->started_ms = clock_ms();
    self->job.context = running->context;
    self->job.result.spent = &self->activity.spent;
    if (!set_start(self, ordered, is_copied) || !live_add(running, self)) {
        running_job_destroy(self);
        return false;
    }
    self->fiber = fiber_start(running->context->loop, work, work_ended, self);
    if (!self->fiber) {
        live_remove(running, self);
        running_job_destroy(self);
        return false;
    }
    activity_begin(&self->activity, loop_now_ms());
    fiber_set_activity(self->fiber, &self->activity);
    self->token = self->job.start.token;
    if (!is_copied)
        zmq_msg_move(&self->message, frame); /* its bytes stay where they are */
    return true;
}

void running_cancel(struct running *running, struct running_job *job)
{
    live_remove(running, job);
    TAILQ_INSERT_TAIL(&running->leaving, job, links);
    running->leaving_count++;
    job->is_cancelled = true;
    job->cancelled_ms = loop_now_ms();
    loop_cancel(running->context->loop, &job->overdue_timer);
    fiber_cancel(job->fiber);
}

/* Those cancelled more than STUCK_MS ago that have not ended. */
static size_t count_stuck(const struct running *running)
{
    size_t count = 0;
    int64_t before_ms = loop_now_ms() - STUCK_MS;
    const struct running_job *at;
    TAILQ_FOREACH(at, &running->leaving, links)
    count += at->cancelled_ms < before_ms;
    return count;
}

uint64_t running_slots(const struct running *running, uint64_t given)
{
    size_t stuck = count_stuck(running);
    return stuck < given ? given - stuck : 0;
}

bool running_list_jobs(const struct running *running, struct buffer *packed)
{
    const struct running_job *at;
    TAILQ_FOREACH(at, &running->live, links)
    if (!jobs_append(packed, at->job.start.job, at->token))
        return false;
    return true;
}
