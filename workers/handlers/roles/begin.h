/* begin.h - a handler.begin with what all roles are told. */
#ifndef SLUICE_WORKERS_HANDLERS_ROLES_BEGIN_H
#define SLUICE_WORKERS_HANDLERS_ROLES_BEGIN_H

#include "schemas/task/task_shown.h"
#include "workers/jobs/job.h"

enum { HANDLER_ROLLOUT_SIZE = 160 };

struct handler_begin {
    struct msg_handler_begin message; /* id and role are handler_job_begin's */
    char rollout[HANDLER_ROLLOUT_SIZE];
    struct buffer task; /* as its viewer is shown it */
};

/* Borrows from the job and `name`. handler_begin_finish it in any case. 0 or -ENOMEM. */
int handler_begin_make(const struct job *job, enum task_viewer viewer, const char *name, struct handler_begin *ret,
                       struct fail *fail);
void handler_begin_finish(struct handler_begin *begin);
#define AUTO_HANDLER_BEGIN __attribute__((cleanup(handler_begin_finish))) struct handler_begin

#endif
