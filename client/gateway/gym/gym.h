/*
 * gym.h - NeMo Gym's head server and agent in one, so that its own collector drives rollouts of ours: the agent
 * `sluice` is this gateway. docs/gateway/nemo_gym.md has it for users.
 */
#ifndef SLUICE_CLIENT_GATEWAY_GYM_GYM_H
#define SLUICE_CLIENT_GATEWAY_GYM_GYM_H

#include "client/gateway/route.h"

extern const struct route_family gym_family;

#endif
