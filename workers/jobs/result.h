/* result.h - a job's end as the bytes of a job.result message. */
#ifndef SLUICE_WORKERS_JOBS_RESULT_H
#define SLUICE_WORKERS_JOBS_RESULT_H

#include "workers/jobs/job.h"

/*
 * Texts are repaired (and the answer cut) where the wire would refuse them. What still breaks the
 * schema, a record over its bound say, becomes outcome infra with the refusal's sentence.
 * False when out of memory.
 */
bool result_encode(struct job *job, const char *worker, uint64_t token, uint64_t ms, struct buffer *out);
/* A result without anything the stage left. False when out of memory. */
bool result_encode_bare(struct slice job, const char *worker, uint64_t token, uint64_t ms,
                        const struct job_result *result, struct buffer *out);
/* Frees what the stage left in job->result. */
void result_finish(struct job_result *result);

#endif
