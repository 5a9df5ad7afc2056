/*
 * head_server.h - what NeMo Gym's clients ask its head server for: where the agent is. That is the gateway itself, by
 * the name and port under which its client reached it.
 */
#ifndef SLUICE_CLIENT_GATEWAY_GYM_HEAD_SERVER_H
#define SLUICE_CLIENT_GATEWAY_GYM_HEAD_SERVER_H

#include "client/gateway/http_call.h"

void head_server_config(struct http_call *call);
void head_server_instances(struct http_call *call);

#endif
