/*
 * simulate.h - what a fleet would do: the broker's real core (broker/core/core.h), driven by a made-up clock,
 * with workers, engines and tasks that are only described. The core gets what it gets in earnest:
 * submits, beats, results, and every second what workers see of engines. Messages take no time.
 *
 * An engine has at most calls_max calls in hand; others wait in the order they came. A call's prompt is
 * read first, after those before it, as far as the prefix cache does not have it. Then it samples:
 * the engine's tokens_per_s are shared equally by the calls that sample, at most call_tokens_per_s for each.
 *
 * With batches there is a trainer, too: it has a sampler make them (docs/sampler.md), or gets them by submits and
 * cancels of its own (trainer/by_hand.c), and learns from each for train_s. What a rollout is rewarded is 1 with its
 * group's chance, which is uniform between two bounds, and else 0.
 *
 * It is measured from when as many rollouts have ended as there are run slots (at least 200) until half as
 * many again have (at least 600); with batches, from when 4 have been told until 20 have. Where less is queued than
 * keeps the slots full until then it is all, start and end included.
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

/* How a trainer gets its batches. WAY(NAME, "word") */
#define SAMPLING_WAYS(X)                                                                                               \
    X(SAMPLER, "sampler")                                                                                              \
    X(ROUNDS, "rounds")                                                                                                \
    X(CARRY_PROMPTS, "carry-prompts")

enum sampling_way {
#define X(name, word) SAMPLING_##name,
    SAMPLING_WAYS(X)
#undef X
};

/* The bounds of the chances. */
struct solved {
    double least, most;
};

enum { SOLVED_MAX = 64 };

struct sampling {
    uint64_t groups; /* of a batch; 0: there are no batches */
    enum sampling_way way;
    uint64_t round;                             /* groups of a round */
    uint64_t ahead, window, over_sample, early; /* as in sampler.open; 0: its preset, but of ahead */
    double train_s;
    /* By version; the last holds from then on. Of several, so many batches are measured, the first among them. */
    struct solved solved[SOLVED_MAX];
    size_t solved_count; /* with batches 1 at least */
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
    uint64_t batches; /* told while it was measured; all that follows is of that time */
    double kept;      /* of the groups that got a verdict */
    double learning;  /* of the time the trainer had a batch */
    /* Groups: of which a run began; in batches, with equal rewards, and thrown away, begun or not. */
    uint64_t asked, taken, filtered, wasted;
    double age; /* versions that a batch's groups were begun before it, mean */
    /* Sampled: in calls that ended or were cancelled; in groups of batches, filtered, and thrown away. What is at
     * work or ready is in none of these three. */
    uint64_t tokens, tokens_taken, tokens_filtered, tokens_wasted;
};

/* Now and then: how much of it is done, 0 to 1. */
typedef void (*simulate_progress)(void *arg, double done);

const char *sampling_way_word(enum sampling_way way);
/* How many rollouts must be queued so that so many run slots are measured in a steady state. */
uint64_t simulate_enough(uint64_t run_slots, uint64_t samples, const struct sampling *sampling);

/* 0, or -ENOMEM. */
int simulate(const struct fleet *fleet, const struct load *load, simulate_progress progress, void *arg,
             struct figures *ret, struct fail *fail);

#endif
