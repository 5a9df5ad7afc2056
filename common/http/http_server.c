#include "common/http/http_server.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/http/exchange_wait.h"
#include "common/http/http_daemon.h"

enum {
    TICK_MAX_MS = 5000,
    TICKS_AN_IDLE = 6, /* how often connections are looked at in the time after which they are closed */
    REPLACED_MAX = 8   /* daemons of earlier certificates whose connections go on */
};

/* ---- what is held ------------------------------------------------------------------------------------- */

void http_server_count(struct http_server *server, size_t before, size_t now)
{
    http_server_recount(server, before, now);
}

size_t http_server_held(const struct http_server *server) { return server->held; }

bool http_server_is_full(const struct http_server *server) { return server->held >= server->plan.held_max; }

size_t http_server_connections(const struct http_server *server) { return server->connections.count; }

/* ---- daemons ------------------------------------------------------------------------------------------- */

/* MHD ends no connection that sleeps. */
static void wake_all(struct http_server *server, const struct http_daemon *of)
{
    struct http_connection *connection, *next;
    for (connection = TAILQ_FIRST(&server->connections.waiting); connection; connection = next) {
        next = TAILQ_NEXT(connection, link);
        if (connection->daemon == of && connection->exchange)
            exchange_wake(connection->exchange);
    }
}

static void end_daemon(struct http_server *server, struct http_daemon *daemon)
{
    if (daemon)
        wake_all(server, daemon);
    http_daemon_close(&daemon);
}

static void end_replaced(struct http_server *server, struct http_daemon *daemon)
{
    LIST_REMOVE(daemon, link);
    end_daemon(server, daemon);
}

/* Those that have nobody left, and the oldest of too many. */
static void end_needless(struct http_server *server)
{
    size_t count = 0;
    struct http_daemon *daemon, *next;
    for (daemon = LIST_FIRST(&server->replaced); daemon; daemon = next) {
        next = LIST_NEXT(daemon, link);
        if (++count > REPLACED_MAX || http_daemon_is_idle(daemon))
            end_replaced(server, daemon);
    }
}

/* ---- its time -------------------------------------------------------------------------------------------- */

static void on_tick(void *arg);

static bool set_tick(struct http_server *server)
{
    const int64_t every_ms = server->plan.idle_ms / TICKS_AN_IDLE + 1;
    server->tick = loop_after(server->loop, every_ms < TICK_MAX_MS ? every_ms : TICK_MAX_MS, on_tick, server);
    return server->tick != NULL;
}

/* Who only keeps others out is sent away. */
static void on_tick(void *arg)
{
    struct http_server *server = arg;
    set_tick(server);
    http_connections_end_idle(&server->connections, server->plan.idle_ms);
    end_needless(server);
}

/* ---- the server ------------------------------------------------------------------------------------------ */

struct http_server *http_server_open(struct loop *loop, const struct http_server_plan *plan, struct fail *fail)
{
    assert(plan->asked && plan->idle_ms > 0 && plan->connections_max > 0);
    AUTO_CLOSE int fd = plan->fd;
    struct http_server *server = calloc(1, sizeof(*server));
    if (!server) {
        fail_memory(fail);
        return NULL;
    }
    *server = (struct http_server){.plan = *plan, .loop = loop};
    server->plan.certificate = server->plan.key = NULL;
    http_connections_init(&server->connections);
    LIST_INIT(&server->replaced);
    server->daemon = http_daemon_open(server, take_fd(&fd), plan->certificate, plan->key, fail);
    if (server->daemon && !set_tick(server))
        fail_memory(fail);
    if (!server->tick)
        http_server_close(&server);
    return server;
}

void http_server_close(struct http_server **server)
{
    struct http_server *it = take_ptr(server);
    if (!it)
        return;
    loop_cancel(it->loop, &it->tick);
    end_daemon(it, take_ptr(&it->daemon));
    while (!LIST_EMPTY(&it->replaced))
        end_replaced(it, LIST_FIRST(&it->replaced));
    free(it);
}

int http_server_renew_tls(struct http_server *server, const char *certificate, const char *key, struct fail *fail)
{
    const int fd = fcntl(http_daemon_fd(server->daemon), F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return fail_set(fail, -errno, "TLS: %s", strerror(errno));
    struct fail why = {0};
    struct http_daemon *fresh = http_daemon_open(server, fd, certificate, key, &why);
    if (!fresh)
        return fail_set(fail, why.code, "%s", why.text);
    http_daemon_quiesce(server->daemon);
    LIST_INSERT_HEAD(&server->replaced, server->daemon, link);
    server->daemon = fresh;
    end_needless(server);
    return 0;
}
