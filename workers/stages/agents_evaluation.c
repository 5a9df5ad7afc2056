#include "workers/stages/agents_evaluation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "workers/evaluators/evaluators.h"
#include "workers/handlers/roles/evaluator.h"
#include "workers/jobs/result.h"
#include "workers/jobs/shaping.h"
#include "workers/runtime/activity.h"
#include "workers/runtime/fiber.h"

void agents_evaluation_tell(struct job *job)
{
    struct job_result *result = &job->result;
    result_fit_answer(result);
    job->start.answer = slice_from_str(result->answer);
    job->start.has_answer = result->answer != NULL;
    job->start.record = buffer_peek(&result->record);
    job->start.has_record = job->start.record.len > 0;
    job->start.has_sampled_tokens = job->start.has_truncated = true;
    job->start.sampled_tokens = result->sampled_tokens;
    job->start.truncated = result->truncated;
}

static void evaluate(struct job *job, struct stage_sandbox *stage)
{
    const struct evaluator *evaluator = evaluator_find(job->task->eval_kind);
    job->agents = stage;
    (evaluator ? evaluator : &evaluator_handler)->run(job);
    job->agents = NULL;
}

static bool has_sandbox(struct job *job, struct stage_sandbox *stage)
{
    struct fail fail = {0};
    int code = stage->sandbox ? 0 : stage_sandbox_add_init(stage, job, &fail);
    if (code == 0 && !stage->sandbox)
        code = stage_sandbox_open(stage, job, &fail);
    if (code < 0)
        stage_end_failed(job, stage, BLAME_NOBODY, code, &fail);
    return code == 0;
}

void agents_evaluate(struct job *job, struct stage_sandbox *stage)
{
    job_begin(job, STAGE_EVAL);
    agents_evaluation_tell(job);
    activity_evaluator(job->task->eval_kind);
    activity_enter(PHASE_EVALUATING);
    if (stage->sandbox && sandbox_breach(stage->sandbox))
        job_set_outcome(job, OUTCOME_AGENT, "what the agent left is not known, and nothing was scored");
    else if (task_is_posted(job->task) || has_sandbox(job, stage))
        evaluate(job, stage);
    activity_leave(PHASE_EVALUATING);
}

bool agents_run_keep(const struct job *job, struct agents_run *ret)
{
    *ret = (struct agents_run){job->result.outcome, job->result.fault, strdup(job->result.detail)};
    return ret->detail != NULL;
}

void agents_run_finish(struct agents_run *run) { free(take_ptr(&run->detail)); }

void agents_evaluation_end(struct job *job, const struct agents_run *run, bool in_agents, uint64_t ms)
{
    struct job_result *result = &job->result;
    agents_evaluation_tell(job);
    if (in_agents && result->outcome != OUTCOME_AGENT && !verdict_set_agents_sandbox(&result->verdict))
        job_set_fault(job, OUTCOME_INFRA, FAULT_NODE, "out of memory");
    shaping_apply(job);
    if (result->outcome == OUTCOME_INFRA || result->outcome == OUTCOME_CANCELLED)
        return;
    char *detail = strdup(result->detail);
    if (!detail) {
        job_set_fault(job, OUTCOME_INFRA, FAULT_NODE, "out of memory");
        return;
    }
    free(result->evaluation.detail);
    result->evaluation = (struct job_evaluation){
        .is_done = true, .outcome = result->outcome, .detail = detail, .ms = ms};
    result->outcome = run->outcome;
    result->fault = run->fault;
    snprintf(result->detail, sizeof(result->detail), "%s", run->detail);
}

void agents_evaluation(struct job *job, struct stage_sandbox *stage)
{
    AUTO_AGENTS_RUN run;
    const int64_t began_ms = clock_ms();
    fiber_pop_deadline();
    if (agents_run_keep(job, &run))
        agents_evaluate(job, stage);
    else
        job_set_fault(job, OUTCOME_INFRA, FAULT_NODE, "out of memory");
    agents_evaluation_end(job, &run, !task_is_posted(job->task), (uint64_t)(clock_ms() - began_ms));
}
