/*
 * core/workers/migration.h - rollouts that leave an overloaded engine.
 */
#ifndef SLUICE_BROKER_CORE_WORKERS_MIGRATION_H
#define SLUICE_BROKER_CORE_WORKERS_MIGRATION_H

#include "broker/core/engines/engines.h"

struct call;

/* The engine has said how full its cache is: a rollout may have to migrate. */
void migration_judge(struct core *core, struct engine *engine);

void handle_job_migrated(struct core *core, const struct call *call);

#endif
