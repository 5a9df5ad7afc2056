/*
 * fresh_evaluation.h - an evaluation in a sandbox of its own, by the task's evaluator: of what an eval job was given,
 * or of what a step's agent has left (steps/step_apart.h).
 */
#ifndef SLUICE_WORKERS_STAGES_FRESH_EVALUATION_H
#define SLUICE_WORKERS_STAGES_FRESH_EVALUATION_H

#include "workers/jobs/job.h"

/* job_begin(STAGE_EVAL) was called, and job->start says what is judged. Ends the job. The evaluator's own image is made
 * first, in eval.build.timeout_s beyond limits.eval_s. */
void fresh_evaluation(struct job *job);

#endif
