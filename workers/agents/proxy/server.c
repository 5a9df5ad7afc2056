#include "workers/agents/proxy/server.h"

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/digest/digest.h"
#include "workers/agents/proxy/call.h"
#include "workers/agents/proxy/connections.h"
#include "workers/runtime/fiber.h"
#include "workers/runtime/loop_now.h"

enum { CONNECTION_BYTES = 32 << 10 }; /* for headers: Codex sends 2 KB */

/* One connection that waits for a call's answer. */
struct client {
    struct client *next;
    struct server *server;
    struct MHD_Connection *connection;
    struct call *call;
    struct buffer body; /* as it comes in */
    bool is_too_large;
    bool is_suspended;
    bool is_gone;  /* it hung up while it was not suspended */
    bool is_asked; /* its body is all there */
    size_t sent;   /* bytes of the call's answer */
    struct loop_watch *hangup;
};

struct server {
    struct loop *loop;
    struct fiber *owner; /* whose deadlines hold */
    struct proxy *proxy;
    void (*changed)(void *arg);
    void *changed_arg;
    struct MHD_Daemon *daemon;
    struct loop_watch *watch;
    struct loop_soon soon; /* MHD has more to do without any event */
    struct loop_timer *tick;
    struct connections connections;
    struct client *clients;
    struct call *calls;
    size_t held;     /* bytes of bodies and answers */
    size_t working;  /* fibers */
    bool is_awaited; /* the owner waits for the last of them */
};

/* ---- MHD on the loop ------------------------------------------------------------------------------- */

static void run_daemon(void *arg)
{
    struct server *server = arg;
    MHD_UNSIGNED_LONG_LONG wait_ms;
    MHD_run(server->daemon);
    if (MHD_get_timeout(server->daemon, &wait_ms) == MHD_YES && wait_ms == 0)
        loop_post(server->loop, &server->soon);
}

static void on_event(void *arg, uint32_t events)
{
    (void)events;
    run_daemon(arg);
}

static void resume(struct client *client)
{
    if (!client->is_suspended)
        return;
    client->is_suspended = false;
    MHD_resume_connection(client->connection);
    loop_post(client->server->loop, &client->server->soon);
}

static void on_hangup(void *arg, uint32_t events)
{
    struct client *client = arg;
    client->is_gone = !client->is_suspended;
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        resume(client);
}

/* Until there is more to tell. It does not notice itself then that its client is gone; of that it hears once. */
static void suspend(struct client *client)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(client->connection,
                                                                   MHD_CONNECTION_INFO_CONNECTION_FD);
    client->is_suspended = true;
    MHD_suspend_connection(client->connection);
    if (info && !client->hangup)
        client->hangup = loop_watch(client->server->loop, info->connect_fd, EPOLLRDHUP | EPOLLET, on_hangup, client);
    if (client->is_gone)
        resume(client);
    client->is_gone = false;
}

/* ---- calls ------------------------------------------------------------------------------------------- */

static void drop_call(struct server *server, struct call *call)
{
    struct call **at = &server->calls;
    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    server->held -= call->held;
    call_finish(call);
    free(call);
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
            resume(client);
}

static void count_held(struct call *call)
{
    const size_t now = call->body.capacity + call->out.capacity;
    call->server->held += now - call->held;
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
    call->ended_ms = loop_now_ms();
    server->working--;
    server->changed(server->changed_arg);
    if (server->is_awaited)
        fiber_wake(server->owner);
}

/*
 * Every SERVER_QUIET_MS: streams are kept alive, who only keeps others out is sent away, and what nobody will ask for
 * again is dropped.
 */
static void on_tick(void *arg)
{
    struct server *server = arg;
    server->tick = loop_after(server->loop, SERVER_QUIET_MS, on_tick, server);
    connections_end_idle(&server->connections, SERVER_IDLE_MS);
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

static bool make_key(const char *url, struct slice body, char ret[DIGEST_SIZE])
{
    struct digest *digest = digest_begin();
    if (!digest)
        return false;
    digest_add_text(digest, url);
    digest_add(digest, body);
    return digest_end(&digest, ret);
}

/* NULL: out of memory. */
static struct call *add_call(struct server *server, const struct call *as, struct buffer *body)
{
    struct call *call = malloc(sizeof(*call));
    if (!call)
        return NULL;
    *call = *as;
    call->server = server;
    call->proxy = server->proxy;
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

/* ---- a request ------------------------------------------------------------------------------------------ */

/* Takes the response; NULL: there was no memory for it. */
static enum MHD_Result respond(struct client *client, int status, const char *type, struct MHD_Response *response)
{
    if (!response)
        return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    if (status == 503)
        MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "2");
    const enum MHD_Result done = MHD_queue_response(client->connection, (unsigned)status, response);
    MHD_destroy_response(response);
    return done;
}

static enum MHD_Result say(struct client *client, int status, const char *json)
{
    return respond(client, status, "application/json",
                   MHD_create_response_from_buffer(strlen(json), (void *)(uintptr_t)json, MHD_RESPMEM_MUST_COPY));
}

static enum MHD_Result refuse_with(struct client *client, const struct dialect *dialect, enum reply_error error,
                                   const char *words)
{
    AUTO_BUFFER text = {0};
    (dialect ? dialect : &dialect_chat)->write_error(error, words, &text);
    AUTO_FREE char *json = buffer_take_str(&text);
    return json ? say(client, reply_error_status(error), json) : MHD_NO;
}

/* The next bytes of the answer; none yet: the connection sleeps. */
static ssize_t read_answer(void *arg, uint64_t at, char *into, size_t max)
{
    struct client *client = arg;
    const struct call *call = client->call;
    const size_t left = call->out.len - (size_t)at;
    if (left == 0 && call->is_done)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (left == 0)
        return suspend(client), 0;
    const size_t len = left < max ? left : max;
    memcpy(into, call->out.data + at, len);
    client->sent = (size_t)at + len;
    return (ssize_t)len;
}

static enum MHD_Result answer(struct client *client)
{
    struct call *call = client->call;
    const uint64_t size = call->is_done ? call->out.len : MHD_SIZE_UNKNOWN;
    struct MHD_Response *response = MHD_create_response_from_callback(size, CONNECTION_BYTES / 2, read_answer, client,
                                                                      NULL);
    if (response)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    return respond(client, call->status, call->is_events ? "text/event-stream" : "application/json", response);
}

static enum MHD_Result join(struct client *client, struct call *call)
{
    client->call = call;
    call->clients++;
    if (call->status != 0)
        return answer(client);
    suspend(client);
    return MHD_YES;
}

static const char *encoding_of(const struct client *client)
{
    return MHD_lookup_connection_value(client->connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_ENCODING);
}

static enum MHD_Result refuse_encoding(struct client *client, const struct dialect *dialect, const char *encoding)
{
    char words[160];
    snprintf(words, sizeof(words), "Content-Encoding: %.40s is not read; send the body as gzip, deflate or as it is",
             encoding);
    return refuse_with(client, dialect, REPLY_INVALID, words);
}

static enum MHD_Result ask(struct client *client, const char *method, const char *url)
{
    struct server *server = client->server;
    struct slice model = {0};
    struct call as = {.status = 0};
    client->is_asked = true;
    connections_note_asking(client->connection, true);
    if (strcmp(url, "/") == 0)
        return say(client, 200, "{\"status\":\"ok\"}");
    as.dialect = dialect_find(method, url, &as.ask, &as.is_stream, &model);
    if (!as.dialect)
        return refuse_with(client, NULL, REPLY_UNKNOWN,
                           "there is nothing at this path; a model is at /v1/chat/completions, "
                           "/v1/responses, /v1/messages and /v1beta/models/NAME:generateContent");
    as.coding = coding_of(encoding_of(client));
    if (as.coding == CODING_OTHER)
        return refuse_encoding(client, as.dialect, encoding_of(client));
    if (client->is_too_large)
        return refuse_with(client, as.dialect, REPLY_TOO_LARGE, "the body is larger than 32 MiB");
    if (!make_key(url, buffer_peek(&client->body), as.key))
        return MHD_NO;
    struct call *call = find_call(server, as.key);
    if (call)
        return join(client, call);
    if (server->held > SERVER_HELD_MAX)
        return refuse_with(client, as.dialect, REPLY_UNAVAILABLE, "too many bytes of requests are under way");
    snprintf(as.model, sizeof(as.model), "%.*s", SLICE_ARG(model));
    call = add_call(server, &as, &client->body);
    if (!call)
        return MHD_NO;
    if (!start_call(call)) {
        drop_call(server, call);
        return MHD_NO;
    }
    return join(client, call);
}

static enum MHD_Result take_body(struct client *client, const char *data, size_t *len)
{
    client->is_too_large = client->is_too_large || client->body.len + *len > CALL_BODY_MAX;
    if (client->is_too_large)
        buffer_finish(&client->body);
    else if (!buffer_append(&client->body, data, *len))
        return MHD_NO;
    *len = 0;
    return MHD_YES;
}

static struct client *add_client(struct server *server, struct MHD_Connection *connection)
{
    struct client *client = calloc(1, sizeof(*client));
    if (!client)
        return NULL;
    client->server = server;
    client->connection = connection;
    client->next = server->clients;
    server->clients = client;
    return client;
}

/* Called for the headers, for each piece of the body, at its end, and again after each sleep. */
static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *data, size_t *len, void **slot)
{
    struct client *client = *slot;
    (void)version;
    if (!client)
        return (*slot = add_client(arg, connection)) ? MHD_YES : MHD_NO;
    if (*len > 0)
        return take_body(client, data, len);
    if (!client->is_asked)
        return ask(client, method, url);
    if (client->call->status != 0)
        return answer(client);
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    char byte;
    if (info && recv(info->connect_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
        return MHD_NO; /* it hung up */
    suspend(client);
    return MHD_YES;
}

static void on_completed(void *arg, struct MHD_Connection *connection, void **slot,
                         enum MHD_RequestTerminationCode code)
{
    struct server *server = arg;
    struct client *client = take_ptr((struct client **)slot);
    connections_note_asking(connection, false);
    (void)code; /* many close a stream behind its last event */
    if (!client)
        return;
    struct client **at = &server->clients;
    while (*at != client)
        at = &(*at)->next;
    *at = client->next;
    loop_unwatch(server->loop, &client->hangup);
    struct call *call = client->call;
    if (call) {
        call->clients--;
        const bool is_whole = call->is_done && client->sent == call->out.len;
        call->is_delivered = call->is_delivered || is_whole;
        if (is_whole && call->node != TREE_NONE)
            proxy_note_delivered(server->proxy, call->node);
    }
    buffer_finish(&client->body);
    free(client);
}

/* MHD listens again, where it had as many as it takes, when it is run next. */
static void on_connection(void *arg, struct MHD_Connection *connection, void **slot,
                          enum MHD_ConnectionNotificationCode what)
{
    struct server *server = arg;
    connections_note(&server->connections, connection, slot, what);
    if (what == MHD_CONNECTION_NOTIFY_CLOSED)
        loop_post(server->loop, &server->soon);
}

/* ---- the server -------------------------------------------------------------------------------------------- */

static struct MHD_Daemon *start_daemon(struct server *server, int listener)
{
    return MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC, 0, NULL, NULL, on_request, server,
                            MHD_OPTION_LISTEN_SOCKET, (MHD_socket)listener, MHD_OPTION_CONNECTION_LIMIT,
                            (unsigned)SERVER_CONNECTIONS_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                            (size_t)CONNECTION_BYTES, MHD_OPTION_NOTIFY_COMPLETED, on_completed, server,
                            MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_END);
}

/* Whoever waits there already is of the step before, and gone. */
static void turn_away(int listener)
{
    fcntl(listener, F_SETFL, O_NONBLOCK);
    for (int fd; (fd = accept(listener, NULL, NULL)) >= 0;)
        close(fd);
}

struct server *server_open(int listener, struct proxy *proxy, void (*changed)(void *arg), void *arg)
{
    AUTO_CLOSE int fd = listener;
    struct server *server = calloc(1, sizeof(*server));
    if (!server)
        return NULL;
    *server = (struct server){.loop = fiber_loop(),
                              .owner = fiber_current(),
                              .proxy = proxy,
                              .changed = changed,
                              .changed_arg = arg,
                              .soon = {.run = run_daemon, .arg = server}};
    turn_away(listener);
    server->daemon = start_daemon(server, listener);
    if (!server->daemon) {
        free(server);
        return NULL;
    }
    take_fd(&fd); /* MHD closes it */
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    server->watch = loop_watch(server->loop, info->epoll_fd, EPOLLIN, on_event, server);
    server->tick = loop_after(server->loop, SERVER_QUIET_MS, on_tick, server);
    if (!server->watch || !server->tick)
        server_close(&server);
    return server;
}

/* All who sleep end with their connection. */
static void end_clients(struct server *server)
{
    for (struct client *client = server->clients; client; client = client->next)
        resume(client);
    MHD_stop_daemon(server->daemon);
    loop_unpost(server->loop, &server->soon);
}

void server_close(struct server **server)
{
    struct server *it = take_ptr(server);
    if (!it)
        return;
    loop_unwatch(it->loop, &it->watch);
    loop_cancel(it->loop, &it->tick);
    for (struct call *call = it->calls; call; call = call->next)
        if (call->fiber)
            fiber_cancel(call->fiber);
    it->is_awaited = true;
    fiber_shield(true);
    fiber_lift_deadline(0);
    while (it->working > 0)
        await_wake(-1);
    fiber_pop_deadline();
    fiber_shield(false);
    end_clients(it);
    while (it->calls)
        drop_call(it, it->calls);
    free(it);
}
