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

struct stage_workers stage_workers_of(const struct core *core, enum stage stage);
/* Jobs of a stage that wait, for whatever, of all. */
size_t status_waiting(const struct core *core, enum stage stage);

#endif
