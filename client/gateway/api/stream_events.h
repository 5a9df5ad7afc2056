/* stream_events.h - GET /api/v1/streams/{stream}/events: a stream's trajectories as server-sent events. */
#ifndef SLUICE_CLIENT_GATEWAY_API_STREAM_EVENTS_H
#define SLUICE_CLIENT_GATEWAY_API_STREAM_EVENTS_H

struct http_call;

/* An event's id is the trajectory's number: who comes back with it misses none and hears none twice. */
void stream_events_run(struct http_call *call);

#endif
