#include "common/http/exchange_wait.h"

#include <microhttpd.h>
#include <sys/epoll.h>

void exchange_wake(struct exchange *exchange)
{
    if (!exchange->is_suspended)
        return;
    exchange->is_suspended = false;
    http_connections_step(&exchange->server->connections, exchange->connection, false);
    MHD_resume_connection(exchange->connection->of);
    loop_post(exchange->server->loop, &exchange->connection->daemon->soon);
}

void exchange_stop_watching(struct exchange *exchange) { loop_unwatch(exchange->server->loop, &exchange->hangup); }

static void on_hangup(void *arg, uint32_t events)
{
    struct exchange *exchange = arg;
    (void)events;
    exchange->is_hung_up = true;
    exchange_stop_watching(exchange);
    exchange_wake(exchange);
}

/* Of a client that hung up before, the loop hears in its next turn. */
void exchange_sleep(struct exchange *exchange)
{
    const int fd = http_connection_fd(exchange->connection);
    exchange->is_suspended = true;
    http_connections_step(&exchange->server->connections, exchange->connection, true);
    MHD_suspend_connection(exchange->connection->of);
    if (fd >= 0 && !exchange->hangup)
        exchange->hangup = loop_watch(exchange->server->loop, fd, EPOLLRDHUP, on_hangup, exchange);
}
