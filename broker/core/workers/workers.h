/*
 * core/workers/workers.h - the workers.
 */
#ifndef SLUICE_BROKER_CORE_WORKERS_WORKERS_H
#define SLUICE_BROKER_CORE_WORKERS_WORKERS_H

#include "broker/core/queue/jobs.h"
#include "broker/core/workers/lost_workers.h"

struct call;
struct load_report;

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
    enum stage stage;
    uint32_t slots;               /* never below what it holds */
    uint32_t beat;                /* number of its last beat */
    int64_t beat_ms, progress_ms; /* last beat; last beat with progress */
    uint64_t progress;
    struct drain drain;
    struct load_report *loads;        /* run: what it sees of engines ... */
    size_t load_count, load_capacity; /* ... one each */
    uint64_t heard;                   /* run: the newest lane.engine it has taken */
    uint32_t counted;                 /* its slots in core->slots */
    bool draining, stalled;
    bool hung; /* its lane is closed until it makes progress */
    uint32_t id_len;
    char id[];
};

/* It takes no new jobs, whatever slots it has. */
static inline bool worker_is_out(const struct worker *worker)
{
    return worker->draining || worker->hung || worker->unreached;
}
void worker_destroy(struct core *core, struct worker *worker);
/* Its lane's connection broke: it is lost, or had drained and has left: false. NULL, or hung: nothing is done. */
bool worker_lane_broke(struct core *core, struct worker *worker);
/* Its lane does not lead there, and why; empty: now it does. */
void worker_lane_waits(struct core *core, struct worker *worker, struct slice why);
void workers_tick(struct core *core);

void handle_worker_beat(struct core *core, const struct call *call);

#endif
