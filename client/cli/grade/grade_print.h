/* grade_print.h - a verdict, as lines that people read or as one line of JSON. */
#ifndef SLUICE_CLIENT_CLI_GRADE_GRADE_PRINT_H
#define SLUICE_CLIENT_CLI_GRADE_GRADE_PRINT_H

#include "client/cli/grade/grade_jobs.h"

/* What became of the job: sets its status and `printed`. False when out of memory. */
bool grade_print(struct grade_job *job, const struct sluice_trajectory *trajectory,
                 const struct grade_options *options);
/* Of a row that has no json: always a line of JSON. */
bool grade_print_refused(struct grade_job *job);

#endif
