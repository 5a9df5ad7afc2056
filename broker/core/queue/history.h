/*
 * core/queue/history.h - what has gone wrong with a job: its counts and, as sentences, its history.
 *
 * A job's failures are its own, NULL while nothing failed, and go when its stage is over. Every change of the counts
 * is a PERSIST_FAILURES, so that budgets outlive the broker.
 */
#ifndef SLUICE_BROKER_CORE_QUEUE_HISTORY_H
#define SLUICE_BROKER_CORE_QUEUE_HISTORY_H

#include "broker/core/state/job.h"

struct core;

enum {
    HISTORY_MAX = 1024, /* bytes of a job's history: its first sentence and its last ones */
    SENTENCE_MAX = 200  /* bytes of one */
};

struct job_failures {
    int64_t first_ms;      /* its sentences' times count from here */
    uint64_t fenced_up_to; /* dispatches up to this one have failed */
    uint16_t infras, tasks, blames;
    uint8_t deaths, missing;
    bool by_handler; /* the last of them: a handler of the worker's was at fault */
    uint16_t len;
    char history[]; /* lines */
};

/* The job's counts; all zero while it has none. */
const struct job_failures *job_failures(const struct job *job);
/* The same to be changed, made if there is none; NULL when out of memory. */
struct job_failures *history_open(struct core *core, struct job *job);
/* A line's beginning and how much of `words`, of one line, still fits; NULL when out of memory. */
struct job_failures *history_note(struct core *core, struct job *job, const char *what, struct slice words);
struct job_failures *history_note_failure(struct core *core, struct job *job, const struct failure *failure);
/* To disk, as it is now. */
void history_persist(struct core *core, const struct job *job);
bool history_restore(struct core *core, struct job *job, const struct core_failures *row);
/* The stage is over: forgets all of it, and the stage's dispatches. */
void job_clear(struct job *job);
/* `words`, and if it failed before, what its budgets are, what it used of them, and its history. */
struct slice failure_summary(struct core *core, const struct job *job, struct slice words);

#endif
