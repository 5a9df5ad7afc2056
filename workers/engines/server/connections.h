/*
 * connections.h - over what an engine is spoken to. All that one act (identity.h) hears comes over one line
 * (workers/runtime/http.h), so that who is at its other end can be asked before and after. Lines in no act are kept, the
 * last used first, while servers keep their connections too.
 */
#ifndef SLUICE_WORKERS_ENGINES_SERVER_CONNECTIONS_H
#define SLUICE_WORKERS_ENGINES_SERVER_CONNECTIONS_H

#include <stdint.h>

#include <sys/queue.h>

#include "workers/runtime/http.h"

struct engine;
struct fiber;

enum { LINE_IDLE_MS = 5000 };

/* That who is at a line's other end is who the engine's facts tell of: what was counted then. */
struct engine_connection_proof {
    uint64_t info; /* the facts' number; 0: nothing is proven */
    uint64_t doubts, connects, requests;
};

struct engine_connection {
    TAILQ_ENTRY(engine_connection) links;
    struct fiber *fiber; /* whose act it serves; NULL: nobody's */
    struct http_line *http;
    struct engine_connection_proof proof;
    int64_t used_ms;
};
TAILQ_HEAD(engine_connections, engine_connection);

/* For the current fiber, until engine_connection_give_back. NULL: out of memory. */
struct engine_connection *engine_connection_take(struct engine *engine);
void engine_connection_give_back(struct engine *engine, struct engine_connection *line);
/* The current fiber's; NULL: it is in no act. */
struct engine_connection *engine_connection_current(const struct engine *engine);
/* What its requests go over; NULL: any connection. */
struct http_line *engine_connection_http(const struct engine *engine);
void engine_connections_finish(struct engine *engine);

#endif
