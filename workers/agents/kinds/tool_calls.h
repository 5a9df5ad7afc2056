/*
 * tool_calls.h - what the agents that call tools share: the tools of a task put together, one call
 * made and recorded, and what an error in it means for the rollout.
 */
#ifndef SLUICE_WORKERS_AGENTS_KINDS_TOOL_CALLS_H
#define SLUICE_WORKERS_AGENTS_KINDS_TOOL_CALLS_H

#include "workers/agents/agent.h"
#include "workers/agents/formats/tool_format.h"
#include "workers/tools/toolbox.h"

/* The tools of the task: 0, or the agent's end is set (*ret) and -1 returned. toolbox_close it. */
int tool_calls_open(struct toolbox *box, struct agent_run *run, enum outcome *ret);

/*
 * One call, said in the record as "NAME: ARGUMENTS". 0 with *ret (tool_result_finish it); else an
 * error as blame_inside leaves it. A call that was refused is answered with an example in `form`
 * (NULL: none).
 */
int tool_calls_make(struct toolbox *box, struct agent_run *run, const struct tool_format *format,
                    const struct tool_format_call *call, struct tool_result *ret, struct fail *fail);

#endif
