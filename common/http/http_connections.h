/*
 * http_connections.h - those of a server, and which of them go on: a few that never send a whole request, or never read
 * what they asked for, would keep all others out.
 */
#ifndef SLUICE_COMMON_HTTP_HTTP_CONNECTIONS_H
#define SLUICE_COMMON_HTTP_HTTP_CONNECTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct MHD_Connection;
struct exchange;
struct http_daemon;

struct http_connection {
    TAILQ_ENTRY(http_connection) link; /* in `going`, the one that went on longest ago first, or in `waiting` */
    struct http_daemon *daemon;
    struct MHD_Connection *of;
    struct exchange *exchange; /* whose head is there; NULL: none */
    int64_t since_ms;          /* it went on last */
    int unread;                /* bytes that its client had not taken when that was looked at; negative: not since */
    bool waits;                /* for us, for as long as that may take */
};

struct http_connections {
    TAILQ_HEAD(, http_connection) going, waiting;
    size_t count;
};

void http_connections_init(struct http_connections *connections);
/* NULL: out of memory. */
struct http_connection *http_connections_add(struct http_connections *connections, struct http_daemon *daemon,
                                             struct MHD_Connection *of);
/* NULL-safe. */
void http_connections_drop(struct http_connections *connections, struct http_connection *connection);
/* It has gone on: asked, or taken more of an answer. */
void http_connections_step(struct http_connections *connections, struct http_connection *connection, bool waits);
/* MHD finds those ended that do not wait and have not gone on for so long, whatever they sent meanwhile. */
void http_connections_end_idle(struct http_connections *connections, int64_t idle_ms);
/* Its descriptor; negative: none. */
int http_connection_fd(const struct http_connection *connection);
/* MHD finds it ended when it runs next. */
void http_connection_cut(const struct http_connection *connection);

#endif
