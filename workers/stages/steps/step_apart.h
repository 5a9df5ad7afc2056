/*
 * step_apart.h - a step evaluated in a sandbox of its own (steps[].eval.sandbox fresh): on the run worker, on what the
 * agent has left so far, as an eval job would be. The agent's sandbox lives on meanwhile: its processes are held still
 * only while its files are packed, and see nothing of the evaluation.
 *
 * That layer is the worker's own: it is in no result, and who keeps the store takes away what no rollout needs.
 */
#ifndef SLUICE_WORKERS_STAGES_STEPS_STEP_APART_H
#define SLUICE_WORKERS_STAGES_STEPS_STEP_APART_H

#include "workers/stages/sandbox/stage_sandbox.h"

/* Ends the job by its evaluation. `is_last`: no agent goes on in it, and its processes are killed. Pushes the deadline
 * of the evaluation, which the caller pops. */
void step_apart_evaluate(struct job *job, struct stage_sandbox *agents, bool is_last);

#endif
