#include "broker/net/crowd.h"

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
    uint64_t base;  /* bytes it had sent when it was last heard */
    uint8_t place;  /* of its socket, from 1; 0: none */
    bool was_heard, is_shut;
};

struct door {
    void *socket, *monitor;
    int64_t bytes_max; /* of one message */
    int read_mark;
    int listening_fd;
};

struct crowd {
    void *context;
    size_t max, count;
    bool is_shut;
    int backlog; /* that the kernel was last told */
    int fd_end; /* one beyond the highest descriptor seen */
    int64_t look_ms;
    uint64_t cuts; /* by multipart.h, that were logged */
    struct door doors[CROWD_SOCKETS];
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

/* The kernel answers this many before they are accepted, also when the door is shut meanwhile: at
 * most as many as there is room for. */
static int backlog_for(const struct crowd *crowd)
{
    size_t room = crowd->max > crowd->count ? crowd->max - crowd->count : 1;
    int backlog = BACKLOG_MAX;
    while ((size_t)backlog > room)
        backlog /= 2;
    return backlog;
}

struct crowd *crowd_create(void *context, size_t max)
{
    struct crowd *crowd = calloc(1, sizeof(*crowd));
    if (!crowd)
        return NULL;
    crowd->context = context;
    crowd->max = room_for(max);
    crowd->backlog = backlog_for(crowd);
    for (int i = 0; i < CROWD_SOCKETS; i++)
        crowd->doors[i].listening_fd = -1;
    if (crowd->max < max)
        log_event(LOG_WARN, "crowd.descriptors", "connections=%zu wanted=%zu hint=\"ulimit -n\"",
                  crowd->max, max);
    return crowd;
}

void crowd_destroy(struct crowd **destroying) { free(take_ptr(destroying)); }

int crowd_watch(struct crowd *crowd, void *socket, int64_t message_max, int read_mark)
{
    int place = 0, none = 0;
    char address[64];
    while (place < CROWD_SOCKETS && crowd->doors[place].socket)
        place++;
    if (place == CROWD_SOCKETS)
        return -ENOSPC;
    struct door *door = &crowd->doors[place];
    snprintf(address, sizeof(address), "inproc://crowd-%d", place);
    if (zmq_socket_monitor(socket, address, EVENTS_WANTED) != 0)
        return -errno;
    door->socket = socket;
    door->bytes_max = message_max + message_max / 8 + 65536;
    door->read_mark = read_mark;
    door->monitor = zmq_socket(crowd->context, ZMQ_PAIR);
    /* libzmq's own thread would wait for room in it */
    if (door->monitor && zmq_setsockopt(door->monitor, ZMQ_RCVHWM, &none, sizeof(none)) == 0 &&
        zmq_setsockopt(door->monitor, ZMQ_LINGER, &none, sizeof(none)) == 0 &&
        zmq_connect(door->monitor, address) == 0)
        return place;
    int code = -errno;
    crowd_leave(crowd, place);
    return code;
}

void crowd_leave(struct crowd *crowd, int place)
{
    struct door *door = &crowd->doors[place];
    if (door->socket)
        zmq_socket_monitor(door->socket, NULL, 0);
    if (door->monitor)
        zmq_close(door->monitor);
    *door = (struct door){.listening_fd = -1};
}

void *crowd_monitor(const struct crowd *crowd, int place) { return crowd->doors[place].monitor; }
size_t crowd_count(const struct crowd *crowd) { return crowd->count; }

/* ---- opening and shutting --------------------------------------------------------------------- */

static void set_door(const struct crowd *crowd, int fd)
{
    struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
    struct sock_fprog program = {1, &nothing};
    if (fd < 0)
        return;
    listen(fd, crowd->backlog);
    if (crowd->is_shut)
        setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
    else
        setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &(int){0}, sizeof(int));
}

static void forget(struct crowd *crowd, int fd)
{
    if (fd < 0 || fd >= FDS_MAX || !crowd->connections[fd].place)
        return;
    crowd->connections[fd].place = 0;
    crowd->count--;
}

/* libzmq does not tell of connections that it ends itself. */
static void recount(struct crowd *crowd)
{
    for (int fd = 0; fd < crowd->fd_end; fd++)
        if (crowd->connections[fd].place && fcntl(fd, F_GETFD) < 0)
            forget(crowd, fd);
}

static void open_or_shut(struct crowd *crowd)
{
    if (crowd->count >= crowd->max)
        recount(crowd);
    bool was_shut = crowd->is_shut;
    int backlog = backlog_for(crowd);
    crowd->is_shut = crowd->count >= (was_shut ? crowd->max - crowd->max / 8 : crowd->max);
    if (crowd->is_shut == was_shut && backlog == crowd->backlog)
        return;
    crowd->backlog = backlog;
    for (int i = 0; i < CROWD_SOCKETS; i++)
        set_door(crowd, crowd->doors[i].listening_fd);
    if (crowd->is_shut != was_shut)
        log_event(LOG_WARN, crowd->is_shut ? "crowd.full" : "crowd.open-again",
                  "connections=%zu max=%zu action=%s", crowd->count, crowd->max,
                  crowd->is_shut ? "new-ones-wait" : "new-ones-are-let-in");
}

/* ---- who comes and goes ------------------------------------------------------------------------ */

static void take_event(struct crowd *crowd, int place, uint16_t event, int fd)
{
    struct door *door = &crowd->doors[place];
    if (event == ZMQ_EVENT_LISTENING) {
        door->listening_fd = fd;
        set_door(crowd, fd);
    } else if (event == ZMQ_EVENT_CLOSED) {
        door->listening_fd = -1;
    } else if (event == ZMQ_EVENT_DISCONNECTED) {
        forget(crowd, fd);
    } else if (fd >= 0 && fd < FDS_MAX) {
        struct connection *connection = &crowd->connections[fd];
        crowd->count += !connection->place;
        *connection = (struct connection){.place = (uint8_t)(place + 1)};
        if (fd >= crowd->fd_end)
            crowd->fd_end = fd + 1;
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

void crowd_heard(struct crowd *crowd, zmq_msg_t *frame)
{
    int fd = zmq_msg_get(frame, ZMQ_SRCFD);
    if (fd >= 0 && fd < FDS_MAX)
        crowd->connections[fd].was_heard = true;
}

void crowd_shut_down(struct crowd *crowd, zmq_msg_t *frame, const char *why)
{
    int fd = zmq_msg_get(frame, ZMQ_SRCFD);
    if (fd < 0 || fd >= FDS_MAX || !crowd->connections[fd].place || crowd->connections[fd].is_shut)
        return;
    crowd->connections[fd].is_shut = true;
    log_event(LOG_WARN, "crowd.shut-down", "why=\"%s\"", why);
    shutdown(fd, SHUT_RDWR);
}

static bool count_received(int fd, uint64_t *ret)
{
    struct tcp_info info;
    socklen_t size = sizeof(info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
        size < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof(info.tcpi_bytes_received))
        return false;
    *ret = info.tcpi_bytes_received;
    return true;
}

/* A descriptor may be another's by now: then somebody else connects once more. */
static void check_one(struct crowd *crowd, int fd, bool is_drained)
{
    struct connection *connection = &crowd->connections[fd];
    uint64_t received;
    if (!count_received(fd, &received))
        return;
    if (connection->was_heard || received < connection->base) {
        connection->was_heard = false;
        connection->base = received;
        return;
    }
    const struct door *door = &crowd->doors[connection->place - 1];
    /* so many whole messages of it may wait to be read: then libzmq takes no more */
    int64_t bytes_max = is_drained ? door->bytes_max : door->bytes_max * (door->read_mark + 1);
    if (received - connection->base <= (uint64_t)bytes_max)
        return;
    log_event(LOG_WARN, "crowd.endless", "bytes=%llu max=%lld action=connection-shut-down",
              (unsigned long long)(received - connection->base), (long long)bytes_max);
    connection->base = received;
    shutdown(fd, SHUT_RDWR);
}

static void say_cuts(struct crowd *crowd)
{
    uint64_t cuts = multipart_cuts();
    if (cuts != crowd->cuts)
        log_event(LOG_WARN, "crowd.frames", "connections=%llu frames_max=%d action=cut-off",
                  (unsigned long long)(cuts - crowd->cuts), MULTIPART_MAX);
    crowd->cuts = cuts;
}

void crowd_take(struct crowd *crowd, const bool is_drained[CROWD_SOCKETS], int64_t now_ms)
{
    uint16_t event = 0;
    int fd = -1;
    for (int place = 0; place < CROWD_SOCKETS; place++)
        while (crowd->doors[place].monitor && read_event(crowd->doors[place].monitor, &event, &fd)) {
            take_event(crowd, place, event, fd);
            if (!crowd->is_shut && crowd->count >= crowd->max)
                open_or_shut(crowd); /* they come as fast as they are read here */
        }
    open_or_shut(crowd);
    if (now_ms < crowd->look_ms)
        return;
    crowd->look_ms = now_ms + CROWD_LOOK_MS;
    say_cuts(crowd);
    for (fd = 0; fd < crowd->fd_end; fd++) {
        uint8_t place = crowd->connections[fd].place;
        if (place)
            check_one(crowd, fd, is_drained[place - 1]);
    }
}
