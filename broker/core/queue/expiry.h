/*
 * core/queue/expiry.h - what is over in time: jobs, groups, and leases of trainers.
 */
#ifndef SLUICE_BROKER_CORE_QUEUE_EXPIRY_H
#define SLUICE_BROKER_CORE_QUEUE_EXPIRY_H

#include "broker/core/state/interface.h"

struct core;
struct group;

/* The group, `age_ms` old, will end after so long in all (0: the default), or with its lease. */
void expiry_arm(struct core *core, struct group *group, int64_t total_ms, int64_t age_ms);
void expiries_tick(struct core *core);
/* Jobs' deadlines and back-offs that are due. */
void jobs_tick(struct core *core);

#endif
