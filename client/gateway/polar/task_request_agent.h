/* task_request_agent.h - of Polar's TaskRequest, who works on it: a harness, or a command; put into a task of ours. */
#ifndef SLUICE_CLIENT_GATEWAY_POLAR_TASK_REQUEST_AGENT_H
#define SLUICE_CLIENT_GATEWAY_POLAR_TASK_REQUEST_AGENT_H

#include "client/gateway/polar/problem.h"

/* False with the field and why. */
bool task_request_agent(const json_t *body, json_t *task, struct problem *problem);

#endif
