/* sessions.h - POST /api/v1/sessions: a rollout whose loop is whoever asked (docs/sessions.md). */
#ifndef SLUICE_CLIENT_GATEWAY_API_SESSIONS_H
#define SLUICE_CLIENT_GATEWAY_API_SESSIONS_H

struct http_call;

/* Submits a group of one, waits until its session is open, and answers with where it is spoken to. */
void session_open_run(struct http_call *call);

#endif
