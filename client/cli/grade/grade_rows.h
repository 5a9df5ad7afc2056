/*
 * grade_rows.h - rows of what agents left, a JSON object a line: "task", the id of a task of the file, which may be
 * left out where there is one alone; "files", as --files, or a list of such; "text", the last words.
 */
#ifndef SLUICE_CLIENT_CLI_GRADE_GRADE_ROWS_H
#define SLUICE_CLIENT_CLI_GRADE_GRADE_ROWS_H

#include "client/cli/grade/grade_jobs.h"

/* path "-" is stdin. A job for each row, also for one that is none. False, with a sentence said, if unreadable. */
bool grade_rows_read(struct grade_jobs *jobs, const char *path);

#endif
