/* agents.c - the table of agents. */
#include "workers/agents/kinds/agents.h"

static const struct agent *const agents[] = {&agent_bash,    &agent_tools,  &agent_chat,   &agent_harness,
                                             &agent_session, &agent_replay, &agent_oracle, &agent_none};

const struct agent *agent_at(size_t i) { return i < sizeof(agents) / sizeof(*agents) ? agents[i] : NULL; }

const struct agent *agent_find(const char *name)
{
    for (size_t i = 0; agent_at(i); i++)
        if (strcmp(agent_at(i)->name, name) == 0)
            return agent_at(i);
    return NULL;
}
