/*
 * core/workers/stall.h - the broker's own stalls.
 */
#ifndef SLUICE_BROKER_CORE_WORKERS_STALL_H
#define SLUICE_BROKER_CORE_WORKERS_STALL_H

#include <stdint.h>

struct core;

/* It stood still for so long until now: workers, deadlines and leases get that time back. */
void stall_give_back(struct core *core, int64_t stalled_ms);
/* Nothing left for so long until now: jobs that workers are to list get that time. */
void stall_spare_jobs(struct core *core, int64_t held_up_ms);

#endif
