#include "workers/network/forward.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "workers/runtime/fiber.h"
#include "workers/network/dial.h"
#include "workers/network/relay.h"

enum { PAUSE_MS = 200 }; /* when there is no descriptor or memory for one more */

struct connection {
    struct connection *next;
    struct forward *forward;
    struct fiber *fiber;
    int inside;
};

struct forward {
    struct loop *loop;
    struct grant grant;
    int listener; /* -1 once closed */
    struct loop_watch *watch;
    struct loop_timer *pause;
    struct connection *connections;
    size_t count;
    bool has_told; /* that nothing can be reached */
};

static void on_connection(void *arg, uint32_t events);

static void listen_again(void *arg)
{
    struct forward *forward = arg;
    forward->pause = NULL;
    forward->watch = loop_watch(forward->loop, forward->listener, EPOLLIN, on_connection, forward);
    if (!forward->watch)
        forward->pause = loop_after(forward->loop, PAUSE_MS, listen_again, forward);
}

static void pause_listening(struct forward *forward)
{
    loop_unwatch(forward->loop, &forward->watch);
    forward->pause = loop_after(forward->loop, PAUSE_MS, listen_again, forward);
}

static void free_when_unused(struct forward *forward)
{
    if (forward->listener < 0 && forward->count == 0)
        free(forward);
}

/* ---- one connection ------------------------------------------------------------------------ */

/* The sandbox's client sees a reset and not an orderly end without an answer. */
static void refuse_connection(int fd)
{
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
}

/* A sandbox may try as often as it likes. */
static void tell_once(struct forward *forward, const char *why)
{
    if (!forward->has_told)
        log_event(LOG_WARN, "grant.unreachable", "grant=%s error=\"%s\" action=refused", forward->grant.name, why);
    forward->has_told = true;
}

static void serve(void *arg)
{
    struct connection *connection = arg;
    struct fail fail = {0};
    AUTO_CLOSE int outside = dial(&connection->forward->grant, &fail);
    if (outside < 0 && outside != -ECANCELED)
        tell_once(connection->forward, fail.text);
    if (outside < 0)
        refuse_connection(connection->inside);
    else
        relay_run(connection->inside, outside);
}

static void on_end(void *arg)
{
    struct connection *connection = arg;
    struct forward *forward = connection->forward;
    struct connection **at = &forward->connections;
    while (*at != connection)
        at = &(*at)->next;
    *at = connection->next;
    close(connection->inside);
    free(connection);
    bool was_full = forward->count-- == FORWARD_CONNECTIONS_MAX;
    if (was_full && forward->listener >= 0 && !forward->watch && !forward->pause)
        listen_again(forward);
    free_when_unused(forward);
}

static bool start_connection(struct forward *forward, int inside)
{
    struct connection *connection = calloc(1, sizeof(*connection));
    if (!connection)
        return false;
    *connection = (struct connection){.next = forward->connections, .forward = forward, .inside = inside};
    connection->fiber = fiber_start(forward->loop, serve, on_end, connection);
    if (!connection->fiber) {
        free(connection);
        return false;
    }
    forward->connections = connection;
    forward->count++;
    return true;
}

static void on_connection(void *arg, uint32_t events)
{
    struct forward *forward = arg;
    (void)events;
    while (forward->count < FORWARD_CONNECTIONS_MAX) {
        AUTO_CLOSE int inside = accept4(forward->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (inside < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED))
            return;
        if (inside < 0 || !start_connection(forward, inside)) {
            pause_listening(forward);
            return;
        }
        take_fd(&inside);
    }
    loop_unwatch(forward->loop, &forward->watch); /* until one ends */
}

/* ---- the forward ------------------------------------------------------------------------------ */

struct forward *forward_open(struct loop *loop, int listener, const struct grant *grant)
{
    struct forward *forward = calloc(1, sizeof(*forward));
    if (!forward) {
        close(listener);
        return NULL;
    }
    *forward = (struct forward){.loop = loop, .grant = *grant, .listener = listener};
    fcntl(listener, F_SETFL, O_NONBLOCK);
    forward->watch = loop_watch(loop, listener, EPOLLIN, on_connection, forward);
    if (!forward->watch)
        forward_close(&forward);
    return forward;
}

void forward_close(struct forward **forward)
{
    struct forward *it = *forward;
    if (!it)
        return;
    *forward = NULL;
    loop_unwatch(it->loop, &it->watch);
    loop_cancel(it->loop, &it->pause);
    close(take_fd(&it->listener));
    for (struct connection *at = it->connections; at; at = at->next)
        fiber_cancel(at->fiber);
    free_when_unused(it);
}
