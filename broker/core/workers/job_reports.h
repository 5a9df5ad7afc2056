/* core/workers/job_reports.h - job.progress, session.open: what a worker says of a job that it has. */
#ifndef SLUICE_BROKER_CORE_WORKERS_JOB_REPORTS_H
#define SLUICE_BROKER_CORE_WORKERS_JOB_REPORTS_H

struct call;
struct core;

void handle_job_progress(struct core *core, const struct call *call);
void handle_rollout_live(struct core *core, const struct call *call);
void handle_session_open(struct core *core, const struct call *call);

#endif
