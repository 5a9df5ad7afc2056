/*
 * hub.h - GET /api/v1/live: what the page shows, as one stream of events. All pages of one identity share what is asked
 * for them: the status each second, the oldest live rollouts each two, and the ends of all streams, of which the last
 * HUB_HISTORY are kept for pages that come. Nothing is asked while no page is open.
 */
#ifndef SLUICE_CLIENT_GATEWAY_API_HUB_H
#define SLUICE_CLIENT_GATEWAY_API_HUB_H

#include "client/gateway/http_call.h"

enum {
    HUB_HISTORY = 500,   /* summaries of ends */
    HUB_ENDS_MAX = 50,   /* a second; more are counted */
    HUB_STREAMS_MAX = 64 /* whose ends are told */
};

struct hubs;
struct tails;

struct hubs *hubs_open(struct gateway *gateway, struct tails *tails);
void hubs_close(struct hubs **hubs);
void hub_run(struct http_call *call);

#endif
