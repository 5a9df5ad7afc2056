/*
 * steps.h - a run of a task with steps (docs/tasks/steps.md), in one sandbox. Each step in turn, as a task of its own
 * (schemas/task/steps.h):
 *
 *     files, set-up: limits.init_s | the agent, in a conversation and trace of its own | its evaluation: eval_s
 *
 * It is evaluated there (agents_evaluation.h) or in a sandbox of the evaluator's own (step_apart.h).
 *
 * The agents' times are of one limits.run_s together, and so are their turns and sampled tokens: where one of these
 * is used up, what is left of the steps is set up and evaluated without an agent. Processes live on from step to
 * step; the evaluator's files, rewards and /run/sluice do not. A step below its min_reward is the last, and so is one
 * whose set-up fails or whose evaluator is broken: then there is no reward. What is to blame on the node, the image,
 * an engine or a handler is the end of the run, which begins again, with the first step.
 */
#ifndef SLUICE_WORKERS_STAGES_STEPS_STEPS_H
#define SLUICE_WORKERS_STAGES_STEPS_STEPS_H

#include "workers/agents/agent.h"
#include "workers/stages/sandbox/stage_sandbox.h"

/* In place of agent->run: ends the job, with record, answer and evaluation. The sandbox may not be open yet. */
void steps_run(struct job *job, struct agent_run *run, const struct agent *agent, struct stage_sandbox *stage);

#endif
