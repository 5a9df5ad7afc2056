/* sessions.h - /api/v1/sessions: rollouts whose loops are whoever asks (docs/sessions.md), and where they are. */
#ifndef SLUICE_CLIENT_GATEWAY_API_SESSIONS_H
#define SLUICE_CLIENT_GATEWAY_API_SESSIONS_H

struct http_call;

/* Submits a group of one, waits until its session is open, and answers with where it is spoken to. */
void session_open_run(struct http_call *call);
/* Where one is spoken to, or what it waits for. */
void session_state_run(struct http_call *call);

#endif
