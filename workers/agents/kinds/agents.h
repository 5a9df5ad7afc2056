/* agents.h - the rows of the table in agents.c. */
#ifndef SLUICE_WORKERS_AGENTS_KINDS_AGENTS_H
#define SLUICE_WORKERS_AGENTS_KINDS_AGENTS_H

#include "workers/agents/agent.h"

extern const struct agent agent_bash, agent_chat, agent_harness, agent_none, agent_oracle, agent_replay, agent_session,
    agent_tools;

const struct agent *agent_find(const char *name); /* NULL: no such agent */
const struct agent *agent_at(size_t i);           /* NULL: no more */

#endif
