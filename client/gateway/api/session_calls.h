/*
 * session_calls.h - what is said to a session, passed on to the worker that has it, which need not be reachable from
 * where the loop runs (docs/sessions.md). A session's URL is told by the broker alone, to whom it is told to anyway; so
 * nobody has the gateway call anything else, and the worker's secret stays here.
 *
 * Each path names the attempt: a loop whose session was lost is told so, as it would be at the worker's own URL, and
 * does not go on in the middle of another.
 */
#ifndef SLUICE_CLIENT_GATEWAY_API_SESSION_CALLS_H
#define SLUICE_CLIENT_GATEWAY_API_SESSION_CALLS_H

#include <stdint.h>

#include "common/base/buffer.h"

struct http_call;

/* SESSIONS/{rollout}/{attempt}/{rest}: the answer is the session's own. */
void session_call_run(struct http_call *call);
/* The URL under which who asks reaches such a session here. */
void session_calls_append_url(const struct http_call *call, struct slice rollout, uint64_t attempt, struct buffer *ret);

#endif
