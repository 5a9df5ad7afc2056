/*
 * Which dispatches may speak for a job: by a result, or by a beat that says that it is held. A fencing token is good
 * for the job, the stage and the run it was issued for, and from the worker, of the key, that it was
 * issued to. The newest is written (PERSIST_LEASE) before the job is sent, so that a broker that is started
 * again believes no other: a token proves nothing by being a number that could have been issued.
 */
#include "broker/core/queue/fencing_tokens.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"

#include <stdlib.h>

static struct slice key_of(const struct fencing_token *issued) { return slice_of(issued->who, issued->key_len); }

static struct slice id_of(const struct fencing_token *issued)
{
    return slice_of(issued->who + issued->key_len, issued->id_len);
}

struct fencing_token *fencing_token_find(const struct job *job, uint64_t token, struct slice key, struct slice id)
{
    struct fencing_token *issued = job->course->tokens;
    while (issued && issued->token != token)
        issued = issued->older;
    return issued && slice_equal(key_of(issued), key) && slice_equal(id_of(issued), id) ? issued : NULL;
}

struct slice fencing_token_worker(const struct job *job)
{
    return job->course->tokens ? id_of(job->course->tokens) : slice_of(NULL, 0);
}

static void drop_oldest(struct job_course *course)
{
    struct fencing_token **at = &course->tokens;
    for (unsigned kept = 0; *at && kept < FENCING_TOKENS_MAX; kept++)
        at = &(*at)->older;
    free(*at);
    *at = NULL;
}

static void remember(struct core *core, struct job *job, uint64_t token, struct slice key, struct slice id)
{
    struct job_course *course = job_course_open(core, job);
    struct fencing_token *issued = course ? core_alloc(core, 1, sizeof(*issued) + key.len + id.len) : NULL;
    if (!issued)
        return;
    issued->token = token;
    issued->key_len = (uint8_t)key.len;
    issued->id_len = (uint8_t)id.len;
    if (key.len)
        memcpy(issued->who, key.data, key.len);
    if (id.len)
        memcpy(issued->who + key.len, id.data, id.len);
    issued->older = course->tokens;
    course->tokens = issued;
    drop_oldest(course);
}

void fencing_token_persist(struct core *core, struct job *job)
{
    struct core_lease lease = {.job = job_name(core, job),
                               .token = job->course->token,
                               .worker = effect_copy(core, worker_id(job->course->worker)),
                               .key = effect_copy(core, worker_key(job->course->worker))};
    struct effect *persist = effect_push(core, PERSIST_LEASE);
    persist->group = effect_copy(core, group_id(job->group));
    persist->stage = job->stage;
    persist->sample = job->sample;
    persist->job = lease.job;
    persist->token = lease.token;
    persist->lease = lease;
}

void fencing_token_issue(struct core *core, struct job *job)
{
    remember(core, job, job->course->token, worker_key(job->course->worker), worker_id(job->course->worker));
    fencing_token_persist(core, job);
}

void fencing_tokens_fence(struct job *job, uint64_t token)
{
    for (struct fencing_token *issued = job->course->tokens; issued; issued = issued->older)
        issued->is_fenced |= issued->token <= token;
}

void fencing_token_restore(struct core *core, struct job *job, const struct core_lease *lease, uint64_t fenced_up_to)
{
    remember(core, job, lease->token, lease->key, lease->worker);
    fencing_tokens_fence(job, fenced_up_to);
}

void fencing_tokens_clear(struct job_course *course)
{
    while (course->tokens) {
        struct fencing_token *older = course->tokens->older;
        free(course->tokens);
        course->tokens = older;
    }
}
