/* task_request_runtime.h - of Polar's TaskRequest, where it runs: image, files, set-up, limits; for a task of ours. */
#ifndef SLUICE_CLIENT_GATEWAY_POLAR_TASK_REQUEST_RUNTIME_H
#define SLUICE_CLIENT_GATEWAY_POLAR_TASK_REQUEST_RUNTIME_H

#include "client/gateway/polar/problem.h"

/* False with the field and why. */
bool task_request_runtime(const json_t *body, json_t *task, struct problem *problem);

#endif
