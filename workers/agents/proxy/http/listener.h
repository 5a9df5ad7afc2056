/*
 * listener.h - one listening socket that speaks HTTP, on the worker's loop: in a rollout's sandbox, for that rollout
 * alone, or the worker's own, for all that are told apart by their paths. What is asked at a path is for the server
 * (server.h) that the path leads to. Who may say what, and for how long, is common/http/http_server.h's.
 */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_HTTP_LISTENER_H
#define SLUICE_WORKERS_AGENTS_PROXY_HTTP_LISTENER_H

#include "common/base/buffer.h"
#include "common/loop/loop.h"
#include "workers/agents/proxy/dialects/dialect.h"

enum {
    LISTENER_HEADER_BYTES = 32 << 10, /* of one connection: Codex sends 2 KB */
    LISTENER_IDLE_MS = 30000,
    LISTENER_BODY_MAX = 32 << 20 /* bytes, encoded and not */
};

struct http_server;
struct server;

/* Whose a path is. */
struct listener_found {
    struct server *server; /* NULL: nobody's, and ... */
    enum reply_error error;
    const char *words; /* ... why, a text that stays */
    const char *path;  /* in the URL: from where on the server knows it */
};

/* What is said at once, beside any model. */
struct http_answer {
    int status;
    struct buffer json;
};

struct listener_plan {
    int fd; /* taken, whatever comes of it */
    unsigned connections_max;
    size_t held_max; /* bytes of bodies and answers, of all servers together */
    void (*find)(void *arg, const char *url, struct listener_found *ret);
    /* What is said where a path is nobody's, in place of why. False: that. NULL: likewise. */
    bool (*answer)(void *arg, const char *method, const char *url, struct http_answer *ret);
    void *arg;
};

struct http_listener {
    struct listener_plan plan;
    struct http_server *http;
};

/* NULL: it does not start. */
struct http_listener *listener_open(struct loop *loop, const struct listener_plan *plan);
/* Its servers are closed. All connections end. NULL-safe. */
void listener_close(struct http_listener **listener);

#endif
