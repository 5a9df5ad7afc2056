#include "workers/running.h"

#include <stdlib.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "workers/fiber.h"
#include "workers/result.h"

void running_init(struct running *running, const struct job_context *context,
                  void (*ended)(void *arg, struct running_job *ended), void *arg)
{
    *running = (struct running){.context = context, .ended = ended, .arg = arg};
    TAILQ_INIT(&running->live);
    TAILQ_INIT(&running->leaving);
}

struct running_job *running_find(const struct running *running, struct slice job)
{
    struct running_job *at;
    TAILQ_FOREACH(at, &running->live, links)
    if (slice_equal(at->job.start.job, job))
        return at;
    return NULL;
}

/* ---- one job, in its fiber -------------------------------------------------------------- */

static void work_stage(struct job *job, const struct task_kind *kind, enum stage stage)
{
    const struct {
        void (*work)(struct job *job);
        uint64_t limit_s;
    } stages[STAGE_COUNT] = {
        [STAGE_INIT] = {kind->init, job->task->limits.init_s},
        [STAGE_RUN] = {kind->run, job->task->limits.run_s},
        [STAGE_EVAL] = {kind->eval, job->task->limits.eval_s},
    };
    job_end(job, OUTCOME_INFRA, "the %s stage of kind %s did not say how it ended",
            stage_wire(stage), kind->name);
    fiber_push_deadline(clock_ms() + (int64_t)stages[stage].limit_s * 1000);
    stages[stage].work(job);
}

static void work(void *arg)
{
    struct running_job *self = arg;
    struct job *job = &self->job;
    struct refusal no = {0};
    enum stage stage = STAGE_INIT;
    stage_parse(job->start.stage, &stage);
    job->task = task_parse(job->start.task, &no);
    if (!job->task) {
        job_end(job, OUTCOME_TASK, "the task is refused: %s%s%s", no.field, no.field[0] ? ": " : "",
                no.text);
        return;
    }
    const struct task_kind *kind = task_kind_find(job->task->kind);
    if (kind)
        work_stage(job, kind, stage);
    else
        job_end(job, OUTCOME_TASK, "this worker knows no kind of task \"%s\"", job->task->kind);
}

static void running_job_destroy(struct running_job *self)
{
    result_finish(&self->job.result);
    task_destroy(self->job.task);
    buffer_finish(&self->job.bytes);
    free(self);
}

static void work_ended(void *arg)
{
    struct running_job *self = arg;
    struct running *running = self->running;
    if (self->is_cancelled) {
        TAILQ_REMOVE(&running->leaving, self, links);
        running->leaving_count--;
    } else {
        TAILQ_REMOVE(&running->live, self, links);
        running->live_count--;
    }
    running->ended(running->arg, self);
    running_job_destroy(self);
}

/* ---- all of them ------------------------------------------------------------------------ */

bool running_start(struct running *running, struct slice bytes)
{
    struct running_job *self = calloc(1, sizeof(*self));
    if (!self)
        return false;
    self->running = running;
    self->started_ms = clock_ms();
    self->job.context = running->context;
    if (!buffer_append(&self->job.bytes, bytes.data, bytes.len) ||
        !message_decode(MSG_job_start, buffer_peek(&self->job.bytes), &self->job.start, NULL) ||
        !(self->fiber = fiber_start(running->context->loop, work, work_ended, self))) {
        running_job_destroy(self);
        return false;
    }
    self->token = self->job.start.token;
    TAILQ_INSERT_TAIL(&running->live, self, links);
    running->live_count++;
    return true;
}

void running_cancel(struct running *running, struct running_job *job)
{
    TAILQ_REMOVE(&running->live, job, links);
    running->live_count--;
    TAILQ_INSERT_TAIL(&running->leaving, job, links);
    running->leaving_count++;
    job->is_cancelled = true;
    fiber_cancel(job->fiber);
}

bool running_list_jobs(const struct running *running, struct buffer *packed)
{
    const struct running_job *at;
    TAILQ_FOREACH(at, &running->live, links)
    if (!jobs_append(packed, at->job.start.job, at->token))
        return false;
    return true;
}
