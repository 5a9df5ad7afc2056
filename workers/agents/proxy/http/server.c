#include "workers/agents/proxy/http/server.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/http/http_server.h"
#include "common/loop/loop_now.h"
#include "workers/runtime/fiber.h"

struct server {
    struct server_plan plan;
    struct loop *loop;
    struct fiber *owner; /* whose deadlines hold */
    struct loop_timer *tick;
    struct client *clients;
    size_t client_count;
    struct call *calls;
    size_t held;      /* bytes of bodies and answers */
    size_t working;   /* fibers */
    int64_t heard_ms; /* when somebody spoke to it last, or was answered */
    bool is_awaited;  /* the owner waits for the last of them */
};

const struct server_plan *server_plan(const struct server *server) { return &server->plan; }

int64_t server_silent_ms(const struct server *server)
{
    return server->client_count > 0 || server->working > 0 ? 0 : loop_now_ms() - server->heard_ms;
}

/* ---- calls ------------------------------------------------------------------------------------------- */

static void free_call(struct http_listener *listener, struct call *call)
{
    http_server_count(listener->http, call->held, 0);
    call_finish(call);
    free(call);
}

static void drop_call(struct server *server, struct call *call)
{
    struct call **at = &server->calls;
    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    server->held -= call->held;
    free_call(server->plan.listener, call);
}

/* A client's second try comes soon, or not at all. */
static bool is_stale(const struct call *call)
{
    return call->clients == 0 && !call->fiber &&
           (call->is_delivered || loop_now_ms() - call->ended_ms > SERVER_AGAIN_MS);
}

static void wake_clients(struct server *server, const struct call *call)
{
    for (struct client *client = server->clients; client; client = client->next)
        if (client->call == call)
            client_go_on(client);
}

static void count_held(struct call *call)
{
    const size_t now = call->body.capacity + call->out.capacity;
    call->server->held += now - call->held;
    http_server_count(call->server->plan.listener->http, call->held, now);
    call->held = now;
}

static void on_more(void *arg)
{
    struct call *call = arg;
    count_held(call);
    wake_clients(call->server, call);
}

static void work(void *arg)
{
    struct call *call = arg;
    fiber_work_for(call->server->owner);
    call_work(call, on_more, call);
    fiber_give_time(call->server->owner, fiber_given_time(fiber_current()));
}

static void on_end(void *arg)
{
    struct call *call = arg;
    struct server *server = call->server;
    call->fiber = NULL;
    call->ended_ms = server->heard_ms = loop_now_ms();
    server->working--;
    server->plan.changed(server->plan.arg);
    if (server->is_awaited)
        fiber_wake(server->owner);
}

/* Every SERVER_QUIET_MS: streams are kept alive, and what nobody will ask for again is dropped. */
static void on_tick(void *arg)
{
    struct server *server = arg;
    server->tick = loop_after(server->loop, SERVER_QUIET_MS, on_tick, server);
    for (struct call *call = server->calls, *next; call; call = next) {
        next = call->next;
        if (call->fiber && loop_now_ms() - call->began_ms >= SERVER_QUIET_MS && call_keep_alive(call))
            on_more(call);
        else if (is_stale(call))
            drop_call(server, call);
    }
}

static struct call *find_call(struct server *server, const char *key)
{
    for (struct call *call = server->calls; call; call = call->next)
        if (!call->is_delivered && strcmp(call->key, key) == 0)
            return call;
    return NULL;
}

/* NULL: out of memory. */
static struct call *add_call(struct server *server, const struct call *as, struct buffer *body)
{
    struct call *call = malloc(sizeof(*call));
    if (!call)
        return NULL;
    *call = *as;
    call->server = server;
    call->proxy = server->plan.proxy;
    call->node = TREE_NONE;
    call->began_ms = loop_now_ms();
    call->body = *body;
    *body = (struct buffer){0};
    call->next = server->calls;
    server->calls = call;
    count_held(call);
    return call;
}

static bool start_call(struct call *call)
{
    call->fiber = fiber_start(call->server->loop, work, on_end, call);
    call->server->working += call->fiber != NULL;
    return call->fiber != NULL;
}

struct call *server_call(struct server *server, const struct call *as, struct buffer *body, const char **why)
{
    struct call *call = find_call(server, as->key);
    *why = "";
    if (call)
        return call;
    if (server->held > SERVER_HELD_MAX) {
        *why = "too many bytes of requests are under way";
        return NULL;
    }
    call = add_call(server, as, body);
    if (!call || start_call(call))
        return call;
    drop_call(server, call);
    return NULL;
}

/* ---- who asks ------------------------------------------------------------------------------------------- */

bool server_join(struct server *server, struct client *client)
{
    if (server->client_count == SERVER_CLIENTS_MAX || server->is_awaited)
        return false;
    client->server = server;
    client->next = server->clients;
    server->clients = client;
    server->client_count++;
    server->heard_ms = loop_now_ms();
    return true;
}

static void leave(struct client *client)
{
    struct server *server = take_ptr(&client->server);
    struct client **at = &server->clients;
    while (*at != client)
        at = &(*at)->next;
    *at = client->next;
    server->client_count--;
    server->heard_ms = loop_now_ms();
}

/* Many close a stream behind its last event. */
void server_part(struct client *client)
{
    struct call *call = client->call;
    if (client->server)
        leave(client);
    if (!call)
        return;
    call->clients--;
    const bool is_whole = call->is_done && client->sent == call->out.len;
    call->is_delivered = call->is_delivered || is_whole;
    if (!call->server && call->clients == 0)
        free_call(client->listener, call);
    else if (call->server && is_whole && call->node != TREE_NONE)
        proxy_note_delivered(call->proxy, call->node);
}

/* ---- the server -------------------------------------------------------------------------------------------- */

struct server *server_open(const struct server_plan *plan)
{
    struct server *server = calloc(1, sizeof(*server));
    if (!server)
        return NULL;
    *server = (struct server){.plan = *plan, .loop = fiber_loop(), .owner = fiber_current(), .heard_ms = loop_now_ms()};
    server->tick = loop_after(server->loop, SERVER_QUIET_MS, on_tick, server);
    if (!server->tick)
        server_close(&server);
    return server;
}

/* Who has not asked yet is told that it has ended. */
static void let_go_of_askers(struct server *server)
{
    for (struct client *client = server->clients, *next; client; client = next) {
        next = client->next;
        if (!client->call)
            leave(client);
    }
}

static void end_fibers(struct server *server)
{
    for (struct call *call = server->calls; call; call = call->next)
        if (call->fiber)
            fiber_cancel(call->fiber);
    fiber_shield(true);
    fiber_lift_deadline(0);
    while (server->working > 0)
        await_wake(-1);
    fiber_pop_deadline();
    fiber_shield(false);
}

/* They are told what there is, and go. */
static void let_go(struct server *server)
{
    for (struct client *client; (client = server->clients);) {
        server->clients = client->next;
        client->server = NULL;
        if (client->call)
            client_go_on(client);
    }
    for (struct call *call; (call = server->calls);) {
        server->calls = call->next;
        call->server = NULL;
        if (call->clients == 0)
            free_call(server->plan.listener, call);
    }
}

void server_close(struct server **server)
{
    struct server *it = take_ptr(server);
    if (!it)
        return;
    loop_cancel(it->loop, &it->tick);
    it->is_awaited = true;
    let_go_of_askers(it);
    end_fibers(it);
    let_go(it);
    free(it);
}
