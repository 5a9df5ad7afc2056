/*
 * core/status/stages.h - what is counted of a stage.
 */
#ifndef SLUICE_BROKER_CORE_STATUS_STAGES_H
#define SLUICE_BROKER_CORE_STATUS_STAGES_H

#include "broker/core/state/state.h"

/* The workers of a stage. */
struct stage_workers {
    uint64_t workers, draining, hung, unreached, slots, free;
};

/* What keeps a worker from jobs, the least passing first. */
#define WORKER_STATES(X)                                                                                               \
    X(READY, "ready")                                                                                                  \
    X(DRAINING, "draining")                                                                                            \
    X(UNREACHED, "unreached")                                                                                          \
    X(HUNG, "hung")

enum worker_state {
#define X(name, word) WORKER_##name,
    WORKER_STATES(X)
#undef X
        WORKER_STATE_COUNT
};

enum worker_state worker_state_of(const struct worker *worker);
const char *worker_state_word(enum worker_state state);

struct stage_workers stage_workers_of(const struct core *core, enum stage stage);
/* Jobs of a stage that wait, for whatever, of all. */
size_t status_waiting(const struct core *core, enum stage stage);

#endif
