/* run_ends.h - the ends of rollouts: the stream tells of them, who waits is told, what was had is acknowledged. */
#ifndef SLUICE_CLIENT_GATEWAY_RUNS_RUN_ENDS_H
#define SLUICE_CLIENT_GATEWAY_RUNS_RUN_ENDS_H

#include "client/gateway/runs/run_place.h"

/* Follows the stream. False: out of memory. */
bool run_ends_follow(struct runs_of *of);
/* Everything at its front that was had is acknowledged. */
void run_ends_ack(struct runs_of *of);
/* Tells who waits for it, once. */
void run_ends_tell(struct run_place *place, const struct msg_trajectory *trajectory);

#endif
