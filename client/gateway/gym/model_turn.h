/*
 * model_turn.h - one turn of the policy for a loop of the caller's, whose functions the caller runs: a session of one
 * turn, which is asked what the caller asked and ended. It needs a run worker that takes sessions.
 */
#ifndef SLUICE_CLIENT_GATEWAY_GYM_MODEL_TURN_H
#define SLUICE_CLIENT_GATEWAY_GYM_MODEL_TURN_H

#include "client/gateway/http_call.h"

/* Functions with parameters are the caller's own, and so are calls and results in the input. */
bool model_turn_is_asked(const json_t *params);
void model_turn_run(struct http_call *call);

#endif
