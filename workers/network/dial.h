/* dial.h - a connection to what a grant stands for, without holding up the loop. */
#ifndef SLUICE_WORKERS_NETWORK_DIAL_H
#define SLUICE_WORKERS_NETWORK_DIAL_H

#include "workers/network/grants.h"

enum { DIAL_MS = 10000 }; /* for each of its addresses */

/* In a fiber. A connected, non-blocking socket, the caller's; negative errno with a sentence. */
int dial(const struct grant *grant, struct fail *fail);

#endif
