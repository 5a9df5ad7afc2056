/* native.h - the gateway's own API, /api/v1: what libsluice can do, as REST. Most of it is asked.h's. */
#ifndef SLUICE_CLIENT_GATEWAY_API_NATIVE_H
#define SLUICE_CLIENT_GATEWAY_API_NATIVE_H

#include "client/gateway/api/tail.h"
#include "client/gateway/route.h"

struct hubs;
struct relays;

/* What it keeps. */
struct native {
    struct tails *tails;
    struct hubs *hubs;     /* of the page (hub.h) */
    struct relays *relays; /* of sessions (session_calls.h) */
};

extern const struct route_family native_family;

#endif
