#include "broker/net/conn_limit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "broker/net/multipart.h"
#include "common/base/cleanup.h"
#include "common/base/log.h"

enum {
    FDS_MAX = 65536, /* connections with higher descriptors are not counted */
    BACKLOG_MAX = 1024,
    ROOM_FOR_OTHERS = 1024, /* lanes, files */
    EVENTS_WANTED = ZMQ_EVENT_LISTENING | ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED
};

struct connection {
    uint64_t base; /* bytes it had sent when it was last heard */
    uint8_t place; /* of its socket, from 1; 0: none */
    bool was_heard, is_shut;
    uint8_t slow_looks; /* so often more waited for it than the kernel had room for, while room was wanted ... */
    uint64_t taken;     /* ... and what it had taken when that began */
};

struct listener {
    void *socket, *monitor;
    int64_t bytes_max; /* of one message */
    int read_mark;
    int listening_fd;
    bool wants_room; /* so it was said since the last look */
};

struct conn_limit {
    void *context;
    size_t max, count;
    bool is_shut;
    int backlog; /* that the kernel was last told */
    int fd_end;  /* one beyond the highest descriptor seen */
    int64_t look_ms;
    uint64_t cuts; /* by multipart.h, that were logged */
    struct listener listeners[CONN_LIMIT_SOCKETS];
    struct connection connections[FDS_MAX];
};

/* ---- life ------------------------------------------------------------------------------------- */

static size_t room_for(size_t max)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return max;
    size_t fds = limit.rlim_cur, most = fds > 2 * ROOM_FOR_OTHERS ? fds - ROOM_FOR_OTHERS : fds / 2;
    return max < most ? max : most;
}

/* The kernel answers this many before they are accepted, also when the the listener is shut meanwhile: at
 * most as many as there is room for. */
static int backlog_for(const struct conn_limit *conns)
{
    size_t room = conns->max > conns->count ? conns->max - conns->count : 1;
    int backlog = BACKLOG_MAX;
    while ((size_t)backlog > room)
        backlog /= 2;
    return backlog;
}

struct conn_limit *conn_limit_create(void *context, size_t max)
{
    struct conn_limit *conns = calloc(1, sizeof(*conns));
    if (!conns)
        return NULL;
    conns->context = context;
    conns->max = room_for(max);
    conns->backlog = backlog_for(conns);
    for (int i = 0; i < CONN_LIMIT_SOCKETS; i++)
        conns->listeners[i].listening_fd = -1;
    if (conns->max < max)
        log_event(LOG_WARN, "conn.descriptors", "connections=%zu wanted=%zu hint=\"ulimit -n\"", conns->max, max);
    return conns;
}

void conn_limit_destroy(struct conn_limit **destroying) { free(take_ptr(destroying)); }

int conn_limit_watch(struct conn_limit *conns, void *socket, int64_t message_max, int read_mark)
{
    int place = 0, none = 0;
    char address[64];
    while (place < CONN_LIMIT_SOCKETS && conns->listeners[place].socket)
        place++;
    if (place == CONN_LIMIT_SOCKETS)
        return -ENOSPC;
    struct listener *listener = &conns->listeners[place];
    snprintf(address, sizeof(address), "inproc://conn-limit-%d", place);
    if (zmq_socket_monitor(socket, address, EVENTS_WANTED) != 0)
        return -errno;
    listener->socket = socket;
    listener->bytes_max = message_max + message_max / 8 + 65536;
    listener->read_mark = read_mark;
    listener->monitor = zmq_socket(conns->context, ZMQ_PAIR);
    /* libzmq's own thread would wait for room in it */
    if (listener->monitor && zmq_setsockopt(listener->monitor, ZMQ_RCVHWM, &none, sizeof(none)) == 0 &&
        zmq_setsockopt(listener->monitor, ZMQ_LINGER, &none, sizeof(none)) == 0 &&
        zmq_connect(listener->monitor, address) == 0)
        return place;
    int code = -errno;
    conn_limit_leave(conns, place);
    return code;
}

void conn_limit_leave(struct conn_limit *conns, int place)
{
    struct listener *listener = &conns->listeners[place];
    if (listener->socket)
        zmq_socket_monitor(listener->socket, NULL, 0);
    if (listener->monitor)
        zmq_close(listener->monitor);
    *listener = (struct listener){.listening_fd = -1};
}

void *conn_limit_monitor(const struct conn_limit *conns, int place) { return conns->listeners[place].monitor; }
size_t conn_limit_count(const struct conn_limit *conns) { return conns->count; }

/* ---- opening and shutting --------------------------------------------------------------------- */

static void set_listener(const struct conn_limit *conns, int fd)
{
    struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
    struct sock_fprog program = {1, &nothing};
    if (fd < 0)
        return;
    listen(fd, conns->backlog);
    if (conns->is_shut)
        setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
    else
        setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &(int){0}, sizeof(int));
}

static void forget(struct conn_limit *conns, int fd)
{
    if (fd < 0 || fd >= FDS_MAX || !conns->connections[fd].place)
        return;
    conns->connections[fd].place = 0;
    conns->count--;
}

/* libzmq does not tell of connections that it ends itself. */
static void recount(struct conn_limit *conns)
{
    for (int fd = 0; fd < conns->fd_end; fd++)
        if (conns->connections[fd].place && fcntl(fd, F_GETFD) < 0)
            forget(conns, fd);
}

static void open_or_shut(struct conn_limit *conns)
{
    if (conns->count >= conns->max)
        recount(conns);
    bool was_shut = conns->is_shut;
    int backlog = backlog_for(conns);
    conns->is_shut = conns->count >= (was_shut ? conns->max - conns->max / 8 : conns->max);
    if (conns->is_shut == was_shut && backlog == conns->backlog)
        return;
    conns->backlog = backlog;
    for (int i = 0; i < CONN_LIMIT_SOCKETS; i++)
        set_listener(conns, conns->listeners[i].listening_fd);
    if (conns->is_shut != was_shut)
        log_event(LOG_WARN, conns->is_shut ? "conn.full" : "conn.open-again", "connections=%zu max=%zu action=%s",
                  conns->count, conns->max, conns->is_shut ? "new-ones-wait" : "new-ones-are-let-in");
}

/* ---- who comes and goes ------------------------------------------------------------------------ */

static void take_event(struct conn_limit *conns, int place, uint16_t event, int fd)
{
    struct listener *listener = &conns->listeners[place];
    if (event == ZMQ_EVENT_LISTENING) {
        listener->listening_fd = fd;
        set_listener(conns, fd);
    } else if (event == ZMQ_EVENT_CLOSED) {
        listener->listening_fd = -1;
    } else if (event == ZMQ_EVENT_DISCONNECTED) {
        forget(conns, fd);
    } else if (fd >= 0 && fd < FDS_MAX) {
        struct connection *connection = &conns->connections[fd];
        conns->count += !connection->place;
        *connection = (struct connection){.place = (uint8_t)(place + 1)};
        if (fd >= conns->fd_end)
            conns->fd_end = fd + 1;
    }
}

static bool read_event(void *monitor, uint16_t *ret_event, int *ret_fd)
{
    zmq_msg_t frame;
    zmq_msg_init(&frame);
    bool got = zmq_msg_recv(&frame, monitor, ZMQ_DONTWAIT) >= 0;
    if (got && zmq_msg_size(&frame) >= 6) {
        const char *bytes = zmq_msg_data(&frame);
        memcpy(ret_event, bytes, sizeof(*ret_event));
        memcpy(ret_fd, bytes + 2, sizeof(*ret_fd));
    }
    while (got && zmq_msg_more(&frame) && zmq_msg_recv(&frame, monitor, ZMQ_DONTWAIT) >= 0)
        ;
    zmq_msg_close(&frame);
    return got;
}

/* ---- who sends without end ----------------------------------------------------------------------- */

void conn_limit_heard(struct conn_limit *conns, zmq_msg_t *frame)
{
    int fd = zmq_msg_get(frame, ZMQ_SRCFD);
    if (fd >= 0 && fd < FDS_MAX)
        conns->connections[fd].was_heard = true;
}

void conn_limit_shut_down(struct conn_limit *conns, zmq_msg_t *frame, const char *why)
{
    int fd = zmq_msg_get(frame, ZMQ_SRCFD);
    if (fd < 0 || fd >= FDS_MAX || !conns->connections[fd].place || conns->connections[fd].is_shut)
        return;
    conns->connections[fd].is_shut = true;
    log_event(LOG_WARN, "conn.shut-down", "why=\"%s\"", why);
    shutdown(fd, SHUT_RDWR);
}

void conn_limit_want_room(struct conn_limit *conns, int place) { conns->listeners[place].wants_room = true; }

static bool ask_kernel(int fd, struct tcp_info *ret)
{
    socklen_t size = sizeof(*ret);
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, ret, &size) == 0 &&
           size >= offsetof(struct tcp_info, tcpi_notsent_bytes) + sizeof(ret->tcpi_notsent_bytes);
}

/* Whoever does not read is shut down, so that what waits for it makes room for what others wait for. */
static void check_slow(struct conn_limit *conns, int fd, const struct tcp_info *info)
{
    struct connection *connection = &conns->connections[fd];
    if (!conns->listeners[connection->place - 1].wants_room || info->tcpi_notsent_bytes == 0) {
        connection->slow_looks = 0;
        return;
    }
    if (connection->slow_looks == 0)
        connection->taken = info->tcpi_bytes_acked;
    if (++connection->slow_looks <= CONN_LIMIT_SLOW_MS / CONN_LIMIT_LOOK_MS)
        return;
    const uint64_t taken = info->tcpi_bytes_acked - connection->taken;
    connection->slow_looks = 0;
    if (taken >= CONN_LIMIT_SLOW_BYTES)
        return;
    log_event(LOG_WARN, "conn.not-reading", "bytes=%llu ms=%d action=connection-shut-down", (unsigned long long)taken,
              CONN_LIMIT_SLOW_MS);
    shutdown(fd, SHUT_RDWR);
}

/* A descriptor may be another's by now: then somebody else connects once more. */
static void check_one(struct conn_limit *conns, int fd, bool is_drained)
{
    struct connection *connection = &conns->connections[fd];
    struct tcp_info info;
    if (!ask_kernel(fd, &info))
        return;
    check_slow(conns, fd, &info);
    const uint64_t received = info.tcpi_bytes_received;
    if (connection->was_heard || received < connection->base) {
        connection->was_heard = false;
        connection->base = received;
        return;
    }
    const struct listener *listener = &conns->listeners[connection->place - 1];
    /* so many whole messages of it may wait to be read: then libzmq takes no more */
    int64_t bytes_max = is_drained ? listener->bytes_max : listener->bytes_max * (listener->read_mark + 1);
    if (received - connection->base <= (uint64_t)bytes_max)
        return;
    log_event(LOG_WARN, "conn.oversized", "bytes=%llu max=%lld action=connection-shut-down",
              (unsigned long long)(received - connection->base), (long long)bytes_max);
    connection->base = received;
    shutdown(fd, SHUT_RDWR);
}

static void say_cuts(struct conn_limit *conns)
{
    uint64_t cuts = multipart_cuts();
    if (cuts != conns->cuts)
        log_event(LOG_WARN, "conn.frames", "connections=%llu frames_max=%d action=cut-off",
                  (unsigned long long)(cuts - conns->cuts), MULTIPART_MAX);
    conns->cuts = cuts;
}

void conn_limit_take(struct conn_limit *conns, const bool is_drained[CONN_LIMIT_SOCKETS], int64_t now_ms)
{
    uint16_t event = 0;
    int fd = -1;
    for (int place = 0; place < CONN_LIMIT_SOCKETS; place++)
        while (conns->listeners[place].monitor && read_event(conns->listeners[place].monitor, &event, &fd)) {
            take_event(conns, place, event, fd);
            if (!conns->is_shut && conns->count >= conns->max)
                open_or_shut(conns); /* they come as fast as they are read here */
        }
    open_or_shut(conns);
    if (now_ms < conns->look_ms)
        return;
    conns->look_ms = now_ms + CONN_LIMIT_LOOK_MS;
    say_cuts(conns);
    for (fd = 0; fd < conns->fd_end; fd++) {
        uint8_t place = conns->connections[fd].place;
        if (place)
            check_one(conns, fd, is_drained[place - 1]);
    }
    for (int place = 0; place < CONN_LIMIT_SOCKETS; place++)
        conns->listeners[place].wants_room = false;
}
