/*
 * shape.h - what tasks are like: how long their stages, calls and tools take, drawn from a stated
 * distribution or taken from recorded trajectories.
 *
 * A distribution is a name of presets.def, or KEY=RANGE,... with the keys of quantities.def. A RANGE is
 *     N       always that
 *     A..B    uniform between them
 *     ~A..B   lognormal: one in twenty is below A, one in twenty above B
 * Seconds may have a unit: ms, s, m or h. Whatever is drawn is held within the key's least and most.
 *
 * Recorded trajectories are JSON lines of `sluice watch --json` or `sluice submit --out`. A group's rollouts are then
 * drawn from those of one recorded group; turns, tokens, tools' seconds and stages' times come as they were together.
 *
 * Each group and rollout has a chance of its own, so that it is the same whatever the fleet is.
 */
#ifndef SLUICE_BROKER_SIMULATE_SHAPE_H
#define SLUICE_BROKER_SIMULATE_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/fail.h"

enum quantity {
#define QUANTITY(name, unit, least, most, doc) QUANTITY_##name,
#include "broker/simulate/quantities.def"
#undef QUANTITY
    QUANTITY_COUNT
};

struct range {
    double low, high;
    bool is_lognormal;
};

struct recorded_turn {
    uint32_t context, sampled; /* tokens before it, and of it */
    float tool_s;              /* from it to the next one */
};

struct recorded {
    char *group;
    uint64_t serial; /* where it stood in the file */
    struct recorded_turn *turns;
    size_t turn_count;
    double init_s, setup_s, eval_s;
};

struct shape {
    struct range ranges[QUANTITY_COUNT];
    struct recorded *recorded;                   /* by group; empty: ranges count */
    size_t recorded_count, *groups, group_count; /* groups[g]: the first of its rollouts */
    uint64_t left_out;                           /* lines that ended as task, infra or cancelled */
};

/* A rollout while its turns are drawn one by one. */
struct walk {
    uint64_t prng;
    uint32_t turn, turns;
    uint64_t context;
    const struct recorded *recorded;
    double setup_s, eval_s;
};

struct turn {
    uint64_t context, sampled; /* tokens before it, and of it */
    double tool_s;             /* until the next; 0 after the last */
};

/* 0, or -EINVAL and which key or word is wrong. */
int shape_parse(struct shape *shape, const char *text, struct fail *fail);
/* 0, or negative errno and, of what is no trajectory, the line and why. */
int shape_read(struct shape *shape, const char *path, struct fail *fail);
void shape_finish(struct shape *shape);

double shape_init_s(const struct shape *shape, uint64_t seed, uint64_t group);
/* Tokens that the group's first prompts have in common. */
uint64_t shape_prompt(const struct shape *shape, uint64_t seed, uint64_t group);
struct walk shape_walk(const struct shape *shape, uint64_t seed, uint64_t group, uint64_t rollout);
/* False when there is none left. */
bool shape_turn(const struct shape *shape, struct walk *walk, struct turn *ret);

#endif
