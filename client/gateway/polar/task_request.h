/*
 * task_request.h - Polar's TaskRequest, and the task of ours that it is. What Sluice has nothing for is refused by its
 * field, and nothing is left out silently. What the gateway needs again goes along in the task's metadata, under
 * `polar`.
 */
#ifndef SLUICE_CLIENT_GATEWAY_POLAR_TASK_REQUEST_H
#define SLUICE_CLIENT_GATEWAY_POLAR_TASK_REQUEST_H

#include <stdint.h>

#include "client/gateway/polar/problem.h"

enum { TASK_SAMPLES_MAX = 1024, TASK_ID_MAX = 256 /* bytes */ };

struct task_request {
    json_t *task;                       /* owned */
    const char *task_id, *callback_url; /* borrowed of the request; NULL: none */
    unsigned samples, priority;
};

/* False with the field and why. `now_ms` is when it came. */
bool task_request_read(const json_t *body, int64_t now_ms, struct task_request *ret, struct problem *problem);
void task_request_finish(struct task_request *request);

#endif
