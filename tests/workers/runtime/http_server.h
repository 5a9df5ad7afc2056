/*
 * http_server.h - an HTTP server for tests, as fibers on the client's own loop; what it does is
 * chosen by the path.
 */
#ifndef SLUICE_TESTS_WORKERS_RUNTIME_HTTP_SERVER_H
#define SLUICE_TESTS_WORKERS_RUNTIME_HTTP_SERVER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "workers/runtime/fiber.h"
#include "workers/runtime/http.h"

enum { CONNECT_MS = 500, SILENCE_MS = 400 };

static struct loop *loop;
static struct http *http;
static char base[64];
static int listener, connections, open_now, living, serving;
static struct fiber *acceptor;
static char last_head[4096], last_body[4096];
static const char *canned_status, *canned_body; /* for /search, however it is asked */

/* ---- the server ------------------------------------------------------------------------- */

static inline bool write_all(int fd, const char *data, size_t len)
{
    for (size_t at = 0; at < len;) {
        ssize_t count = send(fd, data + at, len - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count < 0 && (errno != EAGAIN || await_fd(fd, EPOLLOUT, 5000) < 0))
            return false;
        at += count > 0 ? (size_t)count : 0;
    }
    return true;
}

static inline bool write_text(int fd, const char *text) { return write_all(fd, text, strlen(text)); }

static inline bool answer(int fd, const char *status, const char *body)
{
    AUTO_BUFFER out = {0};
    buffer_printf(&out, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n%s", status, strlen(body), body);
    return write_all(fd, (char *)out.data, out.len);
}

static inline bool answer_endlessly(int fd)
{
    static char block[65536];
    write_text(fd, "HTTP/1.1 200 OK\r\n\r\n");
    while (write_all(fd, block, sizeof(block)))
        ;
    return false;
}

/* Half an answer, and then nothing until the client goes. */
static inline bool answer_half(int fd)
{
    write_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello");
    await_fd(fd, EPOLLIN | EPOLLRDHUP, 5000);
    return false;
}

/* Its pauses are shorter than the silence allowed, all of it is longer. */
static inline bool answer_in_drops(int fd)
{
    write_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n");
    for (int i = 0; i < 12; i++) {
        await_sleep(SILENCE_MS / 8);
        write_text(fd, "x");
    }
    return true;
}

/* Answers what it holds; false when the connection is to close. */
static inline bool serve_one(int fd, const char *head, const char *body)
{
    snprintf(last_head, sizeof(last_head), "%s", head);
    snprintf(last_body, sizeof(last_body), "%s", body);
    if (strstr(head, "/search?") || strstr(head, "/search ")) {
        if (canned_status)
            return answer(fd, canned_status, canned_body);
        await_fd(fd, EPOLLIN | EPOLLRDHUP, 5000); /* until the client closes */
        return false;
    }
    if (strstr(head, "/echo "))
        return answer(fd, "200 OK", body);
    if (strstr(head, "/busy "))
        return answer(fd, "503 Service Unavailable", "loading");
    if (strstr(head, "/moved "))
        return write_text(fd, "HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n"
                              "Content-Length: 0\r\n\r\n");
    if (strstr(head, "/cut "))
        return write_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nfew") && false;
    if (strstr(head, "/endless "))
        return answer_endlessly(fd);
    if (strstr(head, "/half "))
        return answer_half(fd);
    if (strstr(head, "/drops "))
        return answer_in_drops(fd);
    if (strstr(head, "/late "))
        return await_sleep(2 * SILENCE_MS) == 0 && answer(fd, "200 OK", "hello");
    if (strstr(head, "/later "))
        return write_text(fd, "HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n");
    if (strstr(head, "/silent ")) {
        await_fd(fd, EPOLLIN | EPOLLRDHUP, 5000); /* until the client closes */
        return false;
    }
    return answer(fd, "200 OK", "hello");
}

static inline bool read_request(int fd, char *head, size_t size, char **body)
{
    size_t len = 0;
    for (head[0] = '\0';; head[len] = '\0') {
        char *end = strstr(head, "\r\n\r\n"), *length = strcasestr(head, "Content-Length:");
        if (end && (size_t)(head + len - end - 4) >= (length ? strtoul(length + 15, NULL, 10) : 0)) {
            *end = '\0';
            *body = end + 4;
            return true;
        }
        if (await_fd(fd, EPOLLIN, 10000) < 0)
            return false;
        ssize_t count = recv(fd, head + len, size - len - 1, MSG_DONTWAIT);
        if (count <= 0)
            return false;
        len += (size_t)count;
    }
}

static inline void serve(void *arg)
{
    AUTO_CLOSE int fd = (int)(intptr_t)arg;
    AUTO_FREE char *head = malloc(300000);
    char *body;
    open_now++;
    while (read_request(fd, head, 300000, &body) && serve_one(fd, head, body))
        ;
    open_now--;
}

static inline void serve_ended(void *arg)
{
    (void)arg;
    if (--serving == 0 && living == 0)
        loop_stop(loop);
}

static inline void accept_all(void *arg)
{
    (void)arg;
    while (await_fd(listener, EPOLLIN, -1) > 0) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        connections++;
        serving++;
        assert_non_null(fiber_start(loop, serve, serve_ended, (void *)(intptr_t)fd));
    }
}

/* ---- around each test ------------------------------------------------------------------- */

static inline int set_up(void **state)
{
    (void)state;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (struct sockaddr *)&address, len) || listen(listener, 64) ||
        getsockname(listener, (struct sockaddr *)&address, &len))
        return -1;
    snprintf(base, sizeof(base), "http://127.0.0.1:%d", ntohs(address.sin_port));
    connections = open_now = living = 0;
    serving = 1; /* the acceptor */
    loop = loop_create();
    const struct http_limits limits = {.connections_max = 4, .connect_ms = CONNECT_MS, .silence_ms = SILENCE_MS};
    http = http_create(loop, &limits, NULL);
    acceptor = fiber_start(loop, accept_all, serve_ended, NULL);
    return http && acceptor ? 0 : -1;
}

static inline int tear_down(void **state)
{
    (void)state;
    http_destroy(&http);
    assert_null(http);
    loop_destroy(&loop);
    close(listener);
    return 0;
}

#endif
