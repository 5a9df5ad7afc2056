/* agent.h - the agents that handlers offer, as one row of the contract of agents/agent.h. */
#ifndef SLUICE_WORKERS_HANDLERS_ROLES_AGENT_H
#define SLUICE_WORKERS_HANDLERS_ROLES_AGENT_H

#include "workers/agents/agent.h"

extern const struct agent agent_handler; /* of the name that the task says; it needs no sandbox until it asks for one */

#endif
