/* core/workers/job_reports.h - job.progress: what a worker says of a job that it has. */
#ifndef SLUICE_BROKER_CORE_WORKERS_JOB_REPORTS_H
#define SLUICE_BROKER_CORE_WORKERS_JOB_REPORTS_H

struct call;
struct core;

void handle_job_progress(struct core *core, const struct call *call);

#endif
