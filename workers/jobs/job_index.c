#include "workers/jobs/job_index.h"

/* FNV-1a: www.isthe.com/chongo/tech/comp/fnv */
static size_t bucket_of(struct slice job)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < job.len; i++)
        hash = (hash ^ job.data[i]) * 0x100000001b3u;
    return (hash ^ hash >> 32) % JOB_INDEX_BUCKETS;
}

void job_index_add(struct job_index *index, struct job_link *link)
{
    LIST_INSERT_HEAD(&index->buckets[bucket_of(link->job)], link, links);
}

void job_index_remove(struct job_link *link) { LIST_REMOVE(link, links); }

void *job_index_find(const struct job_index *index, struct slice job)
{
    const struct job_link *at;
    LIST_FOREACH(at, &index->buckets[bucket_of(job)], links)
    if (slice_equal(at->job, job))
        return at->kept;
    return NULL;
}
