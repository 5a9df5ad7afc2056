/*
 * core/workers/workers.h - the workers, and those lost of late.
 */
#ifndef SLUICE_BROKER_CORE_WORKERS_WORKERS_H
#define SLUICE_BROKER_CORE_WORKERS_WORKERS_H

#include "broker/core/core.h"
#include "broker/core/engines/breaker.h"
#include "broker/core/engines/engines.h"
#include "broker/core/queue/jobs.h"
#include "broker/core/queue/fair_queue.h"

struct core;

struct worker;

/* ---- workers lost of late ------------------------------------------------------------ */

enum { LOST_WORKERS_MAX = 256, WORKER_NAME_MAX = 128, HOST_NAME_MAX = 255 /* as in messages.def */ };
enum { WORKER_KEY_MAX = 64 /* as in common/net/keys.h */, ID_CONFLICTS_MAX = 64 };

#define LOSS_WHYS(X)                                                                               \
    X(NO_BEAT, "no beat")                                                                          \
    X(LANE_BROKE, "its lane broke")                                                                \
    X(NO_PROGRESS, "no progress")                                                                  \
    X(OTHER_STAGE, "it came back for another stage")

enum loss_why {
#define X(name, words) LOSS_##name,
    LOSS_WHYS(X)
#undef X
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
    uint64_t count;    /* ever; the last LOST_WORKERS_MAX are there */
};

/* Call it while the worker still has its jobs. One that had drained is no loss. */
void lost_worker_note(struct core *core, const struct worker *worker, enum loss_why why);
/* The n-th newest not older than lost_shown_ms, or NULL. */
const struct lost_worker *lost_worker_nth(const struct core *core, uint64_t n);
const char *loss_words(enum loss_why why);

/* ---- whose an id is ------------------------------------------------------------------- */

/* A key that spoke under the id of another key's worker, and was not heard. */
struct id_conflict {
    int64_t at_ms;  /* the last time */
    uint64_t times;
    char worker[WORKER_NAME_MAX + 1], key[WORKER_KEY_MAX + 1], owner[WORKER_KEY_MAX + 1];
};

struct id_conflicts {
    struct id_conflict *ring; /* ID_CONFLICTS_MAX, NULL before the first */
    uint64_t count;        /* ever; the last ID_CONFLICTS_MAX are there */
};

struct call;

/*
 * Whether the caller may speak as the worker of this id: an id belongs to the key that used it first, for as long as
 * its worker lives, and is remembered as lost; after a restart, while jobs wait for adoption, to the key that had jobs
 * under it. If not, it is noted. *ret: the worker, NULL where none lives.
 */
bool worker_speaks(struct core *core, const struct call *call, struct slice id, struct worker **ret);
/* An id and its key from the ledger. */
void claims_note(struct core *core, struct slice id, struct slice key);
void claims_finish(struct core *core);
/* The n-th newest that is not older than lost_shown_ms, or NULL. */
const struct id_conflict *id_conflict_nth(const struct core *core, uint64_t n);

/* ---- workers ----------------------------------------------------------------------- */

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
    char *unreached;       /* why its lane does not lead to it yet, or NULL ... */
    bool is_refused;       /* ... as it is not connected to, as things are */
    char *sandbox, *sandbox_why, *kernel, *node_error; /* of its node, as it says; each may be NULL */
    uint32_t sandboxes;
    enum stage stage;
    uint32_t slots;        /* never below what it holds */
    uint32_t beat;         /* number of its last beat */
    int64_t beat_ms, progress_ms; /* last beat; last beat with progress */
    uint64_t progress;
    struct drain drain;
    struct load_report *loads;  /* run: what it sees of engines ... */
    size_t load_count, load_capacity; /* ... one each */
    uint64_t heard;        /* run: the newest lane.engine it has taken */
    uint32_t counted;      /* its slots in core->slots */
    bool draining, stalled;
    bool hung;             /* its lane is closed until it makes progress */
    uint32_t id_len;
    char id[];
};

struct slice worker_id(const struct worker *worker);
struct slice worker_key(const struct worker *worker);
struct worker *worker_find(const struct core *core, struct slice id);
/* Puts it among those that may be given jobs, or takes it out, as it is now. */
void worker_refresh(struct core *core, struct worker *worker);
bool worker_may_take(const struct core *core, const struct worker *worker);
/* It takes no new jobs, whatever slots it has. */
static inline bool worker_is_out(const struct worker *worker)
{
    return worker->draining || worker->hung || worker->unreached;
}
/* Its lane closes, its jobs go back to their queues, it is forgotten. */
void worker_lose(struct core *core, struct worker *worker, enum loss_why why);
/* lane.drain to it, as it was told. */
void send_drain(struct core *core, const struct worker *worker);
void worker_destroy(struct core *core, struct worker *worker);
void workers_tick(struct core *core);

#endif
