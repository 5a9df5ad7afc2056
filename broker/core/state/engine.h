/*
 * core/state/engine.h - engines, the policies they serve, images, and the breakers of both.
 */
#ifndef SLUICE_BROKER_CORE_STATE_ENGINE_H
#define SLUICE_BROKER_CORE_STATE_ENGINE_H

#include "broker/core/state/job.h"
#include "common/containers/heap.h"
#include "common/containers/list.h"
#include "broker/core/state/metrics.h"
#include "common/base/url.h"
#include "schemas/messages/message_max.h"

enum {
    VERSION_MAX = MESSAGE_MAX(lane_engine, version),
    CALLS_MAX = MESSAGE_MAX(lane_engine, calls),
    ERROR_MAX = MESSAGE_MAX(engine_load, error),
    PAUSE_MAX_MS = MESSAGE_MAX(lane_engine, resume_ms)
};

/* ---- breakers (core/engines/breaker.h) -------------------------------------------------- */

struct breaker {
    struct heap_node timer; /* in core->breakers: when a job is let go to try it */
    const struct job *trial;
    int64_t wait_ms;         /* 0: closed */
    int64_t due_ms;          /* open: the trial's time */
    uint64_t newest;         /* open: the newest dispatch there was when it opened */
    uint32_t faults;         /* in a row ... */
    char why[ERROR_MAX + 1]; /* ... and the last one in words */
    bool of_image;
};

/* ---- engines (core/engines/engines.h) --------------------------------------------------- */

/* What one worker's rollouts hold on an engine. */
struct load_report {
    struct engine *engine;
    uint64_t runs, tokens, calls;
};

enum { PROBES_SILENT = 2 }; /* probes in a row without an answer, and an engine is silent */

/* What run workers find who ask it how it is (core/engines/probes.c). */
struct probe {
    struct heap_node timer;    /* in core->probes while it is probed: when the next is due */
    uint32_t unanswered;       /* in a row */
    char error[ERROR_MAX + 1]; /* of the last of them */
};

enum { DIGEST_MAX = MESSAGE_MAX(engine_load, template_digest) };

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
    struct engine_spent spent;
    uint64_t errors[ENGINE_ERROR_COUNT];
    char credentials[URL_MAX + 1]; /* for run workers alone; never shown. "": none */
    uint32_t url_len;
    char url[];
};

/* ---- images (core/engines/images.h) ----------------------------------------------------- */

struct image {
    struct list idle;    /* in core->idle_images while no live group has it, the oldest first */
    struct list working; /* in core->working_images in a step in which it was found to work */
    struct list failed;  /* in core->failed_images while groups that wait for it are being ended */
    struct breaker breaker;
    struct queue waiting; /* init jobs, blocked */
    uint64_t groups;      /* live ones that have it */
    uint32_t round;       /* of counting faults: a group's counts once in each */
    int64_t failed_ms;    /* what has waited since before ends like this: */
    char *verdict;
    uint32_t name_len;
    char name[];
};

#endif
