/* job_session.h - of a run whose agent is a session: where its loop speaks to it, and what was posted at its end. */
#ifndef SLUICE_WORKERS_JOBS_JOB_SESSION_H
#define SLUICE_WORKERS_JOBS_JOB_SESSION_H

#include "schemas/messages/message_max.h"
#include "schemas/trajectory/verdict.h"

enum { SESSION_URL_MAX = MESSAGE_MAX(session_open, url) };

struct job_session {
    char url[SESSION_URL_MAX + 1]; /* "": it is not open */
    bool is_new;                   /* the broker is to be told */
    struct verdict posted;         /* eval.kind posted; without a reward: none was */
};

#endif
