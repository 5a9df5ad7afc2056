/*
 * http_daemon.h - one daemon of libmicrohttpd on the server's loop, with a certificate or none, for connections that
 * the server gives it. A server has several: with each that wakes, MHD looks at all that sleep beside it.
 */
#ifndef SLUICE_COMMON_HTTP_HTTP_DAEMON_H
#define SLUICE_COMMON_HTTP_HTTP_DAEMON_H

#include <sys/socket.h>

#include "common/http/http_server_inside.h"

/* Fails as http_server_open does. */
struct http_daemon *http_daemon_open(struct http_server *server, const char *certificate, const char *key,
                                     struct fail *fail);
/* Takes the descriptor. */
void http_daemon_add(struct http_daemon *daemon, int fd, const struct sockaddr *address, socklen_t len);
/* None of its exchanges may sleep. NULL-safe. */
void http_daemon_close(struct http_daemon **daemon);

#endif
