#include "workers/network/gate.h"

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
    struct gate *gate;
    struct fiber *fiber;
    int inside;
};

struct gate {
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
    struct gate *gate = arg;
    gate->pause = NULL;
    gate->watch = loop_watch(gate->loop, gate->listener, EPOLLIN, on_connection, gate);
    if (!gate->watch)
        gate->pause = loop_after(gate->loop, PAUSE_MS, listen_again, gate);
}

static void pause_listening(struct gate *gate)
{
    loop_unwatch(gate->loop, &gate->watch);
    gate->pause = loop_after(gate->loop, PAUSE_MS, listen_again, gate);
}

static void free_when_unused(struct gate *gate)
{
    if (gate->listener < 0 && gate->count == 0)
        free(gate);
}

/* ---- one connection ------------------------------------------------------------------------ */

/* The sandbox's client sees a reset and not an orderly end without an answer. */
static void refuse_connection(int fd)
{
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
}

/* A sandbox may try as often as it likes. */
static void tell_once(struct gate *gate, const char *why)
{
    if (!gate->has_told)
        log_event(LOG_WARN, "grant.unreachable", "grant=%s error=\"%s\" action=refused",
                  gate->grant.name, why);
    gate->has_told = true;
}

static void serve(void *arg)
{
    struct connection *connection = arg;
    struct fail fail = {0};
    AUTO_CLOSE int outside = dial(&connection->gate->grant, &fail);
    if (outside < 0 && outside != -ECANCELED)
        tell_once(connection->gate, fail.text);
    if (outside < 0)
        refuse_connection(connection->inside);
    else
        relay_run(connection->inside, outside);
}

static void on_end(void *arg)
{
    struct connection *connection = arg;
    struct gate *gate = connection->gate;
    struct connection **at = &gate->connections;
    while (*at != connection)
        at = &(*at)->next;
    *at = connection->next;
    close(connection->inside);
    free(connection);
    bool was_full = gate->count-- == GATE_CONNECTIONS_MAX;
    if (was_full && gate->listener >= 0 && !gate->watch && !gate->pause)
        listen_again(gate);
    free_when_unused(gate);
}

static bool start_connection(struct gate *gate, int inside)
{
    struct connection *connection = calloc(1, sizeof(*connection));
    if (!connection)
        return false;
    *connection = (struct connection){.next = gate->connections, .gate = gate, .inside = inside};
    connection->fiber = fiber_start(gate->loop, serve, on_end, connection);
    if (!connection->fiber) {
        free(connection);
        return false;
    }
    gate->connections = connection;
    gate->count++;
    return true;
}

static void on_connection(void *arg, uint32_t events)
{
    struct gate *gate = arg;
    (void)events;
    while (gate->count < GATE_CONNECTIONS_MAX) {
        AUTO_CLOSE int inside = accept4(gate->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (inside < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED))
            return;
        if (inside < 0 || !start_connection(gate, inside)) {
            pause_listening(gate);
            return;
        }
        take_fd(&inside);
    }
    loop_unwatch(gate->loop, &gate->watch); /* until one ends */
}

/* ---- the gate ------------------------------------------------------------------------------ */

struct gate *gate_open(struct loop *loop, int listener, const struct grant *grant)
{
    struct gate *gate = calloc(1, sizeof(*gate));
    if (!gate) {
        close(listener);
        return NULL;
    }
    *gate = (struct gate){.loop = loop, .grant = *grant, .listener = listener};
    fcntl(listener, F_SETFL, O_NONBLOCK);
    gate->watch = loop_watch(loop, listener, EPOLLIN, on_connection, gate);
    if (!gate->watch)
        gate_close(&gate);
    return gate;
}

void gate_close(struct gate **gate)
{
    struct gate *it = *gate;
    if (!it)
        return;
    *gate = NULL;
    loop_unwatch(it->loop, &it->watch);
    loop_cancel(it->loop, &it->pause);
    close(take_fd(&it->listener));
    for (struct connection *at = it->connections; at; at = at->next)
        fiber_cancel(at->fiber);
    free_when_unused(it);
}
