/*
 * collect.h - eval.collect: commands of the task in the agent's sandbox, between the agent's end and the moment its
 * files are taken, or evaluated there. The agent's processes are alive, and stay so. Each has its own time, beyond
 * limits.run_s.
 *
 * One that fails changes nothing else: it is told in the record, in a message of the system's behind the others. What
 * goes over a limit of the sandbox is the sandbox's end, as if the agent had done it.
 */
#ifndef SLUICE_WORKERS_STAGES_COLLECT_H
#define SLUICE_WORKERS_STAGES_COLLECT_H

#include "workers/agents/agent.h"
#include "workers/stages/sandbox/stage_sandbox.h"

/* The agent has ended ok or agent; opens its sandbox where it had none. False: that could not be, and the job has
 * ended. */
bool collect_run(struct job *job, struct stage_sandbox *stage, struct agent_run *run);

#endif
