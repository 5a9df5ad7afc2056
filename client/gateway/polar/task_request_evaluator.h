/* task_request_evaluator.h - of Polar's TaskRequest, how it is scored; put into a task of ours. */
#ifndef SLUICE_CLIENT_GATEWAY_POLAR_TASK_REQUEST_EVALUATOR_H
#define SLUICE_CLIENT_GATEWAY_POLAR_TASK_REQUEST_EVALUATOR_H

#include "client/gateway/polar/problem.h"

/* False with the field and why. */
bool task_request_evaluator(const json_t *body, json_t *task, struct problem *problem);

#endif
