/*
 * http_world.h - a server of common/http on a loop, its owner, and clients on raw sockets that the same loop reads:
 * what a test says, and what it awaits within a bound.
 */
#ifndef SLUICE_TESTS_COMMON_HTTP_HTTP_WORLD_H
#define SLUICE_TESTS_COMMON_HTTP_HTTP_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/buffer.h"
#include "common/base/cleanup.h"
#include "common/http/exchange.h"
#include "common/http/exchange_answer.h"
#include "common/http/http_server.h"

enum { BOUND_MS = 60000, WAITING_MAX = 4096, BODY_MAX = 1 << 20, LARGE_MAX = 40000000 };

static struct loop *loop;
static struct http_server *server;
static uint16_t port;

/* What the owner saw. */
static struct owner {
    size_t heard, asked, gone, whole, sent, waiting_count;
    struct exchange *waiting[WAITING_MAX]; /* asked at /wait, and not gone */
    char last[600];                        /* of the latest that was asked */
} owner;

/* ---- until something is so ----------------------------------------------------------------------------- */

static bool (*awaited)(const void *arg);
static const void *awaited_arg;

static void look(void *arg)
{
    (void)arg;
    if (awaited && awaited(awaited_arg))
        loop_stop(loop);
}

static inline void out_of_time(void *arg) { fail_msg("what was awaited did not come: %s", (const char *)arg); }

static inline void await(const char *what, bool (*is_so)(const void *arg), const void *arg)
{
    struct loop_timer *bound = loop_after(loop, BOUND_MS, out_of_time, (void *)(uintptr_t)what);
    awaited = is_so;
    awaited_arg = arg;
    loop_set_prepare(loop, look, NULL);
    loop_run(loop);
    awaited = NULL;
    loop_cancel(loop, &bound);
}

static inline bool is_at_least(const void *arg)
{
    const size_t *const *pair = arg;
    return *pair[0] >= (size_t)(uintptr_t)pair[1];
}

static inline void await_count(const char *what, const size_t *count, size_t least)
{
    const void *const pair[2] = {count, (const void *)(uintptr_t)least};
    await(what, is_at_least, pair);
    assert_int_equal(*count, least);
}

/* ---- the owner ------------------------------------------------------------------------------------------ */

static inline struct buffer text_buffer(const char *text)
{
    struct buffer buffer = {0};
    buffer_append_str(&buffer, text);
    return buffer;
}

static inline void answer_text(struct exchange *exchange, int status, const char *text)
{
    struct buffer body = text_buffer(text);
    exchange_answer(exchange, status, "text/plain", &body);
}

/* As many bytes as the query says. */
static inline void answer_large(struct exchange *exchange)
{
    struct buffer body = {0};
    const char *query = exchange_query(exchange, "size");
    const size_t asked = query ? strtoul(query, NULL, 10) : 0, size = asked < LARGE_MAX ? asked : LARGE_MAX;
    uint8_t *room = buffer_reserve(&body, size + 1);
    assert_non_null(room);
    for (size_t i = 0; i < size; i++)
        room[i] = (uint8_t)('a' + i % 26);
    body.len = size;
    exchange_answer(exchange, 200, "text/plain", &body);
}

static inline void on_heard(void *arg, struct exchange *exchange)
{
    (void)arg;
    owner.heard++;
    if (strcmp(exchange_path(exchange), "/secret") == 0)
        exchange_refuse(exchange, 401, "who are you?");
}

static void (*on_other)(struct exchange *exchange); /* a test's own paths */

static inline void on_asked(void *arg, struct exchange *exchange)
{
    (void)arg;
    const struct slice body = exchange_body(exchange);
    const char *path = exchange_path(exchange);
    owner.asked++;
    snprintf(owner.last, sizeof(owner.last), "%s %s %zu", exchange_method(exchange), path, body.len);
    if (strcmp(path, "/wait") == 0) {
        assert_true(owner.waiting_count < WAITING_MAX);
        owner.waiting[owner.waiting_count++] = exchange;
    } else if (strcmp(path, "/echo") == 0) {
        struct buffer out = exchange_take_body(exchange);
        exchange_answer(exchange, 200, "text/plain", &out);
    } else if (strcmp(path, "/large") == 0) {
        answer_large(exchange);
    } else if (strcmp(path, "/secret") == 0) {
        fail_msg("what was answered at its head was asked");
    } else if (on_other) {
        on_other(exchange);
    } else {
        answer_text(exchange, 200, "fine");
    }
}

static inline void on_gone(void *arg, struct exchange *exchange, bool is_whole)
{
    (void)arg;
    owner.gone++;
    owner.whole += is_whole;
    owner.sent += exchange_sent(exchange);
    for (size_t i = 0; i < owner.waiting_count; i++)
        if (owner.waiting[i] == exchange)
            owner.waiting[i--] = owner.waiting[--owner.waiting_count];
}

/* ---- the server ------------------------------------------------------------------------------------------ */

static inline int listen_anywhere(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(fd, 4096), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    port = ntohs(address.sin_port);
    return fd;
}

static inline struct http_server_plan usual_plan(void)
{
    return (struct http_server_plan){.fd = listen_anywhere(),
                                     .connections_max = 5000,
                                     .header_bytes = 16 << 10,
                                     .body_max = BODY_MAX,
                                     .held_max = 64 << 20,
                                     .idle_ms = BOUND_MS,
                                     .heard = on_heard,
                                     .asked = on_asked,
                                     .gone = on_gone};
}

static inline void open_server(const struct http_server_plan *plan)
{
    struct fail fail = {0};
    owner = (struct owner){0};
    on_other = NULL;
    loop = loop_create();
    assert_non_null(loop);
    server = http_server_open(loop, plan, &fail);
    if (!server)
        fail_msg("%s", fail.text);
}

static inline int open_usual(void **state)
{
    (void)state;
    const struct http_server_plan plan = usual_plan();
    open_server(&plan);
    return 0;
}

static inline bool is_empty(const void *arg)
{
    (void)arg;
    return http_server_connections(server) == 0;
}

/* All that it held is given back, also where it goes on. */
static inline int close_server(void **state)
{
    (void)state;
    if (server) {
        await("the end of all connections", is_empty, NULL);
        assert_int_equal(http_server_held(server), 0);
    }
    http_server_close(&server);
    assert_int_equal(owner.waiting_count, 0);
    loop_destroy(&loop);
    return 0;
}

/* ---- clients --------------------------------------------------------------------------------------------- */

struct client {
    int fd;
    struct loop_watch *watch;
    struct buffer in, out;
    size_t out_at;
    bool is_closed; /* the server's end */
    bool is_deaf;   /* it reads nothing */
};

static inline void client_write(struct client *client)
{
    while (client->out_at < client->out.len) {
        const ssize_t n = send(client->fd, client->out.data + client->out_at, client->out.len - client->out_at,
                               MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n <= 0)
            break;
        client->out_at += (size_t)n;
    }
}

static inline void client_read(struct client *client)
{
    char part[65536];
    ssize_t n;
    while ((n = recv(client->fd, part, sizeof(part), MSG_DONTWAIT)) > 0)
        buffer_append(&client->in, part, (size_t)n);
    client->is_closed = n == 0 || (n < 0 && errno != EAGAIN);
    if (client->is_closed)
        loop_unwatch(loop, &client->watch);
}

static inline uint32_t client_events(const struct client *client)
{
    return (client->is_deaf ? 0 : EPOLLIN) | (client->out_at < client->out.len ? EPOLLOUT : 0);
}

static inline void on_client(void *arg, uint32_t events)
{
    struct client *client = arg;
    if (events & EPOLLOUT)
        client_write(client);
    if (!client->is_deaf)
        client_read(client);
    else if (events & (EPOLLHUP | EPOLLERR))
        loop_unwatch(loop, &client->watch), client->is_closed = true;
    if (client->watch)
        loop_rewatch(loop, client->watch, client_events(client));
}

static inline void client_open(struct client *client)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    *client = (struct client){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    assert_true(client->fd >= 0);
    assert_int_equal(connect(client->fd, (struct sockaddr *)&address, sizeof(address)), 0);
    client->watch = loop_watch(loop, client->fd, EPOLLIN, on_client, client);
    assert_non_null(client->watch);
}

static inline void client_close(struct client *client)
{
    loop_unwatch(loop, &client->watch);
    close(client->fd);
    buffer_finish(&client->in);
    buffer_finish(&client->out);
}

static inline void client_say_bytes(struct client *client, struct slice bytes)
{
    buffer_append(&client->out, bytes.data, bytes.len);
    client_write(client);
    if (client->watch)
        loop_rewatch(loop, client->watch, client_events(client));
}

static inline void client_say(struct client *client, const char *text)
{
    client_say_bytes(client, slice_from_str(text));
}

/* It reads no more. */
static inline void client_go_deaf(struct client *client)
{
    client->is_deaf = true;
    loop_rewatch(loop, client->watch, client_events(client));
}

static inline bool is_closed(const void *arg) { return ((const struct client *)arg)->is_closed; }

static inline size_t count_in(const struct client *client, const char *text)
{
    size_t count = 0;
    const uint8_t *at = client->in.data, *const end = at + client->in.len;
    while (at && (at = memmem(at, (size_t)(end - at), text, strlen(text)))) {
        at += strlen(text);
        count++;
    }
    return count;
}

struct hearing {
    const struct client *client;
    const char *text;
    size_t times;
};

static inline bool has_heard(const void *arg)
{
    const struct hearing *hearing = arg;
    return count_in(hearing->client, hearing->text) >= hearing->times || hearing->client->is_closed;
}

static inline void client_await_times(struct client *client, const char *text, size_t times)
{
    const struct hearing hearing = {.client = client, .text = text, .times = times};
    await(text, has_heard, &hearing);
    if (count_in(client, text) != times)
        fail_msg("'%s' was heard %zu times, not %zu: %.*s", text, count_in(client, text), times,
                 SLICE_ARG(buffer_peek(&client->in)));
}

static inline void client_await(struct client *client, const char *text) { client_await_times(client, text, 1); }

static inline void client_await_close(struct client *client) { await("the end of a connection", is_closed, client); }

static inline bool client_has(const struct client *client, const char *text) { return count_in(client, text) > 0; }

/* What one connection is told that says just that; the caller's. */
static inline char *ask_bytes(struct slice bytes)
{
    struct client client;
    client_open(&client);
    client_say_bytes(&client, bytes);
    client_await_close(&client);
    char *answer = buffer_take_str(&client.in);
    client_close(&client);
    return answer ? answer : strdup("");
}

static inline int status_of(const char *answer) { return strncmp(answer, "HTTP/1.1 ", 9) == 0 ? atoi(answer + 9) : 0; }

static inline char *ask_text(const char *request) { return ask_bytes(slice_from_str(request)); }

static inline int ask_status(const char *request)
{
    AUTO_FREE char *answer = ask_text(request);
    return status_of(answer);
}

static inline void check_ask(const char *request, int status, const char *words)
{
    AUTO_FREE char *answer = ask_text(request);
    if (status_of(answer) != status || !strstr(answer, words))
        fail_msg("%s: %s", request, answer);
}

#endif
