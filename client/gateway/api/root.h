/* root.h - what stands at the root: the page, /healthz and /readyz, /metrics. */
#ifndef SLUICE_CLIENT_GATEWAY_API_ROOT_H
#define SLUICE_CLIENT_GATEWAY_API_ROOT_H

#include "client/gateway/route.h"

extern const struct route_family root_family;

#endif
