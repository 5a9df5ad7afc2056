/* http_loop.h - curl's sockets and its timer on the loop. */
#ifndef SLUICE_WORKERS_RUNTIME_HTTP_LOOP_H
#define SLUICE_WORKERS_RUNTIME_HTTP_LOOP_H

#include "workers/runtime/http_inside.h"

/* From now on curl is called when a socket or a time of its own is due, and `acted` after each call. */
void http_watch_curl(struct http *http, void (*acted)(struct http *http));

#endif
