/*
 * http_server.h - one listening socket that speaks HTTP/1.1, with TLS or without, on a loop. libmicrohttpd parses; what
 * is asked comes as exchanges (exchange.h), which are answered at once or later (exchange_answer.h). All on the loop's
 * thread. Nothing that a client sends is trusted, and whatever grows has a bound in the plan:
 *
 *   a head that has no room in header_bytes       431 or 414
 *   a head that two readers may read differently  400, and the connection ends: two lengths, a length and chunks, two
 *                                                 hosts, folded lines, names or values that are none, paths with dots
 *   a body larger than body_max, also decoded     413
 *   held_max is reached                           503 with Retry-After for what comes with a body
 *   connections_max is reached                    others wait until the kernel's queue is full, too
 *   nothing goes on for idle_ms                   the connection is closed; for a 16th of that, while others wait
 *
 * What is no HTTP, or has no room as its head comes in, libmicrohttpd refuses itself, in a line of HTML, and no
 * exchange is heard of. All else that is refused is in the owner's form. Two things that libmicrohttpd takes cannot be
 * told from what is right: lone line feeds between chunks, and what stands behind a NUL in a header. A proxy in front,
 * if there is one, must not send these on.
 */
#ifndef SLUICE_COMMON_HTTP_HTTP_SERVER_H
#define SLUICE_COMMON_HTTP_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buffer.h"
#include "common/base/fail.h"
#include "common/http/http_server_held.h"
#include "common/loop/loop.h"

struct exchange;
struct http_server;

struct http_server_plan {
    int fd;                   /* listens, TCP or Unix; taken, whatever comes of it */
    unsigned connections_max; /* at a time */
    size_t header_bytes;      /* memory of one connection, of which a head takes a half at most */
    size_t body_max;          /* bytes, as they come and decoded */
    size_t held_max;          /* bytes of bodies and of answers not sent yet, of all exchanges together */
    size_t unsent_max;        /* bytes of one stream that its client has not taken, or one piece; 0: 1 MiB */
    /*
     * A connection that waits for no answer, and for so long has neither sent a whole request, whatever it sends
     * meanwhile, nor taken any of an answer, is closed: else a few of them would keep all others out.
     */
    int64_t idle_ms;
    bool takes_encoded_slashes;    /* %2F in a path is a slash; else it is refused */
    const char *certificate, *key; /* PEM texts, a chain at most; NULL: no TLS. Copied */

    /*
     * The head of a request is there, its body is not. It may be answered now, which is told when the body has been
     * read and forgotten: `asked` is not called. NULL: all are asked.
     */
    void (*heard)(void *arg, struct exchange *exchange);
    /* All of it is there. It is answered now or, for as long as that takes, later. */
    void (*asked)(void *arg, struct exchange *exchange);
    /*
     * The last call for an exchange: the client has all of the answer (is_whole), or has hung up, was sent away, or
     * the server closes. Once for each whose head was there, also where the server itself refused it, so that it may
     * be logged. Nothing may be told then. NULL: nobody cares.
     */
    void (*gone)(void *arg, struct exchange *exchange, bool is_whole);
    /*
     * The body of an error in the owner's form, for what the server refuses and for exchange_refuse; returns its
     * content type. NULL: {"detail": "words"}.
     */
    const char *(*write_error)(void *arg, struct exchange *exchange, int status, const char *words, struct buffer *ret);
    void *arg;
};

/* NULL with -EINVAL for what is wrong with the certificate or key, -ENOTSUP: no TLS in this program, -ENOMEM. */
struct http_server *http_server_open(struct loop *loop, const struct http_server_plan *plan, struct fail *fail);
/* All exchanges end (`gone`) and all connections. NULL-safe. Not from a callback of its own. */
void http_server_close(struct http_server **server);

/*
 * New connections get this certificate; those that there are go on as they are, for the next eight renewals. Fails as
 * http_server_open does, and all stays as it was. Not from a callback of its own.
 */
int http_server_renew_tls(struct http_server *server, const char *certificate, const char *key, struct fail *fail);

size_t http_server_connections(const struct http_server *server);

#endif
