/*
 * request.h - what libmicrohttpd is to do with a request: its body is gathered, the server that its path leads to is
 * asked, and the answer is told as it comes. Callbacks of a daemon whose argument is its listener.
 */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_HTTP_REQUEST_H
#define SLUICE_WORKERS_AGENTS_PROXY_HTTP_REQUEST_H

#include <microhttpd.h>

/* Called for the headers, for each piece of the body, at its end, and again after each sleep. */
enum MHD_Result request_take(void *listener, struct MHD_Connection *connection, const char *url, const char *method,
                             const char *version, const char *data, size_t *len, void **slot);
void request_end(void *listener, struct MHD_Connection *connection, void **slot, enum MHD_RequestTerminationCode code);

#endif
