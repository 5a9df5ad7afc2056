/*
 * shared_task.h - what jobs of a group share that came together (job.task): the task, as text and as it was read, and
 * the layer that init left. Its owners are counted, and all on one thread; nobody changes it.
 */
#ifndef SLUICE_WORKERS_JOBS_SHARED_TASK_H
#define SLUICE_WORKERS_JOBS_SHARED_TASK_H

#include "schemas/messages/message.h"
#include "schemas/task/task.h"

struct shared_task {
    unsigned owners;
    struct buffer bytes;
    struct msg_job_task said; /* borrows from bytes */
    struct task *task;        /* NULL: not read yet, or it is refused */
};

/* `said` was decoded from the bytes, which are copied. NULL when out of memory. */
struct shared_task *shared_task_create(const struct msg_job_task *said, struct slice bytes);
struct shared_task *shared_task_keep(struct shared_task *shared); /* one owner more */
void shared_task_release(struct shared_task **shared);            /* one owner less; NULL-safe */

/* Good for as long as the owner keeps it. NULL with a refusal, as task_parse. */
const struct task *shared_task_read(struct shared_task *shared, struct refusal *no);

/* Gives a job that came without a task what it shares. */
void shared_task_fill(const struct shared_task *shared, struct msg_job_start *start);

#endif
