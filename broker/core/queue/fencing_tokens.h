/*
 * core/queue/fencing_tokens.h - the dispatches that may speak for a job.
 */
#ifndef SLUICE_BROKER_CORE_QUEUE_FENCING_TOKENS_H
#define SLUICE_BROKER_CORE_QUEUE_FENCING_TOKENS_H

#include "broker/core/state/interface.h"

struct core;
struct job;
struct job_course;

enum { FENCING_TOKENS_MAX = 8 /* of a job are remembered, the newest */ };

/* One dispatch of a job's stage at hand. What it was issued for, and to whom, is what makes a fencing token good. */
struct fencing_token {
    struct fencing_token *older;
    uint64_t token;
    bool is_fenced; /* it has failed: it is never adopted, and no failure of it counts again */
    uint8_t key_len, id_len;
    char who[]; /* the name of its worker's key, empty where there are none, and its id */
};

/* The dispatch of this token, if it was issued for this stage of this job to that worker of that key; else NULL. */
struct fencing_token *fencing_token_find(const struct job *job, uint64_t token, struct slice key, struct slice id);
/* Who got the newest dispatch of this stage; empty: nobody, or it is not known any more. */
struct slice fencing_token_worker(const struct job *job);
/* The leased job's dispatch is written before it is sent. */
void fencing_token_issue(struct core *core, struct job *job);
/* The leased job's dispatch, an earlier one, is the one at hand again: it is what a restart must know. */
void fencing_token_persist(struct core *core, struct job *job);
/* Dispatches up to this token have failed. */
void fencing_tokens_fence(struct job *job, uint64_t token);
/* A dispatch that the ledger holds: of it, and of those up to `fenced_up_to`, that they have failed is known. */
void fencing_token_restore(struct core *core, struct job *job, const struct core_lease *lease, uint64_t fenced_up_to);
/* Its stage is over: none of them may speak for it any more. */
void fencing_tokens_clear(struct job_course *course);

#endif
