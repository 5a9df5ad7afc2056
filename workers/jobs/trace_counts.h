/* trace_counts.h - the traces of a record by why they began, as the field `traces` of job.result. */
#ifndef SLUICE_WORKERS_JOBS_TRACE_COUNTS_H
#define SLUICE_WORKERS_JOBS_TRACE_COUNTS_H

#include "schemas/trajectory/trajectory.h"

/* By the word before the colon of each reason, "first" without one; those beyond a few words are "other". */
void trace_counts_write(const struct record *record, struct buffer *out);

#endif
