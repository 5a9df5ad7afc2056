/*
 * server.h - the proxy of one rollout over HTTP: the calls that are at work or were answered of late, each in a fiber.
 * Who speaks at its path is this rollout, whatever key or session it says. Connections are listener.h's.
 *
 * A request whose path and body are those of one that is at work, or that was answered and not delivered a little while
 * ago, is a client's second try: it is given the same answer. A stream's first event waits for SERVER_QUIET_MS, so that
 * a refusal can be an HTTP status; from then on comments keep the connection alive until there is a turn.
 */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_HTTP_SERVER_H
#define SLUICE_WORKERS_AGENTS_PROXY_HTTP_SERVER_H

#include "workers/agents/proxy/http/call.h"
#include "workers/agents/proxy/http/client.h"
#include "workers/agents/proxy/http/listener.h"
#include "workers/agents/proxy/proxy.h"

enum {
    SERVER_CLIENTS_MAX = 64,    /* requests at a time */
    SERVER_HELD_MAX = 64 << 20, /* bodies and answers of all requests together */
    SERVER_QUIET_MS = 5000,
    SERVER_AGAIN_MS = 30000 /* an answer that was not delivered is kept so long */
};

struct server;

struct server_plan {
    struct http_listener *listener; /* stays until the server is closed */
    struct proxy *proxy;
    void (*changed)(void *arg); /* on the loop's stack, after each turn and when the proxy has failed */
    /* What it answers beside its model, on the loop's stack. False: it knows no such path. NULL: nothing. */
    bool (*answer)(void *arg, const char *method, const char *path, struct slice body, struct http_answer *ret);
    void *arg;
};

/* In the agent's fiber, whose deadlines and activity hold for all requests. NULL: out of memory. */
struct server *server_open(const struct server_plan *plan);
/*
 * Awaits the end of all fibers, which are cancelled. What is answered by then is still told to those who wait for it,
 * as long as its listener lives. NULL-safe.
 */
void server_close(struct server **server);
/* Milliseconds since anybody spoke to it last, or since it opened; 0: a request is at work. */
int64_t server_silent_ms(const struct server *server);

/* ---- for requests (request.h) --------------------------------------------------------------------- */

/* One more who asks. False: as many as may do so already. */
bool server_join(struct server *server, struct client *client);
/* Who asked is gone, with what it read. */
void server_part(struct client *client);
const struct server_plan *server_plan(const struct server *server);
/*
 * The call for that: one that came before, or a new one, which takes the body. NULL: *why with its words, or "" where
 * there is no memory.
 */
struct call *server_call(struct server *server, const struct call *as, struct buffer *body, const char **why);

#endif
