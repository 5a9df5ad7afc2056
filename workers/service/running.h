/*
 * running.h - the jobs a worker is working on, each in a fiber of its own. A job that was
 * cancelled is no longer found, counted or listed, but stays in `leaving` until its fiber ended.
 * One that does not end soon, because a file system does not answer, is stuck and takes a slot.
 */
#ifndef SLUICE_WORKERS_SERVICE_RUNNING_H
#define SLUICE_WORKERS_SERVICE_RUNNING_H

#include <sys/queue.h>
#include <zmq.h>

#include "common/containers/table.h"
#include "workers/jobs/job.h"
#include "workers/jobs/shared_task.h"
#include "workers/runtime/activity.h"

struct running_job {
    TAILQ_ENTRY(running_job) links;
    struct running *running;
    struct job job;
    zmq_msg_t message;          /* what job.start borrows from, unless that is small and in job.bytes */
    struct shared_task *shared; /* has its task; NULL: it has one of its own ... */
    struct task *own_task;      /* ... which is this, once it was read */
    struct fiber *fiber;
    struct activity activity;
    uint64_t told_changes; /* of its activity that the broker was told of */
    uint64_t token;        /* of its newest dispatch; job.start.token is the first */
    int64_t started_ms;
    struct loop_timer *overdue_timer;
    int64_t given_ms; /* of the fiber's time that the timer knows of */
    bool is_cancelled;
    int64_t cancelled_ms;
};
TAILQ_HEAD(running_list, running_job);

struct running {
    const struct job_context *context;
    struct running_list live, leaving;
    struct table by_job; /* the live ones */
    size_t live_count, leaving_count;
    struct running_list spare; /* room of jobs that have ended: malloc is slow with pieces of that size */
    size_t spare_count;
    /* Called on the loop's stack when a job ended, cancelled or not; it is freed afterwards. */
    void (*ended)(void *arg, struct running_job *ended);
    /* Called likewise when all a job's time is over and its fiber has not ended: cancel it. */
    void (*overdue)(void *arg, struct running_job *job);
    void *arg;
};

/* The caller sets `ended`, `overdue` and `arg`. */
void running_init(struct running *running, const struct job_context *context);
void running_finish(struct running *running); /* its jobs have ended */

struct running_job *running_find(const struct running *running, struct slice job); /* NULL: none */

/* A job.start as it came. */
struct ordered_job {
    const struct msg_job_start *start;
    struct slice bytes;         /* that `start` borrows from */
    zmq_msg_t *frame;           /* that has them alone, and is taken where it is large; NULL: there is none */
    struct shared_task *shared; /* has its task, if it has none of its own; else it may be NULL */
};

/* False when out of memory: nothing happened. */
bool running_start(struct running *running, const struct ordered_job *ordered);
void running_cancel(struct running *running, struct running_job *job);
/* How many jobs it can hold now, of the slots it was given: less those that were cancelled 5
 * s ago and have not ended. */
uint64_t running_slots(const struct running *running, uint64_t given);

/* Appends (job, token) of each, as jobs_append; false when out of memory. */
bool running_list_jobs(const struct running *running, struct buffer *packed);

#endif
