/*
 * core/state/worker.h - workers, those lost of late, and conflicts about their ids.
 */
#ifndef SLUICE_BROKER_CORE_STATE_WORKER_H
#define SLUICE_BROKER_CORE_STATE_WORKER_H

#include "broker/core/state/job.h"
#include "common/containers/heap.h"
#include "common/containers/list.h"
#include "schemas/messages/message_max.h"

struct load_report;
struct offers;

/* ---- workers (core/workers/workers.h) -------------------------------------------------- */

/* What an admin told a worker. */
struct drain {
    bool told, has_grace;
    uint32_t grace_s;
};

struct worker {
    struct list link;      /* in core->workers, the one with the oldest beat first */
    struct heap_node free; /* in core->free[stage] while it may be given jobs */
    struct queue jobs;     /* leased to it */
    struct job *isolated;  /* the one that runs alone, or NULL */
    char *key;             /* the name of its key; NULL where nobody is asked for one */
    char *lane, *host;
    char *unreached;                                   /* why its lane does not lead to it yet, or NULL ... */
    bool is_refused;                                   /* ... as it is not connected to, as things are */
    char *sandbox, *sandbox_why, *kernel, *node_error; /* of its node, as it says; each may be NULL */
    uint32_t sandboxes;
    char *offered;             /* what its handlers offer, as it says; NULL: nothing, ... */
    char *offers_error;        /* ... and what of it is no offer, and why, or NULL */
    struct offers *offers;     /* shared with those that offer the same; NULL: it offers nothing */
    struct heap_node offering; /* in offers->free while it may be given jobs */
    uint32_t free_offered;     /* its slots in offers->free_slots */
    enum stage stage;
    uint32_t slots;               /* never below what it holds */
    uint32_t beat;                /* number of its last beat */
    int64_t beat_ms, progress_ms; /* last beat; last beat with progress */
    uint64_t progress;
    struct drain drain;
    struct load_report *loads;        /* run, eval: what it sees of engines ... */
    size_t load_count, load_capacity; /* ... one each */
    uint64_t heard;                   /* run, eval: the newest lane.engine it has taken */
    uint32_t counted;                 /* its slots in core->slots */
    bool draining, stalled;
    bool bundles;       /* several messages may go to it as one, and it is told that they may come so */
    bool shares_tasks;  /* ... and what jobs of a group share may come once in such (job.task) */
    bool calls_engines; /* a run worker, or an eval worker that says so: one of an earlier release does not */
    bool hung;          /* its lane is closed until it makes progress */
    uint32_t id_len;
    char id[];
};

enum { OFFERS_TEXT_MAX = MESSAGE_MAX(worker_beat, offers), OFFERS_ERROR_MAX = 255 };

/* It takes no new jobs, whatever slots it has. */
static inline bool worker_is_out(const struct worker *worker)
{
    return worker->draining || worker->hung || worker->unreached;
}
/* ---- lost ones (core/workers/lost_workers.h) ------------------------------------------- */

enum {
    LOST_WORKERS_MAX = 256,
    WORKER_NAME_MAX = MESSAGE_MAX(worker_beat, worker),
    HOST_NAME_MAX = MESSAGE_MAX(worker_beat, host)
};
enum { WORKER_KEY_MAX = 64 /* as in common/net/keys.h */, ID_CONFLICTS_MAX = 64 };

/* In words, and as a label of metrics. */
#define LOSS_WHYS(X)                                                                                                   \
    X(NO_BEAT, "no beat", "no-beat")                                                                                   \
    X(LANE_BROKE, "its lane broke", "lane-broke")                                                                      \
    X(NO_PROGRESS, "no progress", "no-progress")                                                                       \
    X(OTHER_STAGE, "it came back for another stage", "other-stage")

enum loss_why {
#define X(name, words, label) LOSS_##name,
    LOSS_WHYS(X)
#undef X
        LOSS_COUNT
};

struct lost_worker {
    int64_t at_ms;
    enum stage stage;
    enum loss_why why;
    uint64_t jobs;         /* handed out again */
    uint64_t slots_before; /* of its stage, its own among them */
    char worker[WORKER_NAME_MAX + 1], host[HOST_NAME_MAX + 1], key[WORKER_KEY_MAX + 1];
};

struct lost_workers {
    struct lost_worker *ring; /* LOST_WORKERS_MAX, NULL before the first */
    uint64_t count;           /* ever; the last LOST_WORKERS_MAX are there */
};

/* ---- conflicts (core/workers/worker_ids.h) --------------------------------------------- */

/* A key that spoke under the id of another key's worker, and was not heard. */
struct id_conflict {
    int64_t at_ms; /* the last time */
    uint64_t times;
    char worker[WORKER_NAME_MAX + 1], key[WORKER_KEY_MAX + 1], owner[WORKER_KEY_MAX + 1];
};

struct id_conflicts {
    struct id_conflict *ring; /* ID_CONFLICTS_MAX, NULL before the first */
    uint64_t count;           /* ever; the last ID_CONFLICTS_MAX are there */
};

#endif
