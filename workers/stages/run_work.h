/* run_work.h - an agent at work, with the tools of handlers. */
#ifndef SLUICE_WORKERS_STAGES_RUN_WORK_H
#define SLUICE_WORKERS_STAGES_RUN_WORK_H

#include "workers/agents/agent.h"

/* Awaits; how the agent ended. */
enum outcome run_work(struct agent_run *run, const struct agent *agent);

#endif
