/* gateway_counts.h - what the gateway counts of itself, for its metrics. */
#ifndef SLUICE_CLIENT_GATEWAY_GATEWAY_COUNTS_H
#define SLUICE_CLIENT_GATEWAY_GATEWAY_COUNTS_H

#include <stdint.h>

struct gateway_counts {
    uint64_t sse_clients, sse_dropped;
};

#endif
