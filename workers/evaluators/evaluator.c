#include "workers/evaluators/evaluator.h"

#include <stdarg.h>

bool evaluator_lacks_files(struct job *job)
{
    if (!slice_is(job->start.run_layer_digest, LAYER_UNKNOWN))
        return false;
    job_set_outcome(job, OUTCOME_AGENT, "what the agent left is not known, and nothing was scored");
    return true;
}

void evaluator_end(struct job *job, struct verdict *verdict)
{
    job_set_outcome(job, verdict->has_reward ? OUTCOME_OK : OUTCOME_TASK, "%s", verdict_why(verdict));
    verdict_finish(&job->result.verdict);
    job->result.verdict = *verdict;
    *verdict = (struct verdict){0};
}

void evaluator_reward(struct job *job, double reward, const char *format, ...)
{
    struct refusal no;
    AUTO_VERDICT verdict = {0};
    va_list args;
    va_start(args, format);
    verdict_vsay(&verdict, format, args);
    va_end(args);
    if (!verdict_set_reward(&verdict, reward, &no))
        verdict_say(&verdict, "the evaluator is broken: %s", no.text);
    evaluator_end(job, &verdict);
}
