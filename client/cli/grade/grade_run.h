/* grade_run.h - a service of this command's own at work: started, given the jobs, waited for, and gone. */
#ifndef SLUICE_CLIENT_CLI_GRADE_GRADE_RUN_H
#define SLUICE_CLIENT_CLI_GRADE_GRADE_RUN_H

#include "client/cli/grade/grade_jobs.h"

/* Prints the verdicts in the order of the jobs, each once it and all before it are there.
 * The worst of their statuses. */
enum grade_status grade_run(struct grade_jobs *jobs);

#endif
