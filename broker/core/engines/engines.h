/*
 * core/engines/engines.h - the engines that runs are given, and what run workers see of them.
 *
 * An engine is known while it is registered or a rollout names it. A run worker says of each engine
 * what its own rollouts hold there (engine.load); the sums over all workers are what placing goes by.
 */
#ifndef SLUICE_BROKER_CORE_ENGINES_ENGINES_H
#define SLUICE_BROKER_CORE_ENGINES_ENGINES_H

#include "broker/core/state/engine.h"

struct call;
struct core;

enum {
    AFFINITY_PERCENT = 15,    /* a group's engine is kept up to so much above the mean load */
    ROOM_FREE_PERMILLE = 600, /* of an engine's cache: below, its limit grows ... */
    ROOM_FULL_PERMILLE = 800, /* ... and above, it shrinks until about ... */
    ROOM_GOAL_PERMILLE = 700, /* ... so much would be used */
    ROOM_PERIOD_MS = 5000,    /* between two changes */
    OVERLOAD_PERMILLE = 950,  /* of its cache in use, and ... */
    OVERLOAD_PERCENT = 50,    /* ... so much above the mean load: rollouts migrate */
    PROBES_A_BEAT = 64        /* that a worker is asked for at a time */
};

/* Only knows its name, if it is not registered. NULL when out of memory. */
struct engine *engine_intern(struct core *core, struct slice url);
/* Whether runs may be placed there as far as its health, its admin and its trainer go. */
bool engine_lets(const struct core *core, const struct engine *engine);
/* Whether there is one that lets, of this policy; NULL: of any. */
bool engine_is_ready(const struct core *core, const struct policy *policy);
/* As many runs as its limits allow at a time; UINT64_MAX: there is none. */
uint64_t engine_limit(const struct engine *engine);
/* Makes `engine` (may be NULL) the job's in its stage, which needs one. */
void job_set_engine(struct core *core, struct job *job, struct engine *engine);
/* Of a rollout that ends: it names none any more, neither its run's nor its evaluation's. */
void rollout_leave_engines(struct core *core, struct rollout *rollout);

/* To disk, as it is now. */
void engine_persist(struct core *core, const struct engine *engine);
/* The registered engine of this URL; refuses, NULL, if there is none. */
struct engine *engine_get(struct core *core, const struct call *call, struct slice url, const char *field);
/* One that nobody registers and no rollout names is forgotten. */
void engine_forget_unused(struct core *core, struct engine *engine);

#endif
