/* lane_options.h - what a lane's PUSH is told: libzmq's defaults would keep a dead worker's jobs, and wait for ever. */
#ifndef SLUICE_BROKER_NET_LANE_OPTIONS_H
#define SLUICE_BROKER_NET_LANE_OPTIONS_H

#include <stdint.h>

/* `messages_max`: as many may wait in it. 0, or a negative errno. */
int lane_options_set(void *socket, uint64_t messages_max);

#endif
