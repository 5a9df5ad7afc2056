/*
 * run_end.h - how a run ends: what its agent left is packed for an evaluator, and its record is written; the outcome
 * is the agent's, unless a limit of its sandbox was met or something failed.
 */
#ifndef SLUICE_WORKERS_STAGES_RUN_END_H
#define SLUICE_WORKERS_STAGES_RUN_END_H

#include "workers/agents/agent.h"
#include "workers/stages/sandbox/stage_sandbox.h"

/* Ends the job. `is_late`: the time of the stage is up. */
void run_end(struct job *job, struct stage_sandbox *stage, const struct agent_run *run, enum outcome outcome,
             bool is_late);

/* The record so far, encoded, with what the agent came to; the job has an outcome, which is INFRA where that fails. */
void run_end_record(struct job *job, const struct agent_run *run);

/*
 * Packs what `who` wrote, in a time of its own. What is packed late must not be scored without its files. goes_on: the
 * processes are not killed for it. False: the job has ended.
 */
bool run_end_pack(struct job *job, struct stage_sandbox *stage, enum blame_who who, bool goes_on);

#endif
