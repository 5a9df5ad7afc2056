#include "workers/evaluators/evaluators.h"

static void run_none(struct job *job) { job_set_outcome(job, OUTCOME_OK, "no evaluator, no reward"); }

const struct evaluator evaluator_none = {.run = run_none};
