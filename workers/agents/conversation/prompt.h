/* prompt.h - the task's messages in the record of an agent that shows them to no model. */
#ifndef SLUICE_WORKERS_AGENTS_CONVERSATION_PROMPT_H
#define SLUICE_WORKERS_AGENTS_CONVERSATION_PROMPT_H

#include "workers/agents/agent.h"

/* False when out of memory. */
bool prompt_say(struct agent_run *run);

#endif
