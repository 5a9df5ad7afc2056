/*
 * responses.h - POST /v1/responses of an agent of NeMo Gym's: a row's own request, without a judge. One rollout of ours
 * answers it: as a chat, or with the tools of docs/tools.md that it names. Below /ng-rollout/ID/ the id makes a request
 * that comes again the same; below training-token-capture/ the items carry their tokens. It may be streamed.
 */
#ifndef SLUICE_CLIENT_GATEWAY_GYM_RESPONSES_H
#define SLUICE_CLIENT_GATEWAY_GYM_RESPONSES_H

#include "client/gateway/http_call.h"

void responses_run(struct http_call *call);

#endif
