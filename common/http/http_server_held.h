/*
 * http_server_held.h - the bytes of bodies and of answers not sent yet that a server holds, of all exchanges together,
 * and those that its owner holds itself and counts with them. They have a bound, the plan's held_max.
 */
#ifndef SLUICE_COMMON_HTTP_HTTP_SERVER_HELD_H
#define SLUICE_COMMON_HTTP_HTTP_SERVER_HELD_H

#include <stdbool.h>
#include <stddef.h>

struct http_server;

/* `before` bytes were held, and `now` are. */
void http_server_count(struct http_server *server, size_t before, size_t now);
size_t http_server_held(const struct http_server *server);
/* What comes with a body is refused then, and streams wait. */
bool http_server_is_full(const struct http_server *server);

#endif
