/* init_answer.h - what the first process of a sandbox tells the worker. */
#ifndef SLUICE_WORKERS_SANDBOX_INIT_INIT_ANSWER_H
#define SLUICE_WORKERS_SANDBOX_INIT_INIT_ANSWER_H

#include "workers/sandbox/init/init_inside.h"

/* Ends us where nobody is there any more. */
void init_tell(struct init *init, const struct wire_head *head, const char *text, const int *fds, size_t fd_count);
void init_answer(struct init *init, int64_t result, const int *fds, size_t fd_count);
void init_refuse(struct init *init, const struct fail *fail);

#endif
