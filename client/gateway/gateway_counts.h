/* gateway_counts.h - what the gateway counts of itself, for its metrics. */
#ifndef SLUICE_CLIENT_GATEWAY_GATEWAY_COUNTS_H
#define SLUICE_CLIENT_GATEWAY_GATEWAY_COUNTS_H

#include "common/metrics/observed.h"

enum { REQUEST_KINDS_MAX = 1024 };

/* Requests of one pattern that were answered with one status. */
struct request_count {
    const char *pattern; /* of a table of routes: it stays; "": no API knows the path */
    int status;
    uint64_t count;
};

struct gateway_counts {
    struct request_count requests[REQUEST_KINDS_MAX]; /* in no order */
    size_t kinds;
    struct observed seconds;
    uint64_t sse_clients, sse_dropped;
};

/* pattern: compared by its address. */
void gateway_counts_note(struct gateway_counts *counts, const char *pattern, int status);

#endif
