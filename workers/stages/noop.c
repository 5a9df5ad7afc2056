/* The kind "noop": no work at all, so that what is measured is the service. */
#include <string.h>

#include "workers/stages/kinds.h"

static void noop_init(struct job *job) { job_set_outcome(job, OUTCOME_OK, "noop"); }

static void noop_run(struct job *job)
{
    job->result.answer = strdup("noop");
    if (job->result.answer)
        job_set_outcome(job, OUTCOME_OK, "noop");
    else
        job_set_fault(job, OUTCOME_INFRA, FAULT_NODE, "out of memory");
}

static void noop_eval(struct job *job)
{
    verdict_set_reward(&job->result.verdict, 1.0, NULL);
    job_set_outcome(job, OUTCOME_OK, "noop");
}

const struct task_kind kind_noop = {
    .name = "noop",
    .doc = "Each stage returns at once; the reward is 1.",
    .init = noop_init,
    .run = noop_run,
    .eval = noop_eval,
};
