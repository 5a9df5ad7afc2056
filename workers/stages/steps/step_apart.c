#include "workers/stages/steps/step_apart.h"

#include "workers/stages/agents_evaluation.h"
#include "workers/stages/fresh_evaluation.h"
#include "workers/stages/run_end.h"

/* It becomes what an eval job is given, for as long as it lasts. */
static void evaluate_layer(struct job *job, const struct layer *left)
{
    job->start.run_layer_digest = slice_from_str(left->digest);
    job->start.run_layer = buffer_peek(&left->inlined);
    agents_evaluation_tell(job);
    fresh_evaluation(job);
    job->start.run_layer_digest = job->start.run_layer = (struct slice){0};
}

void step_apart_evaluate(struct job *job, struct stage_sandbox *agents, bool is_last)
{
    struct layer left = {0};
    agents->closing_by_ms = 0;
    if (sandbox_breach(agents->sandbox)) {
        job_set_outcome(job, OUTCOME_AGENT, "what the agent left is not known, and nothing was scored");
        job_begin(job, STAGE_EVAL);
        return;
    }
    const bool is_packed = run_end_pack(job, agents, BLAME_AGENT, !is_last);
    left = job->result.layer;
    job->result.layer = (struct layer){0};
    agents->closing_by_ms = 0;
    job_begin(job, STAGE_EVAL);
    if (is_packed)
        evaluate_layer(job, &left);
    layer_finish(&left);
}
