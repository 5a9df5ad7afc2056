/*
 * trainer.h - inside of simulate.h: a trainer that learns from batches of groups, in one of three ways (enum
 * sampling_way). Nothing of it happens where there is no batch.
 *
 * Each group is in one state, and what is sampled in it counts there: so what is sampled in all is the sum over states.
 */
#ifndef SLUICE_BROKER_SIMULATE_TRAINER_TRAINER_H
#define SLUICE_BROKER_SIMULATE_TRAINER_TRAINER_H

#include "broker/simulate/gauge.h"

#include <stdbool.h>
#include <stddef.h>

struct effect;
struct group;
struct job;
struct sampling;
struct world;

enum group_state {
    GROUP_LIVE,     /* submitted; no verdict yet */
    GROUP_READY,    /* its rewards are not all equal; in no batch yet */
    GROUP_IN_BATCH, /* the trainer has been told it */
    GROUP_FILTERED, /* its rewards are all equal */
    GROUP_WASTED,   /* cancelled, or ready when the batch was full, and thrown away */
    GROUP_STATES
};

struct tally {
    uint64_t asked, kept;                                /* groups of which a run began; that were ready, ever */
    uint64_t groups[GROUP_STATES], tokens[GROUP_STATES]; /* tokens: of calls that ended or were cancelled */
    uint64_t ages;                                       /* summed over the groups in batches */
};

struct trainer {
    uint64_t batches, version; /* told to it; that it has learned from */
    struct tally tally;
    struct level learning;
    /* by hand: */
    bool is_filling;  /* a batch; else it learns */
    uint64_t first;   /* of the groups submitted for this batch */
    uint64_t waiting; /* rollouts submitted whose run has not begun */
    uint32_t carried; /* first of the groups whose prompts are to be submitted again, or NOBODY */
};

/* ---- groups (groups.c) ---------------------------------------------------------------------------- */

void group_submitted(struct world *world, struct group *group);
void group_run_begins(struct world *world, struct group *group);
void group_count_tokens(struct world *world, struct group *group, uint64_t tokens);
void group_move(struct world *world, struct group *group, enum group_state state);
/* The job's number among all rollouts of its group's prompt. */
uint64_t group_sample(const struct world *world, const struct job *job);
/* What the rollout whose eval ends is rewarded: 1 or 0; without batches 1. */
double group_reward(const struct world *world, const struct job *job);
/* Of all groups of so many rollouts, the share whose rewards are not all equal; of what is learned the least. */
double sampling_acceptance(const struct sampling *sampling, uint64_t samples);

/* ---- what it does with a batch, whichever its way (trainer.c) ---------------------------------------- */

/* Whether the trainer itself submits, waits, filters and cancels. */
bool trainer_is_by_hand(const struct sampling *sampling);
/* It has a batch, and learns. */
void trainer_learns(struct world *world);
/* If it did. */
void trainer_has_learned(struct world *world);

/* ---- its ways -------------------------------------------------------------------------------------- */

/* A sampler of the broker's (by_sampler.c). */
void by_sampler_begin(struct world *world);
void by_sampler_ask(struct world *world);
void by_sampler_see(struct world *world, const struct effect *effect);
/* Submits and cancels of its own (by_hand.c). */
void by_hand_see(struct world *world, const struct effect *effect);
/* By hand: does what is to be done now. True if it has said something to the core. */
bool by_hand_acts(struct world *world);

/* ---- the way that was chosen (ways.c) ---------------------------------------------------------------- */

/* Before the first submit. */
void trainer_begin(struct world *world);
/* It has learned, or waited in vain: it wants the next batch. */
void trainer_ask(struct world *world);
/* What the core says to it, and of groups. */
void trainer_see(struct world *world, const struct effect *effect);

#endif
