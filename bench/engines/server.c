/* server.c - the engine of bench_engines: a process that answers with documents made beforehand. */
#include "bench/engines/answers.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"

enum { EVENT_MS = 1 }; /* between two events of a stream */

struct peer {
    int fd;
    char head[4096]; /* of its request, to the end of its header */
    size_t head_len, body_left;
    const struct answer *answer;
    size_t sent, piece;
    int64_t due_ms; /* 0: no call in hand */
};

static struct peer peers[CONNECTIONS_MAX + 16];
static struct answer answers[ANSWERS];
static struct engine_times *times;        /* shared with the worker */
static int waiting[CONNECTIONS_MAX + 16]; /* fds in order of their time */
static size_t waiting_from, waiting_to;
static int latency_ms, polling;

static void watch(int fd, uint32_t events, int how)
{
    struct epoll_event event = {.events = events, .data.fd = fd};
    epoll_ctl(polling, how, fd, &event);
}

static void await_time(struct peer *peer, int after_ms)
{
    peer->due_ms = clock_ms() + after_ms;
    waiting[waiting_to++ % (CONNECTIONS_MAX + 16)] = peer->fd;
}

static void send_more(struct peer *peer)
{
    const struct answer *answer = peer->answer;
    const size_t end = answer->ends[peer->piece];
    while (peer->sent < end) {
        ssize_t sent = send(peer->fd, answer->bytes.data + peer->sent, end - peer->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent <= 0) {
            watch(peer->fd, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
            return;
        }
        peer->sent += (size_t)sent;
    }
    watch(peer->fd, EPOLLIN, EPOLL_CTL_MOD);
    if (++peer->piece < answer->count) {
        await_time(peer, EVENT_MS);
        return;
    }
    peer->answer = NULL;
    peer->head_len = 0;
}

static void begin_piece(struct peer *peer)
{
    if (peer->piece + 1 == peer->answer->count) {
        times->next_us = 0;
        times->ended_us = clock_us();
    }
    send_more(peer);
}

/* A route's is answered after a while, all others at once. */
static void take_call(struct peer *peer)
{
    static const char text[] = "POST /detokenize ";
    peer->sent = peer->piece = 0;
    peer->answer = &answers[strncmp(peer->head, text, strlen(text)) == 0 ? TEXT_ROUTE : ABOUT_ROUTE];
    for (size_t i = 0; i < ROUTES; i++) {
        size_t len = strlen(routes[i].path);
        if (strncmp(peer->head + 5, routes[i].path, len) != 0 || peer->head[5 + len] != ' ')
            continue;
        peer->answer = &answers[i];
        await_time(peer, latency_ms);
        return;
    }
    send_more(peer);
}

static void read_more(struct peer *peer)
{
    char bytes[65536];
    ssize_t got = recv(peer->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got <= 0) {
        if (got == 0 || errno != EAGAIN)
            close(peer->fd);
        return;
    }
    if (times->next_us == 0)
        times->next_us = clock_us();
    size_t at = 0;
    if (peer->body_left == 0) {
        size_t room = sizeof(peer->head) - 1 - peer->head_len;
        size_t take = (size_t)got < room ? (size_t)got : room;
        memcpy(peer->head + peer->head_len, bytes, take);
        peer->head[peer->head_len + take] = '\0';
        const char *end = strstr(peer->head, "\r\n\r\n"), *len = strstr(peer->head, "Content-Length: ");
        if (!end) {
            peer->head_len += take;
            return;
        }
        at = (size_t)(end + 4 - peer->head) - peer->head_len;
        peer->head_len = (size_t)(end + 4 - peer->head);
        peer->head[peer->head_len] = '\0';
        peer->body_left = len ? strtoull(len + 16, NULL, 10) : 0;
    }
    size_t rest = (size_t)got - at;
    peer->body_left -= rest < peer->body_left ? rest : peer->body_left;
    if (peer->body_left == 0)
        take_call(peer);
}

static void answer_due(void)
{
    for (; waiting_from < waiting_to; waiting_from++) {
        struct peer *peer = &peers[waiting[waiting_from % (CONNECTIONS_MAX + 16)]];
        if (peer->due_ms > clock_ms())
            return;
        begin_piece(peer);
    }
}

static int time_left(void)
{
    if (waiting_from == waiting_to)
        return 100;
    int64_t left = peers[waiting[waiting_from % (CONNECTIONS_MAX + 16)]].due_ms - clock_ms();
    return left > 0 ? (int)left : 0;
}

static _Noreturn void serve(int listening)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    polling = epoll_create1(0);
    watch(listening, EPOLLIN, EPOLL_CTL_ADD);
    for (;;) {
        struct epoll_event events[256];
        int count = epoll_wait(polling, events, 256, time_left());
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd != listening && fd < CONNECTIONS_MAX + 16) {
                if (events[i].events & EPOLLOUT && peers[fd].answer)
                    send_more(&peers[fd]);
                if (events[i].events & EPOLLIN)
                    read_more(&peers[fd]);
                continue;
            }
            int fresh = accept(listening, NULL, NULL);
            if (fresh < 0 || fresh >= CONNECTIONS_MAX + 16)
                continue;
            setsockopt(fresh, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
            peers[fresh] = (struct peer){.fd = fresh};
            watch(fresh, EPOLLIN, EPOLL_CTL_ADD);
        }
        answer_due();
    }
}

pid_t start_engine(const struct engine_kind *kind, char *url, size_t size, const struct engine_times **ret_times)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(fd, (struct sockaddr *)&address, len) < 0 || listen(fd, 4096) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &len) < 0)
        give_up("the engine", strerror(errno));
    times = mmap(NULL, sizeof(*times), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (times == MAP_FAILED)
        give_up("the engine", strerror(errno));
    snprintf(url, size, "http://127.0.0.1:%d", ntohs(address.sin_port));
    latency_ms = kind->answer_after_ms;
    answers_make(answers, kind->tokens, kind->interval);
    pid_t pid = fork();
    if (pid == 0)
        serve(fd);
    close(fd);
    answers_finish(answers);
    if (ret_times)
        *ret_times = times;
    return pid;
}

void stop_engine(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}
