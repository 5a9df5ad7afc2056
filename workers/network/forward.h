/*
 * forward.h - one grant of one sandbox: the listener that its pid 1 made inside, whose connections
 * are relayed to what the grant stands for and nowhere else. At most FORWARD_CONNECTIONS_MAX at one
 * time, a fiber each; more wait to be accepted. Owned by who opened it; on the loop's thread.
 */
#ifndef SLUICE_WORKERS_NETWORK_FORWARD_H
#define SLUICE_WORKERS_NETWORK_FORWARD_H

#include "common/loop/loop.h"
#include "workers/network/grants.h"

enum { FORWARD_CONNECTIONS_MAX = 64 };

struct forward;

/* Takes the listener, also when it returns NULL: out of memory. The grant stays the caller's. */
struct forward *forward_open(struct loop *loop, int listener, const struct grant *grant);
/* Closes the listener and ends every connection. NULL-safe. Any context. */
void forward_close(struct forward **forward);

#endif
