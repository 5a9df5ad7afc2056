/*
 * request.h - what libmicrohttpd is to do with a request: its head is checked, its body gathered, the owner asked, and
 * the answer told as it comes. Callbacks of a daemon whose argument is its http_daemon.
 */
#ifndef SLUICE_COMMON_HTTP_REQUEST_H
#define SLUICE_COMMON_HTTP_REQUEST_H

#include <microhttpd.h>

/* Called with what a request's first line asks for; what it returns is the request's slot from then on. */
void *request_begin(void *daemon, const char *target, struct MHD_Connection *connection);
/* Called for the head, for each piece of the body, at its end, and again after each sleep. */
enum MHD_Result request_take(void *daemon, struct MHD_Connection *connection, const char *url, const char *method,
                             const char *version, const char *data, size_t *len, void **slot);
void request_end(void *daemon, struct MHD_Connection *connection, void **slot, enum MHD_RequestTerminationCode code);

#endif
