/*
 * job.h - ProRL's /process and /cancel: a rollout whose caller waits for it (runs/runs.h). Its id is job_id, or what
 * the instance calls itself and its trajectory.
 */
#ifndef SLUICE_CLIENT_GATEWAY_PRORL_JOB_H
#define SLUICE_CLIENT_GATEWAY_PRORL_JOB_H

#include "client/gateway/prorl/trainers.h"

void job_process(struct http_call *call);
void job_cancel(struct http_call *call);
/* All of a trainer's end with an error, and their rollouts with them. */
void jobs_stop(struct trainer *trainer);

#endif
