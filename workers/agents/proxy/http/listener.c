#include "workers/agents/proxy/http/listener.h"

#include <fcntl.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "workers/agents/proxy/http/request.h"

enum { TICK_MS = 5000 };

static void run_daemon(void *arg)
{
    struct http_listener *listener = arg;
    MHD_UNSIGNED_LONG_LONG wait_ms;
    MHD_run(listener->daemon);
    if (MHD_get_timeout(listener->daemon, &wait_ms) == MHD_YES && wait_ms == 0)
        loop_post(listener->loop, &listener->soon);
}

static void on_event(void *arg, uint32_t events)
{
    (void)events;
    run_daemon(arg);
}

/* Who only keeps others out is sent away. */
static void on_tick(void *arg)
{
    struct http_listener *listener = arg;
    listener->tick = loop_after(listener->loop, TICK_MS, on_tick, listener);
    connections_end_idle(&listener->connections, LISTENER_IDLE_MS);
}

/* MHD listens again, where it had as many as it takes, when it is run next. */
static void on_connection(void *arg, struct MHD_Connection *connection, void **slot,
                          enum MHD_ConnectionNotificationCode what)
{
    struct http_listener *listener = arg;
    connections_note(&listener->connections, connection, slot, what);
    if (what == MHD_CONNECTION_NOTIFY_CLOSED)
        loop_post(listener->loop, &listener->soon);
}

static struct MHD_Daemon *start_daemon(struct http_listener *listener, int fd)
{
    const struct listener_plan *plan = &listener->plan;
    return MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC, 0, NULL, NULL, request_take,
                            listener, MHD_OPTION_LISTEN_SOCKET, (MHD_socket)fd, MHD_OPTION_CONNECTION_LIMIT,
                            plan->connections_max, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)LISTENER_HEADER_BYTES,
                            MHD_OPTION_NOTIFY_COMPLETED, request_end, listener, MHD_OPTION_NOTIFY_CONNECTION,
                            on_connection, listener, MHD_OPTION_END);
}

/* Whoever waits there already is of a rollout, or a step, before; and gone. */
static void turn_away(int fd)
{
    fcntl(fd, F_SETFL, O_NONBLOCK);
    for (int waiting; (waiting = accept(fd, NULL, NULL)) >= 0;)
        close(waiting);
}

struct http_listener *listener_open(struct loop *loop, const struct listener_plan *plan)
{
    AUTO_CLOSE int fd = plan->fd;
    struct http_listener *listener = calloc(1, sizeof(*listener));
    if (!listener)
        return NULL;
    *listener = (struct http_listener){.plan = *plan, .loop = loop, .soon = {.run = run_daemon, .arg = listener}};
    turn_away(fd);
    listener->daemon = start_daemon(listener, fd);
    if (!listener->daemon) {
        free(listener);
        return NULL;
    }
    take_fd(&fd); /* MHD closes it */
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(listener->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    listener->watch = loop_watch(loop, info->epoll_fd, EPOLLIN, on_event, listener);
    listener->tick = loop_after(loop, TICK_MS, on_tick, listener);
    if (!listener->watch || !listener->tick)
        listener_close(&listener);
    return listener;
}

void listener_close(struct http_listener **listener)
{
    struct http_listener *it = take_ptr(listener);
    if (!it)
        return;
    loop_unwatch(it->loop, &it->watch);
    loop_cancel(it->loop, &it->tick);
    MHD_stop_daemon(it->daemon);
    loop_unpost(it->loop, &it->soon);
    free(it);
}
