/*
 * client.h - one request of a connection, and whoever sent it: it reads a call's answer as that comes, and sleeps while
 * there is nothing to read.
 */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_HTTP_CLIENT_H
#define SLUICE_WORKERS_AGENTS_PROXY_HTTP_CLIENT_H

#include <stdbool.h>

#include "common/base/buffer.h"
#include "workers/agents/proxy/http/listener.h"

struct MHD_Connection;
struct call;

struct client {
    struct client *next; /* in its server's list */
    struct http_listener *listener;
    struct server *server; /* NULL: its path is nobody's, or the rollout has ended */
    struct MHD_Connection *connection;
    struct call *call;        /* NULL: none yet */
    size_t path_at;           /* where in the URL the path begins that the server knows */
    struct buffer body;       /* as it comes in */
    enum reply_error nobody;  /* why its path is nobody's ... */
    const char *nobody_words; /* ... in words */
    bool is_too_large;
    bool is_one_too_many; /* of its server's, or its listener holds as much as it may */
    bool is_suspended;
    bool is_gone;  /* it hung up while it was not suspended */
    bool is_asked; /* its body is all there */
    size_t sent;   /* bytes of the call's answer */
    struct loop_watch *hangup;
};

/* Until there is more to tell, or its client has hung up. */
void client_suspend(struct client *client);
void client_resume(struct client *client);
bool client_hung_up(const struct client *client);

#endif
