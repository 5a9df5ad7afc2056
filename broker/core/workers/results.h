/*
 * core/workers/results.h - job.result: what a result does.
 */
#ifndef SLUICE_BROKER_CORE_WORKERS_RESULTS_H
#define SLUICE_BROKER_CORE_WORKERS_RESULTS_H

struct call;
struct core;

void handle_job_result(struct core *core, const struct call *call);

#endif
