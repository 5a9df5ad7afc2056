/*
 * request.h - what a listener does with a request: the server that its path leads to is asked, and the answer is told
 * as it comes. Callbacks of an HTTP server whose argument is its listener.
 */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_HTTP_REQUEST_H
#define SLUICE_WORKERS_AGENTS_PROXY_HTTP_REQUEST_H

#include "common/http/http_server.h"

void request_heard(void *listener, struct exchange *exchange);
void request_asked(void *listener, struct exchange *exchange);
void request_gone(void *listener, struct exchange *exchange, bool is_whole);
const char *request_write_error(void *listener, struct exchange *exchange, int status, const char *words,
                                struct buffer *ret);

#endif
