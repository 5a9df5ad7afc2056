/*
 * admission.h - a token is but what somebody says: before the broker has taken its key, and told whose it is, nothing
 * is done for it.
 */
#ifndef SLUICE_CLIENT_GATEWAY_DOOR_ADMISSION_H
#define SLUICE_CLIENT_GATEWAY_DOOR_ADMISSION_H

#include "client/gateway/http_call.h"

/* The call's handler runs, once the broker has told who its identity is; else it is answered with 401 or 503. */
void admission_run(struct http_call *call);
/* The same with `then`, and the broker is asked even if it was before: a key may be removed. */
void admission_ask(struct http_call *call, void (*then)(struct http_call *call));

#endif
