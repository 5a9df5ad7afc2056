/*
 * core/queue/failures.h - what has gone wrong with a job, and how much of it is borne.
 *
 * Each kind of failure has a budget of its own (core/settings.def): infra outcomes, task
 * outcomes, and workers that died while the job ran alone. Within it a job is tried
 * again after a back-off; beyond it the job is set aside, and what it belongs to ends
 * with its history. Every change of the counts is a PERSIST_FAILURES, so that budgets
 * outlive the broker. A job's failures are its own, NULL while nothing failed, and go
 * when its stage is over.
 */
#ifndef SLUICE_BROKER_CORE_QUEUE_FAILURES_H
#define SLUICE_BROKER_CORE_QUEUE_FAILURES_H

#include "broker/core/core.h"

struct job;

enum {
    HISTORY_MAX = 1024, /* bytes of a job's history: its first sentence and its last ones */
    SENTENCE_MAX = 200  /* bytes of one */
};

struct job_failures {
    int64_t first_ms; /* its sentences' times count from here */
    uint64_t fenced_up_to; /* dispatches up to this one have failed */
    uint16_t infras, tasks, blames;
    uint8_t deaths, missing;
    uint16_t len;
    char history[]; /* lines */
};

/* One failure of a dispatch that is over. */
struct failure {
    enum outcome outcome; /* OUTCOME_INFRA or OUTCOME_TASK */
    enum fault fault;
    struct slice worker, detail;
    struct slice record; /* run: what to keep should the rollout end by this */
    uint64_t eval_ms;
};

/* The job's counts; all zero while it has none. */
const struct job_failures *job_failures(const struct job *job);
/* The stage is over: forgets all of it, and the stage's dispatches. */
void job_clear(struct job *job);
/* Again after a back-off, or the rollout's end. */
void job_fail(struct core *core, struct job *job, const struct failure *failure);
/* The same without using up its budget: something else is known to be at fault. */
void job_fail_uncounted(struct core *core, struct job *job, const struct failure *failure);
/* The worker does not have it (any more), and said nothing: to the front of its queue, so often. */
void job_go_missing(struct core *core, struct job *job);
/* Its worker gave it back, by nobody's fault: the same, and only its total time bounds it. */
void job_return(struct core *core, struct job *job);
/* Its engine serves another tokenizer or chat template than its policy: taken away, it begins again, by nobody's fault. */
void job_evict(struct core *core, struct job *job);
/* What it sampled is too old for its task: it begins again, by nobody's fault. */
void job_refresh(struct core *core, struct job *job);
/* Its worker was lost with it in hand; `alone`: with nothing else. */
void job_lose_worker(struct core *core, struct job *job, struct slice worker, bool alone);
/* `words`, and if it failed before, what its budgets are, what it used of them, and its history. */
struct slice failure_summary(struct core *core, const struct job *job, struct slice words);

#endif
