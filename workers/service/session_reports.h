/* session_reports.h - that a worker takes sessions (sessions.h), and what it tells the broker of them. */
#ifndef SLUICE_WORKERS_SERVICE_SESSION_REPORTS_H
#define SLUICE_WORKERS_SERVICE_SESSION_REPORTS_H

#include "workers/service/worker_inside.h"

/* Opens the listener, if it was told to. */
int worker_take_sessions(struct worker *worker, struct fail *fail);
/* What it takes beyond what any worker of its stage does: sessions, and what its handlers offer. */
struct slice worker_say_offers(struct worker *worker);

/* Where sessions are that were opened since; behind a beat, by which the broker knows whose the jobs are. */
void worker_send_sessions(struct worker *worker);
/* Those of all are to be told once more: to a broker that forgot, and now and then, as whatever is sent may be lost. */
void worker_report_sessions_again(struct worker *worker);
void worker_remind_of_sessions(struct worker *worker); /* with each beat */

#endif
