/* grade_read.h - a command line of `sluice grade --task` as jobs: the tasks that it chose, or its rows. */
#ifndef SLUICE_CLIENT_CLI_GRADE_GRADE_READ_H
#define SLUICE_CLIENT_CLI_GRADE_GRADE_READ_H

#include "client/cli/grade/grade_jobs.h"

/*
 * False, with sentences said, where what is asked for cannot be: no such task, no engine for a judge. What is wrong
 * with a row is in its job.
 */
bool grade_read(struct grade_jobs *jobs, const struct grade_options *options);

#endif
