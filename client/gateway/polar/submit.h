/* submit.h - POST /rollout/task/submit: a task of Polar's becomes a group of ours. */
#ifndef SLUICE_CLIENT_GATEWAY_POLAR_SUBMIT_H
#define SLUICE_CLIENT_GATEWAY_POLAR_SUBMIT_H

#include "client/gateway/http_call.h"

void submit_run(struct http_call *call);

#endif
