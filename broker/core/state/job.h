/*
 * core/state/job.h - jobs, and the rollouts and groups they belong to.
 *
 * A job is in exactly one place (job->place) and, but for PLACE_NONE, in the one queue
 * of that place; only core/queue/jobs.c moves it. A group whose init is to be done is
 * folded: all its rollouts live, and nothing is kept of any of them. It unfolds when its
 * init is done, or when one of them ends before. What only a live group needs (struct
 * group_work) goes when its last rollout has ended, its rollouts' numbers when they are
 * acknowledged, and its name, by which a late submit is known, when forgotten_max other
 * groups were acknowledged after it. There may be a million rollouts.
 */
#ifndef SLUICE_BROKER_CORE_STATE_JOB_H
#define SLUICE_BROKER_CORE_STATE_JOB_H

#include "broker/core/state/interface.h"
#include "common/containers/heap.h"
#include "common/containers/list.h"

struct core;
struct engine;
struct policy;
struct image;
struct sampled;
struct fencing_token;
struct stream;
struct job_failures;
struct worker;

/* ---- jobs -------------------------------------------------------------------------- */

/* Where a job is. The last column is rollout.state's word for it. */
#define PLACES(X)                                                                                                      \
    X(NONE, "queued")   /* its stage has not begun, or it has ended: in no queue */                                    \
    X(ORPHAN, "queued") /* restored; waits for a beat to adopt it */                                                   \
    X(QUEUED, "queued")                                                                                                \
    X(ISOLATED, "queued")  /* queued, to run alone on an idle worker */                                                \
    X(BLOCKED, "queued")   /* waits for an engine, init for its image */                                               \
    X(UNOFFERED, "queued") /* waits for a worker with a slot that offers what it needs */                              \
    X(HELD, "queued")      /* init of a sampler's group, not released */                                               \
    X(DELAYED, "delayed")  /* waits out its back-off */                                                                \
    X(LEASED, "leased")

enum place {
#define X(name, wire) PLACE_##name,
    PLACES(X)
#undef X
        PLACE_COUNT
};

/* What a job has gone through in its stage: its own from its first dispatch on, the same empty one before. */
struct job_course {
    struct worker *worker;         /* leased: who has it */
    uint64_t token;                /* of its last dispatch, 0 before the first */
    struct fencing_token *tokens;  /* the dispatches that may speak for it, the newest first */
    struct job_failures *failures; /* NULL while nothing failed */
    uint32_t attempt;
    uint32_t seen; /* leased: the worker's last beat that listed it */
};

extern const struct job_course job_course_empty;

/* One stage of one rollout, or a group's init. */
struct job {
    struct list link;       /* in the queue of its place */
    struct heap_node timer; /* leased: its deadline; delayed: the end of its back-off; its key alone, while it waits in
                               other places: since when, without a break, 0 for not at all */
    uint16_t sample;
    uint8_t stage, place;
    struct group *group;
    int64_t since_ms; /* in this place since */
    const struct job_course *course;
};

struct queue {
    struct list jobs;
    size_t count;
};

struct rollout {
    struct job job;
    struct engine *engine;    /* of its last run; holds a reference */
    char *detail;             /* of its run, or NULL */
    uint64_t seq;             /* once ended; 0 if acknowledged before the broker's start */
    uint32_t wait_ms, run_ms; /* by core_ms */
    uint32_t record_bytes;    /* of its run's record */
    uint8_t run_outcome;
    bool avoids_engine : 1;       /* its last job of this stage, on the engine that it has, was an infra outcome */
    bool is_run_again : 1;        /* what its first run left had gone from the store */
    bool was_told_to_migrate : 1; /* in the run that is leased */
    bool ended : 1;
};

_Static_assert(sizeof(struct job) <= 56 && sizeof(struct rollout) <= 96, "a million of them");

/* ---- groups and rollouts ----------------------------------------------------------- */

/* Of a group whose evaluator samples: whose engines, and the one that each rollout's evaluation is, or was last, on. */
struct judging {
    struct policy *policy;
    struct engine *engines[]; /* one a rollout, or NULL; each holds a reference */
};

/* From large to small, so that nothing is lost between them. */
struct group_work {
    uint64_t serial; /* grows with each group */
    char *init_layer;
    struct policy *policy;    /* whose engines its runs need; NULL: none */
    struct judging *judging;  /* NULL: its evaluations need no engine */
    struct image *image;      /* NULL: not watched */
    struct sampled *sampled;  /* what its stream's sampler knows of it; NULL: it has none */
    struct rollout *rollouts; /* all of them; NULL: it is folded */
    struct job init;
    int64_t ends_ms;         /* when its whole time is over */
    struct heap_node expiry; /* in core->expiries */
    uint32_t total_ms;       /* that whole time */
    uint32_t lease_ms;       /* 0: none */
    uint32_t limit_ms[STAGE_COUNT];
    uint32_t init_ms, init_wait_ms; /* by core_ms */
    uint32_t image_round;           /* of its image, when its fault was counted last */
    uint32_t task_bytes;
    uint16_t live;                /* rollouts that have not ended */
    uint16_t run_need, eval_need; /* numbers in core->needs; 0: none */
    uint8_t priority;             /* below PRIORITIES */
    bool needs_engine : 1;
    bool init_done : 1;
    bool is_bound : 1;     /* a run of it was recorded, with its policy's identity */
    bool reads_record : 1; /* its evaluation is given the run's record */
    char task_id[];
};

struct group {
    union {
        struct list live;       /* while it has work: in its stream's `live`, the oldest first ... */
        struct heap_node ended; /* ... then, while it has numbers: in its stream's `ended`, by the last ... */
        struct list forgotten;  /* ... and then in core->forgotten, the first one first */
    };
    struct stream *stream;
    struct group_work *work; /* NULL once all its rollouts have ended ... */
    uint64_t *seqs;          /* ... then their numbers; NULL once all are acknowledged */
    uint64_t task_hash;
    uint16_t samples, id_len;
    char id[];
};

_Static_assert(offsetof(struct group_work, task_id) <= 176 && offsetof(struct group, id) <= 52, "a million of them");

/* ---- failures ----------------------------------------------------------------------- */

/* One failure of a dispatch that is over. */
struct failure {
    enum outcome outcome; /* OUTCOME_INFRA or OUTCOME_TASK */
    enum fault fault;
    struct slice worker, detail;
    struct slice record; /* run: what to keep should the rollout end by this */
    uint64_t eval_ms;
};

#endif
