/*
 * run.h - POST /run of an agent of NeMo Gym's: a row in, the row with its response and reward out. Its collector ends
 * as a whole at any status but 200, so what cannot be learned from is said by fields: `_ng_failure_class` for the file
 * of failures, `_ng_failure_terminal` for what trying again would not change, `_ng_no_persist` for what shall be asked
 * again.
 */
#ifndef SLUICE_CLIENT_GATEWAY_GYM_RUN_H
#define SLUICE_CLIENT_GATEWAY_GYM_RUN_H

#include "client/gateway/http_call.h"

void run_row(struct http_call *call);

#endif
