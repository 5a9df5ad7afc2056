/*
 * follow.h - what becomes of Polar's tasks: their rollouts end, and with the last of them the task; with enough that
 * can be learned from the others are cancelled; what was had is acknowledged.
 */
#ifndef SLUICE_CLIENT_GATEWAY_POLAR_FOLLOW_H
#define SLUICE_CLIENT_GATEWAY_POLAR_FOLLOW_H

#include "client/gateway/polar/tasks.h"

/* Lists what is at work, and follows the stream. False: out of memory. */
bool follow_begin(struct polar_of *of);
/* Once a second: lets go of what was had, and acknowledges it. */
void follow_sweep(struct polar_of *of, int64_t now_ms);

#endif
