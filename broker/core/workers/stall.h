/*
 * core/workers/stall.h - the broker's own stalls.
 */
#ifndef SLUICE_BROKER_CORE_WORKERS_STALL_H
#define SLUICE_BROKER_CORE_WORKERS_STALL_H

#include <stdint.h>

struct core;

/* It stood still for so long until now: workers, deadlines and leases get that time back. */
void stall_give_back(struct core *core, int64_t stalled_ms);

#endif
