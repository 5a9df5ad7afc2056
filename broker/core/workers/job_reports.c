#include "broker/core/workers/job_reports.h"
#include "broker/core/queue/job_progress.h"
#include "broker/core/state/state.h"
#include "broker/core/workers/worker_ids.h"

void handle_job_progress(struct core *core, const struct call *call)
{
    const struct msg_job_progress *in = call->in;
    struct worker *worker;
    const struct job *job = job_find(core, in->job);
    if (!worker_speaks(core, call, in->worker, &worker) || !worker || !job || job->place != PLACE_LEASED ||
        job->worker != worker || job->token != in->token)
        return; /* it ended meanwhile, or is another's */
    job_progress_set(core, job, in->turn, in->tool, in->why);
}
