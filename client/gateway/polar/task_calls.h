/* task_calls.h - what is asked of Polar's tasks: one with its results, all in a list, their sessions; and an end. */
#ifndef SLUICE_CLIENT_GATEWAY_POLAR_TASK_CALLS_H
#define SLUICE_CLIENT_GATEWAY_POLAR_TASK_CALLS_H

#include "client/gateway/http_call.h"

void task_get(struct http_call *call);
void task_delete(struct http_call *call);
void task_list(struct http_call *call);
void task_sessions(struct http_call *call);
/* Of all of them, for a status page. */
void task_overview(struct http_call *call);

#endif
