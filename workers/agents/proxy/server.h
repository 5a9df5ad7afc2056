/*
 * server.h - the proxy over HTTP on one listener, which is inside one rollout's sandbox: who connects is that rollout,
 * whatever key or session it says. libmicrohttpd parses, on the worker's loop; each request is worked on in a fiber.
 *
 * A request whose path and body are those of one that is at work, or that was answered and not delivered a little while
 * ago, is a client's second try: it is given the same answer. A stream's first event waits for SERVER_QUIET_MS, so that
 * a refusal can be an HTTP status; from then on comments keep the connection alive until there is a turn.
 *
 * A connection that waits for no answer and has sent no whole request for SERVER_IDLE_MS is closed, whatever it sends
 * meanwhile: else a few of them would keep all others out.
 */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_SERVER_H
#define SLUICE_WORKERS_AGENTS_PROXY_SERVER_H

#include "workers/agents/proxy/proxy.h"
#include "workers/runtime/loop.h"

enum {
    SERVER_CONNECTIONS_MAX = 64,
    SERVER_HELD_MAX = 64 << 20, /* bodies and answers of all requests together */
    SERVER_QUIET_MS = 5000,
    SERVER_IDLE_MS = 30000,
    SERVER_AGAIN_MS = 30000 /* an answer that was not delivered is kept so long */
};

struct server;

/*
 * In the agent's fiber, whose deadlines and activity hold for all requests. Takes the listener, also when it returns
 * NULL. `changed` is called on the loop's stack after each turn and when the proxy has failed.
 */
struct server *server_open(int listener, struct proxy *proxy, void (*changed)(void *arg), void *arg);
/* Awaits the end of all fibers, which are cancelled. NULL-safe. */
void server_close(struct server **server);

#endif
