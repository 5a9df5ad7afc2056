/*
 * agents_evaluation.h - a rollout evaluated in the agent's own sandbox, at the end of its run job (eval.sandbox agent):
 * with its files as they are, its processes alive, in limits.eval_s of its own. How it ends is as in an eval job, but
 * that it is tried once: the sandbox is gone then. What is to blame on the node, the image or a handler is the run's
 * end: it begins again, agent and all.
 */
#ifndef SLUICE_WORKERS_STAGES_AGENTS_EVALUATION_H
#define SLUICE_WORKERS_STAGES_AGENTS_EVALUATION_H

#include "workers/stages/sandbox/stage_sandbox.h"

/*
 * The run has ended ok or agent, its answer and record are in job->result. Takes the sandbox, and opens one where the
 * agent had none. Afterwards job->result has the evaluation, or is the end of a run that is to begin again.
 */
void agents_evaluation(struct job *job, struct stage_sandbox *stage);

#endif
