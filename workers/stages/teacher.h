/*
 * teacher.h - score: what another model makes of the tokens that a run sampled, behind its evaluation. The engine is
 * the eval job's, of the policy that the task names. What it says becomes columns of the record's traces, which goes
 * back with the result in place of the run's (docs/trajectory.md, "Columns by name"):
 *
 *     teacher_logprobs          f32
 *     top_ids, top_logprobs     u32 and f32, score.top_k a row
 *
 * They have a row for each token from the first sampled one of a trace to the last; 0 where the mask is 0. All of the
 * record is scored, or the job fails as a judge's does, and nothing of it is kept.
 */
#ifndef SLUICE_WORKERS_STAGES_TEACHER_H
#define SLUICE_WORKERS_STAGES_TEACHER_H

#include "workers/jobs/job.h"

/* The evaluation has ended ok, and the task has a teacher. Awaits, in a time of its own; job->result stays ok, with the
 * record where anything was sampled, or says what failed. */
void teacher_score(struct job *job);

#endif
