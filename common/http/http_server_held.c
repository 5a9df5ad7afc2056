#include "common/http/http_server_held.h"

#include "common/http/http_server_inside.h"

void http_server_count(struct http_server *server, size_t before, size_t now) { server->held += now - before; }

size_t http_server_held(const struct http_server *server) { return server->held; }

bool http_server_is_full(const struct http_server *server) { return server->held >= server->plan.held_max; }
