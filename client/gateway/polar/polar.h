/*
 * polar.h - Polar's rollout API, so that its trainers' adapters and its command line drive rollouts of ours: a task of
 * Polar's is a group, a session a rollout. docs/gateway/polar.md has it for users.
 */
#ifndef SLUICE_CLIENT_GATEWAY_POLAR_POLAR_H
#define SLUICE_CLIENT_GATEWAY_POLAR_POLAR_H

#include "client/gateway/route.h"

extern const struct route_family polar_family;

#endif
