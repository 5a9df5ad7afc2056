/* result.h - a job's end as the bytes of a job.result message. */
#ifndef SLUICE_WORKERS_JOBS_RESULT_H
#define SLUICE_WORKERS_JOBS_RESULT_H

#include "workers/jobs/job.h"

/*
 * The answer as evaluators get it, in place: made fit for the wire, and of a long one its end, where the answer of a
 * model stands that thinks aloud. Thinking that is never closed still shows that. Idempotent.
 */
void result_fit_answer(struct job_result *result);

/*
 * Texts are repaired (and the answer made fit) where the wire would refuse them. What still breaks the
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
