/*
 * simulate.h - what a fleet would do: the broker's real core (broker/core/core.h), driven by a made-up clock,
 * with workers, engines and tasks that are only described. The core gets what it gets in earnest:
 * submits, beats, results, and every second what workers see of engines. Messages take no time.
 *
 * An engine has at most calls_max calls in hand; others wait in the order they came. A call's prompt is
 * read first, after those before it, as far as the prefix cache does not have it. Then it samples:
 * the engine's tokens_per_s are shared equally by the calls that sample, at most call_tokens_per_s for each.
 *
 * With a sampler (docs/sampler.md) there is a trainer, too: it asks for a batch, learns from it for train_s, and
 * asks for the next. What a rollout is rewarded is 1 with its group's chance, which is uniform between two bounds,
 * and else 0.
 *
 * It is measured from when as many rollouts have ended as there are run slots (at least 200) until half as
 * many again have (at least 600). Where less is queued than keeps the slots full until then it is all, start and end
 * included.
 */
#ifndef SLUICE_BROKER_SIMULATE_SIMULATE_H
#define SLUICE_BROKER_SIMULATE_SIMULATE_H

#include "broker/core/core.h"
#include "broker/simulate/shape.h"

struct speed {
    double tokens_per_s, call_tokens_per_s, prefill_per_s; /* of an engine; of a call of it */
    uint64_t calls_max, cache_tokens;
};

struct fleet {
    uint64_t slots[STAGE_COUNT], workers[STAGE_COUNT]; /* slots: of each worker */
    uint64_t engines;
    struct speed speed;
};

struct sampling {
    uint64_t groups;                            /* of a batch; 0: there is no sampler */
    uint64_t ahead, window, over_sample, early; /* as in sampler.open; 0: its preset, but of ahead */
    double train_s, hardest, easiest;           /* the chances' bounds */
};

struct load {
    const struct shape *shape;
    struct sampling sampling;
    uint64_t samples, groups, seed; /* groups: submitted in all */
    double per_hour;                /* rollouts submitted, at random times; 0: all at the start */
};

/* What may be the bottleneck. PART(name, "what it is called", "what is added when it is short") */
#define PARTS(X)                                                                                                       \
    X(INIT, "init", "init slots", "init slots")                                                                        \
    X(RUN, "run", "run slots", "run slots")                                                                            \
    X(EVAL, "eval", "eval slots", "eval slots")                                                                        \
    X(SAMPLING, "sampling", "engines, sampling", "engines, or faster ones")                                            \
    X(PROMPTS, "prompts", "engines, reading prompts", "engines, or ones with more cache")

enum part {
#define X(name, key, words, remedy) PART_##name,
    PARTS(X)
#undef X
        PART_COUNT
};

struct part_figures {
    uint64_t has;    /* slots, or engines */
    double busy;     /* of them, over the measured time */
    double per_hour; /* rollouts that it could do if it waited for nothing else; INFINITY: takes no time */
    bool waited;     /* anything at all, so that the next two say something */
    double wait_p50_s, wait_p99_s; /* until a slot; PROMPTS: from a call to its first token */
};

struct figures {
    double per_hour, from_s, to_s; /* rollouts ended; of made-up time */
    uint64_t ended, looked_at;     /* between these two; until the end */
    bool is_whole;                 /* start and end are in it */
    struct part_figures parts[PART_COUNT];
    double calls, call_tokens_per_s; /* that sample at a time; and how fast each is */
    double cached;                   /* of all prompt tokens */
    double run_s;                    /* a rollout in the run stage, mean */
    uint64_t events;
    uint64_t batches; /* told while it was measured */
    double kept;      /* of the groups that got a verdict then */
    double learning;  /* of that time the trainer had a batch */
};

/* Now and then: how much of it is done, 0 to 1. */
typedef void (*simulate_progress)(void *arg, double done);

/* How many rollouts must be queued so that so many run slots are measured in a steady state. */
uint64_t simulate_enough(uint64_t run_slots, uint64_t samples, const struct sampling *sampling);

/* 0, or -ENOMEM. */
int simulate(const struct fleet *fleet, const struct load *load, simulate_progress progress, void *arg,
             struct figures *ret, struct fail *fail);

#endif
