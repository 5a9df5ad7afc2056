/*
 * asked.h - routes that ask the broker one thing: the message's fields are the path's names, the query's, and the
 * body's members, its answer's fields are the members of what is answered. Where the answer has one field that is JSON
 * (status, rollouts, a sampler's state), that is the answer. A trajectory is as `sluice show --json` prints it.
 */
#ifndef SLUICE_CLIENT_GATEWAY_API_ASKED_H
#define SLUICE_CLIENT_GATEWAY_API_ASKED_H

#include "client/gateway/http_call.h"

/* The handler of all routes that have a message. */
void asked_run(struct http_call *call);
/* The same, whose answer is the caller's to say. */
void asked_run_with(struct http_call *call, void (*answered)(struct http_call *call, const struct answer *answer));

#endif
