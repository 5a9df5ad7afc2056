/* prompt.h - messages that a model is not asked about yet, or never, in the record. */
#ifndef SLUICE_WORKERS_AGENTS_CONVERSATION_PROMPT_H
#define SLUICE_WORKERS_AGENTS_CONVERSATION_PROMPT_H

#include "workers/agents/agent.h"

/* False when out of memory, or the record is full. */
bool prompt_say_messages(struct record *record, const struct task_message *messages, size_t count);
/* The task's, of an agent that shows them to no model. */
bool prompt_say(struct agent_run *run);

#endif
