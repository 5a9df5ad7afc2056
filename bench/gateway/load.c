/*
 * load.c - asks a gateway, as fast or as many at a time as is told, over plain HTTP/1.1 connections that stay open:
 *
 *     bench_gateway submits PORT CONNECTIONS COUNT       submits of groups of one, each connection one after the other
 *     bench_gateway direct FRONT COUNT                   the same by libsluice, one after the other
 *     bench_gateway hold PORT CONNECTIONS PATH [BODY]    asks once over each, and reads what comes until stdin ends
 *
 * It prints lines "VALUE WHAT"; `hold` prints "ready" when all requests were sent.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/sluice.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/descriptors.h"

enum { TEXT_SIZE = 4096, EVENTS = 256, PAD = 900 };

struct connection {
    int fd;
    int64_t asked_us;
    char got[512]; /* of the answer's head */
    size_t len;
};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static int connect_to(int port)
{
    static const int yes = 1;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(0x7f000001)}};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
        die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    return fd;
}

static void send_all(int fd, const char *text, size_t len)
{
    while (len > 0) {
        const ssize_t sent = send(fd, text, len, MSG_NOSIGNAL);
        if (sent < 0)
            die("send");
        text += sent;
        len -= (size_t)sent;
    }
}

static void make_task(char task[TEXT_SIZE], unsigned number)
{
    static char pad[PAD + 1];
    if (!pad[0])
        memset(pad, 'x', PAD);
    snprintf(task, TEXT_SIZE, "{\"task\":\"t-%u\",\"kind\":\"noop\",\"metadata\":{\"pad\":\"%s\"}}", number, pad);
}

/* ---- latencies ---------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_latencies(double *ms, size_t count, double seconds, const char *what)
{
    qsort(ms, count, sizeof(*ms), compare);
    printf("%g %s, p50 ms\n", ms[count / 2], what);
    printf("%g %s, p99 ms\n", ms[count * 99 / 100], what);
    printf("%g %s, a second\n", (double)count / seconds, what);
}

/* ---- submits -------------------------------------------------------------------------------------- */

static void submit(struct connection *connection, unsigned number)
{
    char task[TEXT_SIZE], body[2 * TEXT_SIZE], text[3 * TEXT_SIZE];
    make_task(task, number);
    const int len = snprintf(body, sizeof(body), "{\"group\":\"b-%d-%u\",\"stream\":\"bench\",\"task\":%s}",
                             (int)getpid(), number, task);
    const int all = snprintf(text, sizeof(text),
                             "POST /api/v1/groups HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n%s", len,
                             body);
    connection->len = 0;
    connection->asked_us = clock_us();
    send_all(connection->fd, text, (size_t)all);
}

/* Answers are short: whole when their body is. */
static bool take_answer(struct connection *connection)
{
    const ssize_t got = recv(connection->fd, connection->got + connection->len,
                             sizeof(connection->got) - 1 - connection->len, 0);
    if (got <= 0)
        die("recv");
    connection->len += (size_t)got;
    connection->got[connection->len] = '\0';
    const char *body = strstr(connection->got, "\r\n\r\n");
    if (!body || !strchr(body, '}'))
        return false;
    if (strncmp(connection->got, "HTTP/1.1 201", 12) != 0) {
        fprintf(stderr, "refused: %s\n", connection->got);
        exit(1);
    }
    return true;
}

static int run_submits(int port, size_t connections, size_t count)
{
    AUTO_FREE struct connection *all = calloc(connections, sizeof(*all));
    AUTO_FREE double *ms = calloc(count, sizeof(*ms));
    struct epoll_event events[EVENTS];
    AUTO_CLOSE int epoll = epoll_create1(0);
    size_t asked = 0, answered = 0;
    char what[64];
    const int64_t began_us = clock_us();
    for (size_t i = 0; i < connections && asked < count; i++) {
        all[i].fd = connect_to(port);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &all[i]};
        epoll_ctl(epoll, EPOLL_CTL_ADD, all[i].fd, &event);
        submit(&all[i], (unsigned)asked++);
    }
    while (answered < count) {
        const int ready = epoll_wait(epoll, events, EVENTS, 30000);
        if (ready <= 0)
            die("no answer");
        for (int i = 0; i < ready; i++) {
            struct connection *connection = events[i].data.ptr;
            if (!take_answer(connection))
                continue;
            ms[answered++] = (double)(clock_us() - connection->asked_us) / 1000;
            if (asked < count)
                submit(connection, (unsigned)asked++);
        }
    }
    snprintf(what, sizeof(what), "submits over HTTP, %zu at a time", connections);
    print_latencies(ms, count, (double)(clock_us() - began_us) / 1e6, what);
    return 0;
}

static int run_direct(const char *front, size_t count)
{
    struct sluice_client *client = sluice_connect(front);
    AUTO_FREE double *ms = calloc(count, sizeof(*ms));
    const int64_t began_us = clock_us();
    for (size_t i = 0; i < count; i++) {
        char task[TEXT_SIZE], group[64];
        make_task(task, (unsigned)i);
        snprintf(group, sizeof(group), "d-%d-%zu", (int)getpid(), i);
        const int64_t asked_us = clock_us();
        if (sluice_submit(client, group, "bench", 1, task) < 0) {
            fprintf(stderr, "%s\n", sluice_error(client));
            return 1;
        }
        ms[i] = (double)(clock_us() - asked_us) / 1000;
    }
    print_latencies(ms, count, (double)(clock_us() - began_us) / 1e6, "submits by libsluice, 1 at a time");
    sluice_close(&client);
    return 0;
}

/* ---- connections that are held ------------------------------------------------------------------------- */

static int run_hold(int port, size_t connections, const char *path, const char *body)
{
    AUTO_FREE int *fds = calloc(connections, sizeof(*fds));
    struct epoll_event events[EVENTS];
    static char ignored[1 << 16];
    descriptors_allow_all();
    AUTO_CLOSE int epoll = epoll_create1(0);
    struct epoll_event end = {.events = EPOLLIN, .data.fd = -1};
    epoll_ctl(epoll, EPOLL_CTL_ADD, 0, &end);
    for (size_t i = 0; i < connections; i++) {
        char text[2 * TEXT_SIZE];
        const int len = snprintf(text, sizeof(text),
                                 "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %zu\r\n\r\n%s",
                                 body ? "POST" : "GET", path, body ? strlen(body) : 0, body ? body : "");
        fds[i] = connect_to(port);
        send_all(fds[i], text, (size_t)len);
        struct epoll_event event = {.events = EPOLLIN, .data.fd = fds[i]};
        epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &event);
    }
    printf("ready\n");
    fflush(stdout);
    for (;;) {
        const int ready = epoll_wait(epoll, events, EVENTS, -1);
        for (int i = 0; i < ready; i++) {
            if (events[i].data.fd < 0)
                return 0;
            if (recv(events[i].data.fd, ignored, sizeof(ignored), 0) <= 0)
                epoll_ctl(epoll, EPOLL_CTL_DEL, events[i].data.fd, NULL);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "submits") == 0)
        return run_submits(atoi(argv[2]), strtoul(argv[3], NULL, 10), strtoul(argv[4], NULL, 10));
    if (argc == 4 && strcmp(argv[1], "direct") == 0)
        return run_direct(argv[2], strtoul(argv[3], NULL, 10));
    if ((argc == 5 || argc == 6) && strcmp(argv[1], "hold") == 0)
        return run_hold(atoi(argv[2]), strtoul(argv[3], NULL, 10), argv[4], argc == 6 ? argv[5] : NULL);
    fprintf(stderr,
            "usage: bench_gateway submits PORT CONNECTIONS COUNT | direct FRONT COUNT | hold PORT CONNECTIONS PATH "
            "[BODY]\n");
    return 2;
}
