/* load_reports.h - what a worker tells the broker of engines and of its jobs, beside its beats. */
#ifndef SLUICE_WORKERS_SERVICE_LOAD_REPORTS_H
#define SLUICE_WORKERS_SERVICE_LOAD_REPORTS_H

#include "workers/service/worker_inside.h"

/* Tells the broker what the jobs hold on engines, where that is new. */
void worker_send_loads(struct worker *worker);
/* And which engine a job went to that was told to migrate. */
void worker_send_migrations(struct worker *worker);
/* That one's, if it is not told yet; those of all that migrated, before the next beat: to a broker that forgot. */
void worker_report_migration(struct worker *worker, struct running_job *job);
void worker_report_migrations_again(struct worker *worker);

enum { PROGRESS_A_BEAT = 8 };
/* How far jobs have come, of up to PROGRESS_A_BEAT of those that have; who waits for something first, the longest
 * untold first. */
void worker_send_progress(struct worker *worker);

#endif
