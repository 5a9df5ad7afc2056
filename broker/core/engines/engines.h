/*
 * core/engines/engines.h - the engines that runs are given, what run workers see of them, and which one
 * a rollout is placed on.
 *
 * An engine is known while it is registered or a rollout names it. A run worker says of each engine
 * what its own rollouts hold there (engine.load); the sums over all workers are what placing goes by.
 */
#ifndef SLUICE_BROKER_CORE_ENGINES_ENGINES_H
#define SLUICE_BROKER_CORE_ENGINES_ENGINES_H

#include "broker/core/core.h"
#include "broker/core/engines/breaker.h"
#include "common/base/url.h"

struct call;
struct core;
struct group_work;
struct job;
struct rollout;
struct worker;

enum {
    AFFINITY_PERCENT = 15,    /* a group's engine is kept up to so much above the mean load */
    ROOM_FREE_PERMILLE = 600, /* of an engine's cache: below, its limit grows ... */
    ROOM_FULL_PERMILLE = 800, /* ... and above, it shrinks until about ... */
    ROOM_GOAL_PERMILLE = 700, /* ... so much would be used */
    ROOM_PERIOD_MS = 5000,    /* between two changes */
    OVERLOAD_PERMILLE = 950,  /* of its cache in use, and ... */
    OVERLOAD_PERCENT = 50,    /* ... so much above the mean load: rollouts migrate */
    PROBES_SILENT = 2,        /* probes in a row without an answer, and an engine is silent */
    PROBES_A_BEAT = 64        /* that a worker is asked for at a time */
};

/* What one worker's rollouts hold on an engine. */
struct load_report {
    struct engine *engine;
    uint64_t runs, tokens, calls;
};

enum { VERSION_MAX = 30, CALLS_MAX = 16, ERROR_MAX = 256, PAUSE_MAX_MS = 3600000 }; /* as in messages.def */

/* What run workers find who ask it how it is (core/engines/health.c). */
struct probe {
    struct heap_node timer;    /* in core->probes while it is probed: when the next is due */
    uint32_t unanswered;       /* in a row */
    char error[ERROR_MAX + 1]; /* of the last of them */
};

enum { DIGEST_MAX = 80 }; /* as in messages.def */

/* What of an engine its policy's engines have in common: digests, as trajectories have them. */
struct identity {
    char tokenizer[DIGEST_MAX + 1]; /* "": it cannot be asked */
    char template[DIGEST_MAX + 1];  /* "": nothing is known */
};

/* What some engines serve and some groups want (core/engines/policies.c). */
struct policy {
    struct list link; /* in core->policies */
    struct identity identity;
    uint64_t engines, groups; /* that are of it: registered ones, live ones */
    uint64_t bound;           /* of the groups, those with a run that was recorded with its identity */
    bool is_waited;           /* runs may be blocked because its engines are full, and others are not */
    char name[];
};

/* What was found of an engine in the step at hand, and is not settled yet (core/settle.c). */
enum engine_note {
    ENGINE_READY = 1,    /* it may be given runs again */
    ENGINE_CAPACITY = 2, /* it has capacity for one more */
    ENGINE_DIFFERS = 4   /* it serves something else than its policy */
};

struct engine {
    struct list link;        /* in core->engines */
    struct list noted;       /* in core->noted_engines while it has ... */
    unsigned notes;          /* ... any of enum engine_note */
    uint64_t live;           /* runs leased with it */
    uint64_t refs;           /* rollouts that name it */
    uint64_t blamer;         /* the rollout of its last fault, 0 before the first */
    uint64_t assigned;       /* runs placed there since the start */
    struct load_report seen; /* by all workers together */
    uint32_t runs_max;       /* as its admin set it; 0: no limit */
    uint32_t room;           /* what its cache has room for, as far as is known; 0: no limit */
    int64_t room_ms;         /* when that was changed last */
    uint32_t cache_permille; /* of its cache in use, as it said last, ... */
    bool has_cache;          /* ... if it did */
    struct probe probe;
    int64_t overloaded_since_ms;   /* 0: it is not */
    char version[VERSION_MAX + 1]; /* of the policy it serves; "": nobody said */
    uint64_t version_number;       /* its place among all there were; 0: nobody said */
    char calls[CALLS_MAX + 1];     /* what its pause does to calls in flight; "": it is not paused */
    int64_t resume_ms;             /* when its pause ends by itself */
    uint64_t state;                /* core->engine_states at its last change that workers hear of */
    bool registered, draining;
    struct policy *policy;    /* registered: never NULL */
    struct identity identity; /* as a worker told it last */
    bool is_other;            /* than its policy's */
    bool has_answered;        /* it has answered a probe */
    struct breaker breaker;
    char credentials[URL_MAX + 1]; /* for run workers alone; never shown. "": none */
    uint32_t url_len;
    char url[];
};

/* Only knows its name, if it is not registered. NULL when out of memory. */
struct engine *engine_intern(struct core *core, struct slice url);
/* Whether runs may be placed there as far as its health, its admin and its trainer go. */
bool engine_lets(const struct core *core, const struct engine *engine);
/* Whether there is one that lets, of this policy; NULL: of any. */
bool engine_is_ready(const struct core *core, const struct policy *policy);
/* As many runs as its limits allow at a time; UINT64_MAX: there is none. */
uint64_t engine_limit(const struct engine *engine);
/* Makes `engine` (may be NULL) the rollout's. */
void rollout_set_engine(struct core *core, struct rollout *rollout, struct engine *engine);

/* To disk, as it is now. */
void engine_persist(struct core *core, const struct engine *engine);
/* The registered engine of this URL; refuses, NULL, if there is none. */
struct engine *engine_get(struct core *core, const struct call *call, struct slice url, const char *field);
/* One that nobody registers and no rollout names is forgotten. */
void engine_forget_unused(struct core *core, struct engine *engine);

#endif
