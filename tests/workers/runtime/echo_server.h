/*
 * echo_server.h - a server outside the sandboxes: reads each connection to its end, then writes all
 * of it back and closes. A thread for each connection; what is open is counted.
 */
#ifndef SLUICE_TESTS_WORKERS_RUNTIME_ECHO_SERVER_H
#define SLUICE_TESTS_WORKERS_RUNTIME_ECHO_SERVER_H

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/base/cleanup.h"

struct echo_server {
    int listener;
    uint16_t port; /* tcp */
    pthread_t thread;
    atomic_int open, most, total;
    struct echo_connection *connections; /* all there ever were */
};

struct echo_connection {
    struct echo_server *server;
    struct echo_connection *next;
    pthread_t thread;
    int fd;
};

static void *echo_connection_main(void *arg)
{
    struct echo_connection *connection = arg;
    struct buffer held = {0};
    uint8_t chunk[65536];
    ssize_t got;
    while ((got = recv(connection->fd, chunk, sizeof(chunk), 0)) > 0)
        buffer_append(&held, chunk, (size_t)got);
    for (size_t at = 0; got == 0 && at < held.len;) {
        ssize_t sent = send(connection->fd, held.data + at, held.len - at, MSG_NOSIGNAL);
        if (sent <= 0)
            break;
        at += (size_t)sent;
    }
    atomic_fetch_sub(&connection->server->open, 1);
    close(connection->fd);
    buffer_finish(&held);
    return NULL;
}

static void *echo_server_main(void *arg)
{
    struct echo_server *server = arg;
    for (;;) {
        int fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            return NULL;
        struct echo_connection *connection = malloc(sizeof(*connection));
        *connection = (struct echo_connection){.server = server, .next = server->connections, .fd = fd};
        server->connections = connection;
        int open = atomic_fetch_add(&server->open, 1) + 1;
        if (open > atomic_load(&server->most))
            atomic_store(&server->most, open);
        atomic_fetch_add(&server->total, 1);
        pthread_create(&connection->thread, NULL, echo_connection_main, connection);
    }
}

/* On a free port of 127.0.0.1, or on the path. */
static inline void echo_start(struct echo_server *server, const char *path)
{
    struct sockaddr_in tcp = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    socklen_t len = sizeof(tcp);
    *server = (struct echo_server){.port = 0};
    assert_true(!path || strlen(path) < sizeof(local.sun_path));
    memcpy(local.sun_path, path ? path : "", path ? strlen(path) + 1 : 1);
    server->listener = socket(path ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(path ? bind(server->listener, (struct sockaddr *)&local, sizeof(local))
                          : bind(server->listener, (struct sockaddr *)&tcp, sizeof(tcp)),
                     0);
    assert_int_equal(listen(server->listener, 256), 0);
    if (!path && getsockname(server->listener, (struct sockaddr *)&tcp, &len) == 0)
        server->port = ntohs(tcp.sin_port);
    assert_int_equal(pthread_create(&server->thread, NULL, echo_server_main, server), 0);
}

/* In a fiber: every connection has ended. */
static inline void echo_await_idle(struct echo_server *server)
{
    while (atomic_load(&server->open) > 0)
        assert_int_equal(await_sleep(2), 0);
}

/* No thread is left: the test may fork. */
static inline void echo_stop(struct echo_server *server)
{
    shutdown(server->listener, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    close(server->listener);
    while (server->connections) {
        struct echo_connection *connection = server->connections;
        server->connections = connection->next;
        pthread_join(connection->thread, NULL);
        free(connection);
    }
}

#endif
