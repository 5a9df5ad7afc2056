/* job_engine.h - the engine that a job of a run or of an evaluation is given. */
#ifndef SLUICE_WORKERS_JOBS_JOB_ENGINE_H
#define SLUICE_WORKERS_JOBS_JOB_ENGINE_H

#include "workers/jobs/job.h"

/* NULL: the job names none, or memory is out, and has ended so; `who` needs it, for the sentence. */
struct engine *job_find_engine(struct job *job, const char *who);
/*
 * Ends an evaluation by what its engine failed with, a call that was not answered in the service's own time among it.
 * Where the task's time is over, the caller says so instead. `hint` is what would help where the context is too short.
 */
void job_engine_failed(struct job *job, const struct engine *engine, const char *who, int code, const struct fail *fail,
                       const char *hint);

#endif
