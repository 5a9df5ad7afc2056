/*
 * hidden_paths.h - what agent.hidden keeps from the agent: a layer over those of image and init, in which these paths
 * are not there. It is no part of what the agent leaves, and the evaluator's sandbox stands without it.
 */
#ifndef SLUICE_WORKERS_STAGES_SANDBOX_HIDDEN_PATHS_H
#define SLUICE_WORKERS_STAGES_SANDBOX_HIDDEN_PATHS_H

#include "workers/stages/sandbox/stage_sandbox.h"

/* Adds the layer, where the task hides anything. In a fiber. */
int hidden_paths_add(struct stage_sandbox *stage, const struct job *job, struct fail *fail);

#endif
