/*
 * prorl.h - the API of ProRL's agent server, for its clients as they are: /start, /stop, /status, /process, /cancel,
 * /add_llm_server and /clear_llm_server (docs/gateway/prorl.md). What is started and what is an engine is each
 * trainer's own (trainers.h).
 */
#ifndef SLUICE_CLIENT_GATEWAY_PRORL_PRORL_H
#define SLUICE_CLIENT_GATEWAY_PRORL_PRORL_H

#include "client/gateway/route.h"

#define PRORL_NOT_RUNNING "Server is not running. Please start the server first."

extern const struct route_family prorl_family;

#endif
