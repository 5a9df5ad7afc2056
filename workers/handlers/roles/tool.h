/*
 * tool.h - the tools that handlers offer, as the contract of tools/tool.h: what the model is told is the offer's doc
 * and JSON Schema. A call is a job of the handler, which may ask for commands and files of the rollout's sandbox
 * meanwhile.
 */
#ifndef SLUICE_WORKERS_HANDLERS_ROLES_TOOL_H
#define SLUICE_WORKERS_HANDLERS_ROLES_TOOL_H

#include "workers/jobs/job.h"
#include "workers/tools/toolbox.h"

struct handler_tool;
struct agent_run;

/* Those that one rollout uses. */
struct handler_tools {
    struct tool_source source; /* for struct agent_run */
    const struct job *job;
    const struct agent_run *run; /* whose sandbox those run in that come with the task; set before the first is found */
    struct handler_tool *made[TOOLBOX_MAX];
    size_t count;
};

void handler_tools_init(struct handler_tools *tools, const struct job *job);
void handler_tools_finish(struct handler_tools *tools); /* after the toolbox was closed */

#endif
