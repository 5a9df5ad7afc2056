#include "common/http/http_server.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/http/exchange_wait.h"
#include "common/http/http_daemon.h"

enum {
    TICK_MAX_MS = 5000,
    TICKS_AN_IDLE = 6,        /* how often connections are looked at in the time after which they are closed */
    CROWDED = 16,             /* by how much that is shorter while others wait to come in */
    DAEMON_CONNECTIONS = 256, /* of one daemon, before there is another */
    RENEWALS_MAX = 8          /* connections of a certificate that was renewed more often are closed */
};

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
    LIST_REMOVE(daemon, link);
    wake_all(server, daemon);
    http_daemon_close(&daemon);
}

/* Those that have nobody left, but one, and those of certificates of long ago. */
static void end_needless(struct http_server *server)
{
    struct http_daemon *daemon = LIST_FIRST(&server->daemons), *next;
    for (daemon = LIST_NEXT(daemon, link); daemon; daemon = next) {
        next = LIST_NEXT(daemon, link);
        if (daemon->count == 0 || server->renewals - daemon->renewals > RENEWALS_MAX)
            end_daemon(server, daemon);
    }
}

static struct http_daemon *open_daemon(struct http_server *server, struct fail *fail)
{
    struct http_daemon *daemon = http_daemon_open(server, server->plan.certificate, server->plan.key, fail);
    if (daemon)
        LIST_INSERT_HEAD(&server->daemons, daemon, link);
    return daemon;
}

/* One that has room; else a new one; else, where there is none, whichever is the latest. */
static struct http_daemon *pick_daemon(struct http_server *server)
{
    struct http_daemon *daemon;
    LIST_FOREACH(daemon, &server->daemons, link)
    if (daemon->renewals == server->renewals && daemon->count < DAEMON_CONNECTIONS)
        return daemon;
    daemon = open_daemon(server, NULL);
    return daemon ? daemon : LIST_FIRST(&server->daemons);
}

/* ---- who comes and goes ---------------------------------------------------------------------------------- */

static void on_come(void *arg, int fd, const struct sockaddr *address, socklen_t len)
{
    struct http_server *server = arg;
    http_daemon_add(pick_daemon(server), fd, address, len);
    if (server->connections.count >= server->plan.connections_max)
        http_door_shut(&server->door);
}

static void on_left(void *arg)
{
    struct http_server *server = arg;
    if (server->connections.count < server->plan.connections_max)
        http_door_reopen(&server->door);
}

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
    http_connections_end_idle(&server->connections, server->plan.idle_ms / (server->door.is_shut ? CROWDED : 1));
    end_needless(server);
    on_left(server);
}

/* ---- its certificate -------------------------------------------------------------------------------------- */

static void forget_text(const char **text)
{
    char *it = (char *)(uintptr_t)take_ptr(text);
    if (it)
        explicit_bzero(it, strlen(it));
    free(it);
}

/* Later daemons have it, too. False: out of memory, and it has the one that it had. */
static bool keep_certificate(struct http_server *server, const char *certificate, const char *key)
{
    const char *own = certificate ? strdup(certificate) : NULL, *own_key = key ? strdup(key) : NULL;
    if ((certificate && !own) || (key && !own_key)) {
        forget_text(&own);
        forget_text(&own_key);
        return false;
    }
    forget_text(&server->plan.certificate);
    forget_text(&server->plan.key);
    server->plan.certificate = own;
    server->plan.key = own_key;
    return true;
}

int http_server_renew_tls(struct http_server *server, const char *certificate, const char *key, struct fail *fail)
{
    struct fail why = {0};
    struct http_daemon *daemon = http_daemon_open(server, certificate, key, &why);
    if (!daemon)
        return fail_set(fail, why.code, "%s", why.text);
    if (!keep_certificate(server, certificate, key)) {
        http_daemon_close(&daemon);
        return fail_memory(fail);
    }
    daemon->renewals = ++server->renewals;
    LIST_INSERT_HEAD(&server->daemons, daemon, link);
    end_needless(server);
    return 0;
}

/* ---- the server ------------------------------------------------------------------------------------------ */

static bool start(struct http_server *server, const struct http_server_plan *plan, struct fail *fail)
{
    if (!keep_certificate(server, plan->certificate, plan->key)) {
        fail_memory(fail);
        return false;
    }
    if (!open_daemon(server, fail))
        return false;
    if (http_door_open(&server->door) && set_tick(server))
        return true;
    fail_memory(fail);
    return false;
}

struct http_server *http_server_open(struct loop *loop, const struct http_server_plan *plan, struct fail *fail)
{
    assert(plan->asked && plan->idle_ms > 0 && plan->connections_max > 0);
    struct http_server *server = calloc(1, sizeof(*server));
    if (!server) {
        close(plan->fd);
        fail_memory(fail);
        return NULL;
    }
    *server = (struct http_server){.plan = *plan, .loop = loop, .left = {.run = on_left, .arg = server}};
    server->plan.certificate = server->plan.key = NULL;
    server->door = (struct http_door){.fd = plan->fd, .loop = loop, .come = on_come, .arg = server};
    http_connections_init(&server->connections);
    LIST_INIT(&server->daemons);
    if (!start(server, plan, fail))
        http_server_close(&server);
    return server;
}

void http_server_close(struct http_server **server)
{
    struct http_server *it = take_ptr(server);
    if (!it)
        return;
    http_door_close(&it->door);
    loop_cancel(it->loop, &it->tick);
    while (!LIST_EMPTY(&it->daemons))
        end_daemon(it, LIST_FIRST(&it->daemons));
    loop_unpost(it->loop, &it->left);
    forget_text(&it->plan.certificate);
    forget_text(&it->plan.key);
    free(it);
}
