/* begin.h - a handler.begin with what all roles are told. */
#ifndef SLUICE_WORKERS_HANDLERS_ROLES_BEGIN_H
#define SLUICE_WORKERS_HANDLERS_ROLES_BEGIN_H

#include "workers/jobs/job.h"

enum { HANDLER_ROLLOUT_SIZE = 160 };

/* Borrows from the job, `name` and `rollout`, which is filled in. id and role are handler_job_begin's. */
struct msg_handler_begin handler_begin_of(const struct job *job, const char *name, char rollout[HANDLER_ROLLOUT_SIZE]);

#endif
