/*
 * turns.h - the turns of a rollout while it works, one after the other: those of the record's traces, and behind them
 * those that are not in it yet, of which a harness's or a session's are (agents/proxy/tree_shown.h). Nothing is copied.
 */
#ifndef SLUICE_WORKERS_LIVE_TURNS_H
#define SLUICE_WORKERS_LIVE_TURNS_H

#include "schemas/trajectory/trajectory.h"

#define LIVE_NO_TURN SIZE_MAX

struct activity;

struct live_turn {
    const struct record_turn *turn; /* of an assistant's; else NULL */
    const char *role;
    const uint32_t *ids;
    const float *logprobs; /* NULL: it was not sampled */
    size_t count;
    size_t after;       /* LIVE_NO_TURN: a trace starts with it, ... */
    const char *reason; /* ... for this reason */
    size_t trace;
};

/* Turns that are not in the record. */
struct live_turns {
    size_t (*count)(const void *arg);
    /* `at` is below count; numbers in *ret are of these turns and traces alone, from 0 on. */
    void (*get)(const void *arg, size_t at, struct live_turn *ret);
    const void *arg;
};

/* All there are of the job, and one of them. */
size_t live_turns_count(const struct activity *activity);
void live_turns_get(const struct activity *activity, size_t at, struct live_turn *ret);

#endif
