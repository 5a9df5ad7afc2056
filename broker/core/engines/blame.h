/*
 * core/engines/blame.h - whether a failure is an engine's or an image's, and not the job's that reports it.
 */
#ifndef SLUICE_BROKER_CORE_ENGINES_BLAME_H
#define SLUICE_BROKER_CORE_ENGINES_BLAME_H

#include "broker/core/state/job.h"

struct core;

/* Counts the failure at the breaker of what it blames; true if that is out of order, and the job is not at fault. */
bool blame_failure(struct core *core, struct job *job, const struct failure *failure);

#endif
