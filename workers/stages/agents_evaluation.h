/*
 * agents_evaluation.h - a rollout evaluated at the end of its run job: by what was posted to its session (eval.kind
 * posted), or in the agent's own sandbox (eval.sandbox agent): with its files as they are, its processes alive, in
 * limits.eval_s of its own. How it ends is as in an eval job, but that it is tried once: the sandbox is gone then. What
 * is to blame on the node, the image or a handler is the run's end: it begins again, agent and all.
 */
#ifndef SLUICE_WORKERS_STAGES_AGENTS_EVALUATION_H
#define SLUICE_WORKERS_STAGES_AGENTS_EVALUATION_H

#include "workers/stages/sandbox/stage_sandbox.h"

/*
 * The run has ended ok or agent, its answer and record are in job->result. Takes the sandbox, and opens one where the
 * agent had none. Afterwards job->result has the evaluation, or is the end of a run that is to begin again.
 */
void agents_evaluation(struct job *job, struct stage_sandbox *stage);
/* How the agent ended: kept of the job's result while that is the evaluation's. */
struct agents_run {
    enum outcome outcome;
    enum fault fault;
    char *detail;
};
bool agents_run_keep(const struct job *job, struct agents_run *ret); /* false: out of memory */
void agents_run_finish(struct agents_run *run);
#define AUTO_AGENTS_RUN __attribute__((cleanup(agents_run_finish))) struct agents_run

/*
 * Its two halves, for one that is evaluated step by step. The first pushes the deadline of the evaluation, which the
 * caller pops, and ends the job by it. The second takes what the job came to then for the evaluation of all, which
 * took `ms`, with the task's shaping, and `run` for how the agent ended; in_agents: some of it was in the agent's
 * sandbox.
 */
void agents_evaluate(struct job *job, struct stage_sandbox *stage);
void agents_evaluation_end(struct job *job, const struct agents_run *run, bool in_agents, uint64_t ms);
/* Into job->start: what an eval job would be told of the run. */
void agents_evaluation_tell(struct job *job);

#endif
