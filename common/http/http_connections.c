#include "common/http/http_connections.h"

#include <linux/sockios.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "common/loop/loop_now.h"

void http_connections_init(struct http_connections *connections)
{
    TAILQ_INIT(&connections->going);
    TAILQ_INIT(&connections->waiting);
    connections->count = 0;
}

static void put_in(struct http_connections *connections, struct http_connection *connection, bool waits)
{
    connection->waits = waits;
    connection->since_ms = loop_now_ms();
    connection->unread = -1;
    if (waits)
        TAILQ_INSERT_TAIL(&connections->waiting, connection, link);
    else
        TAILQ_INSERT_TAIL(&connections->going, connection, link);
}

static void take_out(struct http_connections *connections, struct http_connection *connection)
{
    if (connection->waits)
        TAILQ_REMOVE(&connections->waiting, connection, link);
    else
        TAILQ_REMOVE(&connections->going, connection, link);
}

struct http_connection *http_connections_add(struct http_connections *connections, struct http_daemon *daemon,
                                             struct MHD_Connection *of)
{
    struct http_connection *connection = calloc(1, sizeof(*connection));
    if (!connection)
        return NULL;
    connection->daemon = daemon;
    connection->of = of;
    put_in(connections, connection, false);
    connections->count++;
    return connection;
}

void http_connections_drop(struct http_connections *connections, struct http_connection *connection)
{
    if (!connection)
        return;
    take_out(connections, connection);
    connections->count--;
    free(connection);
}

void http_connections_step(struct http_connections *connections, struct http_connection *connection, bool waits)
{
    take_out(connections, connection);
    put_in(connections, connection, waits);
}

int http_connection_fd(const struct http_connection *connection)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection->of, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : -1;
}

void http_connection_cut(const struct http_connection *connection)
{
    const int fd = http_connection_fd(connection);
    if (fd >= 0)
        shutdown(fd, SHUT_RDWR);
}

/* Of what the kernel was given for it. */
static int count_unread(const struct http_connection *connection)
{
    int count = 0;
    return ioctl(http_connection_fd(connection), SIOCOUTQ, &count) < 0 ? 0 : count;
}

/*
 * The kernel takes more of an answer than the client reads in so long. So what it still has is looked at when half of
 * the time is over, and again at its end.
 */
static bool has_read(struct http_connection *connection)
{
    const int before = connection->unread;
    connection->unread = count_unread(connection);
    return before < 0 ? connection->unread > 0 : connection->unread < before;
}

void http_connections_end_idle(struct http_connections *connections, int64_t idle_ms)
{
    const int64_t now_ms = loop_now_ms();
    struct http_connection *connection, *next;
    for (connection = TAILQ_FIRST(&connections->going); connection; connection = next) {
        next = TAILQ_NEXT(connection, link);
        const int64_t idle_for_ms = now_ms - connection->since_ms;
        if (idle_for_ms < idle_ms / 2)
            return;
        if (idle_for_ms < idle_ms && connection->unread < 0)
            connection->unread = count_unread(connection);
        if (idle_for_ms < idle_ms)
            continue;
        if (!has_read(connection))
            http_connection_cut(connection);
        http_connections_step(connections, connection, false);
    }
}
