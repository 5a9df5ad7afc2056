/* posted.c - the reward that was posted to the run's session at its end, which the run job has at hand. */
#include "workers/evaluators/evaluators.h"

static void run_posted(struct job *job)
{
    struct verdict *posted = &job->session.posted;
    if (!posted->has_reward) {
        job_set_outcome(job, OUTCOME_OK, "no reward was posted");
        return;
    }
    if (!posted->why)
        verdict_say(posted, "the reward was posted");
    evaluator_end(job, posted);
}

const struct evaluator evaluator_posted = {.run = run_posted};
