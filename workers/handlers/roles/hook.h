/*
 * hook.h - the hooks of a worker (--hook), as the contract of agents/hook.h: each asking is a job of the handler, which
 * may ask for commands and files of the rollout's sandbox meanwhile.
 */
#ifndef SLUICE_WORKERS_HANDLERS_ROLES_HOOK_H
#define SLUICE_WORKERS_HANDLERS_ROLES_HOOK_H

#include "workers/agents/agent.h"
#include "workers/agents/hook.h"
#include "workers/jobs/job.h"

/* Of one rollout. */
struct handler_hooks {
    struct hook_source source; /* for struct agent_run; its count is 0 where there are none */
    const struct job *job;
    const struct agent_run *run;
};

void handler_hooks_init(struct handler_hooks *hooks, const struct job *job, const struct agent_run *run);

#endif
