/* nodes.h - Polar's nodes: the service as one, with the slots of its workers; and whether it is there. */
#ifndef SLUICE_CLIENT_GATEWAY_POLAR_NODES_H
#define SLUICE_CLIENT_GATEWAY_POLAR_NODES_H

#include "client/gateway/http_call.h"

void nodes_health(struct http_call *call);
void nodes_list(struct http_call *call);

#endif
