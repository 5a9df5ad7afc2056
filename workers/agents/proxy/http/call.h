/*
 * call.h - one request as it is worked on, apart from who waits for it: its body is read and answered in a fiber, and
 * the bytes of the answer lie here until all who asked have them. Owned by the server.
 */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_HTTP_CALL_H
#define SLUICE_WORKERS_AGENTS_PROXY_HTTP_CALL_H

#include "common/digest/digest.h"
#include "workers/agents/proxy/proxy.h"
#include "workers/runtime/fiber.h"

struct server;

struct call {
    struct call *next;     /* this and the next two are the server's */
    struct server *server; /* NULL: its rollout has ended */
    size_t held;           /* bytes that it was counted with */
    struct proxy *proxy;
    const struct dialect *dialect;
    enum dialect_ask ask;
    bool is_stream;        /* by its path or body */
    char model[128];       /* by its path; "" */
    char key[DIGEST_SIZE]; /* of its path and body */
    struct buffer body;    /* until it is read */
    struct fiber *fiber;   /* NULL: it has ended */
    /* The answer. */
    int status;     /* of HTTP; 0: not known yet */
    bool is_events; /* `out` is a stream of events */
    bool is_done;   /* all of it is there */
    struct buffer out;
    struct reply_stream stream;
    struct reply told; /* of a stream, before the turn is there: what is known of it; borrows from these, and of it */
    void (*more)(void *arg); /* while it is worked on */
    void *more_arg;
    char id[HANDLE_SIZE];
    char asked_model[128];
    size_t node;                /* that it sampled; TREE_NONE */
    size_t clients;             /* who wait for it */
    bool is_delivered;          /* somebody has all of it */
    int64_t began_ms, ended_ms; /* its fiber */
};

/* Runs in its fiber; `more` is told whenever there is more of the answer, on the loop's stack, too. */
void call_work(struct call *call, void (*more)(void *arg), void *arg);
/* Begins the stream of one that is not answered yet; later, a comment that keeps it alive. False: it is no stream. */
bool call_keep_alive(struct call *call);
void call_finish(struct call *call);

#endif
