/* access_log.h - a line for each request, once its client has its answer or is gone (--access-log). */
#ifndef SLUICE_CLIENT_GATEWAY_DOOR_ACCESS_LOG_H
#define SLUICE_CLIENT_GATEWAY_DOOR_ACCESS_LOG_H

#include "client/gateway/http_call.h"

/* call: NULL where the server refused it by itself. */
void access_log_note(struct gateway *gateway, const struct exchange *exchange, const struct http_call *call,
                     bool is_whole);

#endif
