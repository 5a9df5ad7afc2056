/* client.h - one request to a server, and whoever sent it: it is told a call's answer as that comes. */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_HTTP_CLIENT_H
#define SLUICE_WORKERS_AGENTS_PROXY_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

struct call;
struct exchange;
struct http_listener;
struct server;

struct client {
    struct client *next; /* in its server's list */
    struct http_listener *listener;
    struct server *server; /* NULL: the rollout has ended */
    struct exchange *exchange;
    struct call *call; /* NULL: none yet */
    const char *path;  /* as the server knows it; the exchange's */
    size_t sent;       /* bytes of the call's answer */
};

/* There may be more of its call's answer. */
void client_go_on(struct client *client);

#endif
