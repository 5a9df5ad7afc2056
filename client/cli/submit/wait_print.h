/* wait_print.h - how the groups that were waited for ended, for people and for programs. */
#ifndef SLUICE_CLIENT_CLI_SUBMIT_WAIT_PRINT_H
#define SLUICE_CLIENT_CLI_SUBMIT_WAIT_PRINT_H

#include "client/cli/submit/wait.h"

/* Task, rewards, mean and outcomes, in the order of the file. */
void wait_print(const struct wait *wait, const struct tasks_file *tasks, FILE *out);
/* The same as JSON, one object a group. */
void wait_print_json(const struct wait *wait, const struct tasks_file *tasks, FILE *out);

#endif
