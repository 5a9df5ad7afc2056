#include "workers/jobs/job.h"

#include <stdarg.h>
#include <stdio.h>

#include "workers/runtime/fiber.h"
#include "common/loop/loop_now.h"
#include "common/base/text.h"

/* ---- the clock -------------------------------------------------------------------------- */

void job_begin(struct job *job, enum stage stage)
{
    const struct task_limits *limits = &job->task->limits;
    const uint64_t limits_s[STAGE_COUNT] = {
        [STAGE_INIT] = limits->init_s, [STAGE_RUN] = limits->run_s, [STAGE_EVAL] = limits->eval_s};
    job->limit_ms = (int64_t)limits_s[stage] * 1000;
    job->prepared_by_ms = loop_now_ms() + JOB_PREPARE_MS;
    fiber_push_deadline(job->prepared_by_ms + job->limit_ms);
}

void job_begin_work(struct job *job)
{
    int64_t now_ms = loop_now_ms();
    if (now_ms < job->prepared_by_ms)
        job->prepared_by_ms = now_ms;
    fiber_pop_deadline();
    fiber_push_deadline(job->prepared_by_ms + job->limit_ms);
}

/* ---- the end ---------------------------------------------------------------------------- */

static void end(struct job *job, enum outcome outcome, enum fault fault, const char *format, va_list args)
{
    vsnprintf(job->result.detail, sizeof(job->result.detail), format, args);
    text_sanitize(job->result.detail);
    job->result.outcome = outcome;
    job->result.fault = fault;
}

void job_set_outcome(struct job *job, enum outcome outcome, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    end(job, outcome, FAULT_NONE, format, args);
    va_end(args);
}

void job_set_fault(struct job *job, enum outcome outcome, enum fault fault, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    end(job, outcome, fault, format, args);
    va_end(args);
}
