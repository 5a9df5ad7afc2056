#include "workers/stages/fresh_evaluation.h"

#include <stdlib.h>

#include "common/base/cleanup.h"
#include "workers/evaluators/evaluators.h"
#include "workers/handlers/roles/evaluator.h"
#include "workers/runtime/activity.h"
#include "workers/runtime/fiber.h"
#include "common/loop/loop_now.h"
#include "workers/stages/build/build.h"

/* The limit of the evaluation begins behind it. */
static bool build_own(struct job *job, struct parents *ret)
{
    const int64_t began_ms = loop_now_ms();
    fiber_lift_deadline(began_ms + (int64_t)task_before_eval_s(job->task) * 1000);
    const bool good = build_run(job, task_base_of_evaluator(job->task), ret);
    const int64_t took_ms = loop_now_ms() - began_ms;
    fiber_pop_deadline();
    fiber_give_time(fiber_current(), took_ms);
    job->prepared_by_ms += took_ms;
    job->built = ret;
    return good;
}

void fresh_evaluation(struct job *job)
{
    const struct evaluator *evaluator = evaluator_find(job->task->eval_kind);
    AUTO_FREE struct parents *built = calloc(1, sizeof(*built));
    activity_evaluator(job->task->eval_kind);
    activity_enter(PHASE_EVALUATING);
    if (!built)
        job_set_fault(job, OUTCOME_INFRA, FAULT_NODE, "out of memory");
    else if (!job->task->eval_build.dockerfile || build_own(job, built))
        (evaluator ? evaluator : &evaluator_handler)->run(job);
    activity_leave(PHASE_EVALUATING);
    job->built = NULL;
}
