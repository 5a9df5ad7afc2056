/*
 * rollout_events.h - GET /api/v1/rollouts/{rollout}/events: what is heard of a rollout while it works, in the batches
 * of docs/live.md, each the data of one event `live`. The stream ends when the rollout has.
 */
#ifndef SLUICE_CLIENT_GATEWAY_API_ROLLOUT_EVENTS_H
#define SLUICE_CLIENT_GATEWAY_API_ROLLOUT_EVENTS_H

struct http_call;

void rollout_events_run(struct http_call *call);

#endif
