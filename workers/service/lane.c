#include "workers/service/lane.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "common/base/cleanup.h"
#include "common/net/bundle.h"
#include "schemas/messages/message.h"
#include "workers/service/stale_sockets.h"

enum {
    FRAME_BYTES = 1024,   /* names and lengths of a message's fields */
    BEATS_QUEUED_MAX = 64 /* stale ones, when the broker is there and does not read */
};

/* ---- where the broker is, and how it sees us -------------------------------------------- */

struct address {
    bool is_ipc;
    char host[128], port[8]; /* tcp */
    char directory[96];      /* ipc */
};

static int address_parse(const char *broker, struct address *ret, struct fail *fail)
{
    char tail[16] = "";
    *ret = (struct address){0};
    if (sscanf(broker, "tcp://%127[^:[]:%7[0-9]%1s", ret->host, ret->port, tail) == 2 ||
        sscanf(broker, "tcp://[%127[^]]]:%7[0-9]%1s", ret->host, ret->port, tail) == 2)
        return 0;
    size_t len = strlen(broker), lead = strlen("ipc://"), end = strlen("/front");
    ret->is_ipc = len > lead + end && strncmp(broker, "ipc://", lead) == 0 && strcmp(broker + len - end, "/front") == 0;
    if (!ret->is_ipc)
        return fail_set(fail, -EINVAL, "broker %s: not tcp://HOST:PORT or ipc:///DIR/front", broker);
    if (len - lead - end >= sizeof(ret->directory))
        return fail_set(fail, -EINVAL, "broker %s: a socket's path must be shorter", broker);
    memcpy(ret->directory, broker + lead, len - lead - end);
    return 0;
}

/* The address this host shows to the broker: that of a UDP socket connected to it. */
static int find_local_host(const struct address *broker, char ret[128], struct fail *fail)
{
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_family = strchr(broker->host, ':') ? AF_INET6 : AF_INET};
    struct addrinfo *found = NULL;
    int wrong = getaddrinfo(broker->host, broker->port, &hints, &found);
    if (wrong)
        return fail_set(fail, -EHOSTUNREACH, "cannot find %s: %s", broker->host, gai_strerror(wrong));
    struct sockaddr_storage local;
    socklen_t len = sizeof(local);
    AUTO_CLOSE int fd = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int error = fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen) < 0 ||
                        getsockname(fd, (struct sockaddr *)&local, &len) < 0
                    ? -errno
                    : 0;
    freeaddrinfo(found);
    if (error)
        return fail_set(fail, error, "no way to %s: %s", broker->host, strerror(-error));
    wrong = getnameinfo((struct sockaddr *)&local, len, ret, 128, NULL, 0, NI_NUMERICHOST);
    return wrong ? fail_set(fail, -EIO, "no address of our own: %s", gai_strerror(wrong)) : 0;
}

static void format_tcp(char *ret, size_t size, const char *host, unsigned port)
{
    const char *form = strchr(host, ':') ? "tcp://[%s]:%u" : "tcp://%s:%u";
    snprintf(ret, size, form, host, port);
}

/* ---- who may listen in ------------------------------------------------------------------ */

static int check_reach(const struct lane_plan *plan, const char *endpoint, struct fail *fail)
{
    if (plan->key || plan->allow_plaintext || endpoint_is_local(endpoint))
        return 0;
    return fail_set(fail, -EACCES,
                    "%s is not on this machine and there is no key: say --key FILE (`sluice keys add "
                    "worker NAME` makes one), or --allow-plaintext if you trust the whole network",
                    endpoint);
}

static int arm(struct lane *lane, void *zmq, const struct lane_plan *plan, struct fail *fail)
{
    int code = 0;
    lane->has_key = plan->key != NULL;
    if (plan->key && ((code = curve_use(lane->pull, plan->key)) || (code = curve_use(lane->push, plan->key))))
        return fail_set(fail, code, "libzmq takes no keys: %s", zmq_strerror(-code));
    code = handshakes_open(&lane->handshakes, zmq, lane->push);
    return code ? fail_set(fail, code, "no socket monitor: %s", zmq_strerror(-code)) : 0;
}

/* ---- sockets ---------------------------------------------------------------------------- */

/* The longest message the broker sends on a lane: a job.start with every field at its bound. */
static int64_t message_bytes_max(void)
{
    const struct message *message = message_get(MSG_job_start);
    int64_t bytes = FRAME_BYTES;
    for (size_t i = 0; i < message->field_count; i++)
        if (message->fields[i].type == FIELD_STR || message->fields[i].type == FIELD_BIN)
            bytes += (int64_t)message->fields[i].max;
    return bytes;
}

static void set_int(void *socket, int option, int value) { zmq_setsockopt(socket, option, &value, sizeof(value)); }

static void set_common(void *socket, bool is_ipv6)
{
    static const struct {
        int option, value;
    } settings[] = {
        {ZMQ_LINGER, 0},
        {ZMQ_TCP_KEEPALIVE, 1},
        {ZMQ_TCP_KEEPALIVE_IDLE, 30},
        {ZMQ_RECONNECT_IVL, 100},
        {ZMQ_TCP_KEEPALIVE_INTVL, 10},
        {ZMQ_TCP_KEEPALIVE_CNT, 3},
        {ZMQ_TCP_MAXRT, 30000},
        {ZMQ_RECONNECT_IVL_MAX, 1000},
        {ZMQ_HANDSHAKE_IVL, 5000},
        {ZMQ_CONNECT_TIMEOUT, 5000}, /* not the kernel's: its next try may be a minute away */
    };
    for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++)
        set_int(socket, settings[i].option, settings[i].value);
    set_int(socket, ZMQ_IPV6, is_ipv6);
    int64_t bytes_max = message_bytes_max();
    zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &bytes_max, sizeof(bytes_max));
}

static int bind_ipc(struct lane *lane, const struct address *broker, const struct lane_plan *plan, struct fail *fail)
{
    stale_sockets_remove(broker->directory);
    snprintf(lane->endpoint, sizeof(lane->endpoint), "ipc://%s/lane-%s", broker->directory, plan->worker);
    if (zmq_bind(lane->pull, lane->endpoint) == 0)
        return 0;
    return fail_set(fail, -errno, "cannot bind %s: %s", lane->endpoint, zmq_strerror(errno));
}

/* Tries every port of the range once, from a random one on. */
static int bind_tcp(struct lane *lane, const char *host, const struct lane_plan *plan, struct fail *fail)
{
    unsigned count = plan->port_last - plan->port_first + 1, start = 0;
    if (getrandom(&start, sizeof(start), 0) < 0)
        start = (unsigned)rand();
    for (unsigned i = 0; i < count; i++) {
        unsigned port = plan->port_first + (start % count + i) % count;
        char endpoint[256];
        format_tcp(endpoint, sizeof(endpoint), plan->advertise ? "*" : host, port);
        if (zmq_bind(lane->pull, endpoint) == 0) {
            format_tcp(lane->endpoint, sizeof(lane->endpoint), host, port);
            return 0;
        }
        if (errno != EADDRINUSE)
            return fail_set(fail, -errno, "cannot bind %s: %s", endpoint, zmq_strerror(errno));
    }
    return fail_set(fail, -EADDRINUSE, "no free port for the lane in %u-%u", plan->port_first, plan->port_last);
}

/* With --advertise the lane listens on all addresses, whatever it is called. */
static int lane_bind(struct lane *lane, const struct address *broker, const struct lane_plan *plan, struct fail *fail)
{
    char host[128], endpoint[256];
    if (broker->is_ipc)
        return bind_ipc(lane, broker, plan, fail);
    int error = plan->advertise ? 0 : find_local_host(broker, host, fail);
    if (error)
        return error;
    format_tcp(endpoint, sizeof(endpoint), plan->advertise ? "0.0.0.0" : host, 0);
    error = check_reach(plan, endpoint, fail);
    return error ? error : bind_tcp(lane, plan->advertise ? plan->advertise : host, plan, fail);
}

static int sink_connect(struct lane *lane, const struct address *broker, struct fail *fail)
{
    if (broker->is_ipc)
        snprintf(lane->sink, sizeof(lane->sink), "ipc://%s/sink", broker->directory);
    else
        format_tcp(lane->sink, sizeof(lane->sink), broker->host, (unsigned)strtoul(broker->port, NULL, 10) + 1);
    if (zmq_connect(lane->push, lane->sink) == 0)
        return 0;
    return fail_set(fail, -errno, "cannot connect to %s: %s", lane->sink, zmq_strerror(errno));
}

int lane_open(struct lane *lane, void *zmq, const struct lane_plan *plan, struct fail *fail)
{
    struct address broker;
    *lane = (struct lane){0};
    int error = address_parse(plan->broker, &broker, fail);
    if (error)
        return error;
    lane->pull = zmq_socket(zmq, ZMQ_PULL);
    lane->push = zmq_socket(zmq, ZMQ_PUSH);
    if (!lane->pull || !lane->push) {
        error = fail_set(fail, -errno, "no ZeroMQ socket: %s", zmq_strerror(errno));
    } else {
        bool is_ipv6 = strchr(broker.host, ':') || (plan->advertise && strchr(plan->advertise, ':'));
        set_common(lane->pull, is_ipv6);
        set_common(lane->push, is_ipv6);
        set_int(lane->push, ZMQ_IMMEDIATE, 1);
        set_int(lane->push, ZMQ_SNDHWM, BEATS_QUEUED_MAX);
        error = check_reach(plan, plan->broker, fail);
        if (error == 0)
            error = arm(lane, zmq, plan, fail);
        if (error == 0)
            error = lane_bind(lane, &broker, plan, fail);
        if (error == 0)
            error = sink_connect(lane, &broker, fail);
    }
    if (error)
        lane_close(lane, 0);
    return error;
}

void lane_close(struct lane *lane, int linger_ms)
{
    handshakes_close(&lane->handshakes, lane->push);
    if (lane->push) {
        set_int(lane->push, ZMQ_LINGER, linger_ms);
        zmq_close(take_ptr(&lane->push));
    }
    if (lane->pull)
        zmq_close(take_ptr(&lane->pull));
    buffer_finish(&lane->bundle);
    if (strncmp(lane->endpoint, "ipc://", 6) == 0)
        unlink(lane->endpoint + 6); /* ZeroMQ leaves it */
}

static const char *explain(const struct lane *lane, enum handshake news)
{
    if (news == HANDSHAKE_REFUSED)
        return "the broker does not know this key as a worker's";
    if (news == HANDSHAKE_MISMATCH)
        return lane->has_key ? "the broker speaks plaintext: start it with --keys, or this without "
                               "--key"
                             : "the broker wants a key: --key FILE";
    return "the broker broke off the handshake: its key is not the one that the key file names, or it "
           "speaks "
           "plaintext";
}

/* libzmq itself tries again only what broke off, and says so each time. */
const char *lane_mend(struct lane *lane, int64_t now_ms)
{
    const char *why = NULL;
    for (enum handshake news; (news = handshakes_next(&lane->handshakes)) != HANDSHAKE_NONE;) {
        if (news == HANDSHAKE_LOST)
            continue;
        if (news != HANDSHAKE_DONE && (news != HANDSHAKE_BROKEN || lane->has_key))
            why = explain(lane, news);
        if (news != HANDSHAKE_DONE && news != HANDSHAKE_BROKEN && !lane->is_refused) {
            lane->is_refused = true;
            lane->again_ms = now_ms + LANE_AGAIN_MS;
        }
    }
    if (lane->is_refused && now_ms >= lane->again_ms) {
        lane->is_refused = false;
        zmq_connect(lane->push, lane->sink);
    }
    return why;
}

bool lane_fds(const struct lane *lane, int ret_fds[2])
{
    size_t size = sizeof(int);
    return zmq_getsockopt(lane->pull, ZMQ_FD, &ret_fds[0], &size) == 0 &&
           zmq_getsockopt(lane->push, ZMQ_FD, &ret_fds[1], &size) == 0;
}

/* ---- messages --------------------------------------------------------------------------- */

static bool socket_is(void *socket, int event)
{
    int events = 0;
    size_t size = sizeof(events);
    return zmq_getsockopt(socket, ZMQ_EVENTS, &events, &size) == 0 && (events & event);
}

/* Frames after the first are read and dropped, and the first with them. */
static void drop_frames(void *socket, zmq_msg_t *message)
{
    while (zmq_msg_more(message)) {
        zmq_msg_close(message);
        zmq_msg_init(message);
        if (zmq_msg_recv(message, socket, ZMQ_DONTWAIT) < 0)
            break;
    }
    zmq_msg_close(message);
    zmq_msg_init(message);
}

/* Asks only what it must: each look at a socket's events is two system calls. */
bool lane_receive(struct lane *lane, zmq_msg_t *ret)
{
    zmq_msg_init(ret);
    if (zmq_msg_recv(ret, lane->pull, ZMQ_DONTWAIT) < 0) {
        zmq_msg_close(ret);
        return false;
    }
    if (zmq_msg_more(ret))
        drop_frames(lane->pull, ret);
    return true;
}

bool lane_can_send(const struct lane *lane) { return socket_is(lane->push, ZMQ_POLLOUT); }

/* That there is room again, libzmq may know only once it was asked. */
static bool send_now(struct lane *lane, zmq_msg_t *message)
{
    if (zmq_msg_send(message, lane->push, ZMQ_DONTWAIT) >= 0 ||
        (lane_can_send(lane) && zmq_msg_send(message, lane->push, ZMQ_DONTWAIT) >= 0))
        return true;
    zmq_msg_close(message);
    return false;
}

static bool send_copy_now(struct lane *lane, struct slice bytes)
{
    zmq_msg_t message;
    if (zmq_msg_init_size(&message, bytes.len) < 0)
        return false;
    memcpy(zmq_msg_data(&message), bytes.data, bytes.len);
    return send_now(lane, &message);
}

bool lane_flush(struct lane *lane)
{
    const bool is_gone = !lane->bundle.len || send_copy_now(lane, bundle_peek(&lane->bundle));
    buffer_clear(&lane->bundle);
    return is_gone;
}

bool lane_send(struct lane *lane, zmq_msg_t *message)
{
    lane_flush(lane);
    return send_now(lane, message);
}

/* A bundle is begun where it can be sent: what is in it counts as sent. */
bool lane_send_copy(struct lane *lane, struct slice bytes)
{
    const bool is_small = bytes.len <= BUNDLED_MAX;
    if (!lane->bundles || !is_small || lane->bundle.len + bytes.len > BUNDLE_BYTES_MAX)
        lane_flush(lane);
    if (!lane->bundles || !is_small)
        return send_copy_now(lane, bytes);
    return (lane->bundle.len > 0 || lane_can_send(lane)) && bundle_add(&lane->bundle, bytes);
}
