/* job_engine.h - the engine that a job of a run or of an evaluation is given. */
#ifndef SLUICE_WORKERS_JOBS_JOB_ENGINE_H
#define SLUICE_WORKERS_JOBS_JOB_ENGINE_H

#include "workers/jobs/job.h"

/* NULL: the job names none, or memory is out, and has ended so; `who` needs it, for the sentence. */
struct engine *job_find_engine(struct job *job, const char *who);

#endif
