/*
 * relay.h - a request passed on to another server, whose answer is passed back as it comes. Of an answer RELAY_ROOM
 * bytes are held; while its client takes none, the other server waits. Who hangs up hangs up there, too.
 *
 * Neither side is told the other's secrets: of the request the method, the body and its type go on, of the answer the
 * status, the body and few headers. No answer is of a type that a browser would run under the gateway's name.
 */
#ifndef SLUICE_CLIENT_GATEWAY_OUTGOING_RELAY_H
#define SLUICE_CLIENT_GATEWAY_OUTGOING_RELAY_H

#include "common/loop/loop.h"

enum { RELAYS_MAX = 4096 /* at a time */, RELAY_ROOM = 64 << 10 };

struct exchange;
struct http_server;
struct relay;
struct relays;

struct relay_plan {
    struct http_server *server;                 /* that counts what is held */
    struct exchange *exchange;                  /* all of it is there; its body is taken */
    const char *url;                            /* who asks has seen to it that it may be called */
    void (*failed)(void *arg, const char *why); /* nothing was answered, and will not be */
    void *arg;
};

/* NULL: out of memory. */
struct relays *relays_open(struct loop *loop);
/* There are none any more. NULL-safe. */
void relays_close(struct relays **relays);
/* NULL: there are as many as may be, or there is no memory. */
struct relay *relay_begin(struct relays *relays, const struct relay_plan *plan);
/* Its exchange is over, or is given up. NULL-safe. */
void relay_end(struct relay **relay);

#endif
