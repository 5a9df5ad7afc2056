/*
 * sandboxfusion.h - SandboxFusion's POST /run_code, for those who grade with it (docs/gateway/sandboxfusion.md): code
 * runs in a sandbox of its own, as a rollout without an agent, and its caller waits for what it printed.
 */
#ifndef SLUICE_CLIENT_GATEWAY_SANDBOXFUSION_SANDBOXFUSION_H
#define SLUICE_CLIENT_GATEWAY_SANDBOXFUSION_SANDBOXFUSION_H

#include "client/gateway/route.h"

extern const struct route_family sandboxfusion_family;

#endif
