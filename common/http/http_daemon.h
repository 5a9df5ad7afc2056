/* http_daemon.h - one daemon of libmicrohttpd on the server's loop: a listening socket, and a certificate or none. */
#ifndef SLUICE_COMMON_HTTP_HTTP_DAEMON_H
#define SLUICE_COMMON_HTTP_HTTP_DAEMON_H

#include "common/http/http_server_inside.h"

/* Takes the descriptor, whatever comes of it. Fails as http_server_open does. */
struct http_daemon *http_daemon_open(struct http_server *server, int fd, const char *certificate, const char *key,
                                     struct fail *fail);
/* Its descriptor, which another may duplicate. */
int http_daemon_fd(const struct http_daemon *daemon);
/* It takes no more connections; those that it has go on. */
void http_daemon_quiesce(struct http_daemon *daemon);
bool http_daemon_is_idle(const struct http_daemon *daemon); /* has no connections */
/* None of its exchanges may sleep. NULL-safe. */
void http_daemon_close(struct http_daemon **daemon);

#endif
