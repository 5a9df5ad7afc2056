#include "workers/service/cancel.h"

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "workers/jobs/result.h"

void worker_end_job(struct worker *worker, struct running_job *job, const struct job_result *result)
{
    AUTO_BUFFER bytes = {0};
    uint64_t ms = (uint64_t)(clock_ms() - job->started_ms);
    struct slice name = job->job.start.job;
    if (result_encode_bare(name, worker->id, job->token, ms, result, &bytes))
        outbox_push(&worker->outbox, name, job->token, &bytes);
    running_cancel(&worker->running, job);
}
