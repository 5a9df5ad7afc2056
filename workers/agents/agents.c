/* agents.c - the table of agents. */
#include "workers/agents/agents.h"

static const struct agent *const agents[] = {&agent_bash, &agent_tools, &agent_chat, &agent_replay,
                                            &agent_none};

const struct agent *agent_find(const char *name)
{
    for (size_t i = 0; i < sizeof(agents) / sizeof(*agents); i++)
        if (strcmp(agents[i]->name, name) == 0)
            return agents[i];
    return NULL;
}
