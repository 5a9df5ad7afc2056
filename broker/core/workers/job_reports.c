#include "broker/core/workers/job_reports.h"
#include "broker/core/queue/job_progress.h"
#include "broker/core/sessions/sessions.h"
#include "broker/core/state/state.h"
#include "broker/core/watches/watches.h"
#include "broker/core/workers/worker_ids.h"

/* The job of that dispatch; NULL: it ended meanwhile, or is another's. */
static const struct job *find(struct core *core, const struct call *call, struct slice from, struct slice name,
                              uint64_t token)
{
    struct worker *worker;
    const struct job *job = job_find(core, name);
    if (!worker_speaks(core, call, from, &worker) || !worker || !job || job->place != PLACE_LEASED ||
        job->course->worker != worker || job->course->token != token)
        return NULL;
    return job;
}

void handle_job_progress(struct core *core, const struct call *call)
{
    const struct msg_job_progress *in = call->in;
    const struct job *job = find(core, call, in->worker, in->job, in->token);
    if (job)
        job_progress_set(core, job, in->turn, in->tool, in->why);
}

void handle_rollout_live(struct core *core, const struct call *call)
{
    const struct msg_rollout_live *in = call->in;
    const struct job *job = find(core, call, in->worker, in->job, in->token);
    if (job)
        watch_publish(core, job, in);
}

void handle_session_open(struct core *core, const struct call *call)
{
    const struct msg_session_open *in = call->in;
    const struct job *job = find(core, call, in->worker, in->job, in->token);
    if (!job || job->stage != STAGE_RUN || slice_equal(session_url(core, job), in->url))
        return;
    session_set(core, job, in->url);
    session_waits_wake(core, job);
}
