/*
 * core/workers/lost_workers.h - the workers lost of late, and why.
 */
#ifndef SLUICE_BROKER_CORE_WORKERS_LOST_WORKERS_H
#define SLUICE_BROKER_CORE_WORKERS_LOST_WORKERS_H

#include "broker/core/core.h"

struct core;
struct worker;

enum {
    LOST_WORKERS_MAX = 256,
    WORKER_NAME_MAX = 128,
    HOST_NAME_MAX = 255 /* as in messages.def */
};
enum { WORKER_KEY_MAX = 64 /* as in common/net/keys.h */, ID_CONFLICTS_MAX = 64 };

#define LOSS_WHYS(X)                                                                                                   \
    X(NO_BEAT, "no beat")                                                                                              \
    X(LANE_BROKE, "its lane broke")                                                                                    \
    X(NO_PROGRESS, "no progress")                                                                                      \
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
    uint64_t count;           /* ever; the last LOST_WORKERS_MAX are there */
};

/* Call it while the worker still has its jobs. One that had drained is no loss. */
void lost_worker_note(struct core *core, const struct worker *worker, enum loss_why why);
/* The n-th newest not older than lost_shown_ms, or NULL. */
const struct lost_worker *lost_worker_nth(const struct core *core, uint64_t n);
const char *loss_words(enum loss_why why);

#endif
