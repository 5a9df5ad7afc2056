/*
 * job_index.h - what a worker keeps by the name of its job, found in time that does not grow with
 * how much it keeps. The links are part of what is kept; nothing is allocated.
 */
#ifndef SLUICE_WORKERS_JOBS_JOB_INDEX_H
#define SLUICE_WORKERS_JOBS_JOB_INDEX_H

#include <sys/queue.h>

#include "common/base/slice.h"

enum { JOB_INDEX_BUCKETS = 4096 };

struct job_link {
    LIST_ENTRY(job_link) links;
    struct slice job;
    void *kept; /* what it is part of */
};
LIST_HEAD(job_bucket, job_link);

struct job_index { /* begins as zeroes */
    struct job_bucket buckets[JOB_INDEX_BUCKETS];
};

/* The caller has set `job`, whose bytes stay where they are until the link is removed, and `kept`. */
void job_index_add(struct job_index *index, struct job_link *link);
void job_index_remove(struct job_link *link);
void *job_index_find(const struct job_index *index, struct slice job); /* `kept`; NULL: none */

#endif
