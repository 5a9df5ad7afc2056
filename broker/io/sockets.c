/* The three sockets: their options, where they are bound, and the words when they cannot be. */
#include "broker/io/inner.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "common/base/log.h"

/*
 * High-water marks count messages, so their bound in bytes is the mark times the size limit, for a
 * connection that sends faster than the broker reads: 128 MiB in front, 1.1 GiB of a worker that is
 * no friend (others keep 64 MiB and a result a slot). A mark below what one read of the network holds
 * makes libzmq stop and go on within it. They are set before the first connection and never again:
 * libzmq 4.3.4 tells a change to pipes that may be gone, and crashes. No ZMTP heartbeats: it aborts
 * when a socket with them stops reading.
 */
enum {
    FRONT_MESSAGE_MAX = 4 << 20, /* a task of 1 MiB, and room to refuse larger ones by name */
    SINK_MESSAGE_MAX = 72 << 20, /* a record of 64 MiB, a layer, an answer */
    FRONT_READ_MARK = 32,
    SINK_READ_MARK = 16,
    /* libzmq learns by halves of the mark what has left: so all that a client may have asked for has room. */
    FRONT_SEND_MARK = 2 * PEER_WAITING_MAX,
    FEED_SEND_MARK = 8192, /* small ones; io/batch.c counts the bytes of large ones */
    FEED_READ_MARK = 16,   /* libzmq takes in subscriptions for as long as there are any */
    LINGER_MS = 500
};

struct option {
    int option, value;
};

static const struct option common_options[] = {
    {ZMQ_BACKLOG, 1024},           {ZMQ_HANDSHAKE_IVL, 3000},  {ZMQ_TCP_KEEPALIVE, 1}, {ZMQ_TCP_KEEPALIVE_IDLE, 30},
    {ZMQ_TCP_KEEPALIVE_INTVL, 10}, {ZMQ_TCP_KEEPALIVE_CNT, 3}, {ZMQ_TCP_MAXRT, 30000},
};
static const struct option front_options[] = {
    {ZMQ_RCVHWM, FRONT_READ_MARK},
    {ZMQ_SNDHWM, FRONT_SEND_MARK},
    {ZMQ_LINGER, LINGER_MS},
    {ZMQ_ROUTER_MANDATORY, 1}, /* and no HANDOVER: an identity is its first owner's */
};
static const struct option sink_options[] = {{ZMQ_RCVHWM, SINK_READ_MARK}, {ZMQ_LINGER, 0}};
static const struct option feed_options[] = {
    {ZMQ_SNDHWM, FEED_SEND_MARK}, {ZMQ_RCVHWM, FEED_READ_MARK}, {ZMQ_LINGER, LINGER_MS}, {ZMQ_XPUB_MANUAL, 1}};

struct plan {
    const char *name;
    enum zap_domain domain;
    int type;
    int64_t message_max;
    int read_mark;
    const struct option *options;
    size_t option_count;
};
#define OPTIONS(table) table, sizeof(table) / sizeof(*table)
static const struct plan front_plan = {"front",           ZAP_FRONT,       ZMQ_ROUTER,
                                       FRONT_MESSAGE_MAX, FRONT_READ_MARK, OPTIONS(front_options)};
static const struct plan sink_plan = {"sink",           ZAP_SINK,       ZMQ_PULL,
                                      SINK_MESSAGE_MAX, SINK_READ_MARK, OPTIONS(sink_options)};
static const struct plan feed_plan = {"feed", ZAP_FEED, ZMQ_XPUB, 1024, FEED_READ_MARK, OPTIONS(feed_options)};

static bool set_options(void *socket, const struct option *options, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (zmq_setsockopt(socket, options[i].option, &options[i].value, sizeof(int)) != 0)
            return false;
    return true;
}

static int refuse_bind(const char *name, const char *endpoint, int code, struct fail *fail)
{
    const char *port = strrchr(endpoint, ':');
    if (code == EADDRINUSE)
        return fail_set(fail, -code,
                        "cannot bind %s: %s is in use by another program (`ss -ltnp sport = %s` "
                        "names it): end it, or choose another port with --%s",
                        name, endpoint, port ? port : "", name);
    if (code == EACCES)
        return fail_set(fail, -code,
                        "cannot bind %s to %s: permission denied: choose a port from "
                        "1024 on, or a directory you may write in",
                        name, endpoint);
    if (code == EADDRNOTAVAIL || code == ENODEV)
        return fail_set(fail, -code,
                        "cannot bind %s to %s: this host has no such address: see "
                        "`ip addr`, or use --bind tcp://0.0.0.0",
                        name, endpoint);
    return fail_set(fail, -code, "cannot bind %s to %s: %s", name, endpoint, zmq_strerror(code));
}

static int bind_one(struct io *io, const struct plan *plan, const char *endpoint, char bound[ENDPOINT_SIZE], void **ret,
                    struct fail *fail)
{
    void *socket = *ret = zmq_socket(io->context, plan->type);
    if (!socket || !set_options(socket, common_options, sizeof(common_options) / sizeof(*common_options)) ||
        !set_options(socket, plan->options, plan->option_count) ||
        zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &plan->message_max, sizeof(int64_t)) != 0 ||
        auth_arm(&io->auth, socket, plan->domain) != 0 ||
        conn_limit_watch(io->conns, socket, plan->message_max, plan->read_mark) < 0)
        return fail_set(fail, -errno, "cannot make the socket %s: %s", plan->name, zmq_strerror(errno));
    if (zmq_bind(socket, endpoint) != 0)
        return refuse_bind(plan->name, endpoint, errno, fail);
    size_t size = ENDPOINT_SIZE;
    if (zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, bound, &size) != 0)
        return fail_set(fail, -errno, "%s is bound and does not say where: %s", plan->name, zmq_strerror(errno));
    return 0;
}

/* A client that reconnects may connect to itself on such a port, and keep the broker from it. */
static void warn_of_port(const char *name, const char *endpoint)
{
    FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
    int low = 0, high = 0, port = 0;
    const char *colon = strrchr(endpoint, ':');
    if (file && fscanf(file, "%d %d", &low, &high) == 2 && strncmp(endpoint, "tcp://", 6) == 0 &&
        sscanf(colon, ":%d", &port) == 1 && port >= low && port <= high)
        log_event(LOG_WARN, "broker.ephemeral-port",
                  "%s=%s range=%d-%d hint=\"a reconnecting client can take this port: choose one "
                  "below %d\"",
                  name, endpoint, low, high, low);
    if (file)
        fclose(file);
}

int io_bind(struct io *io, const struct io_options *options, struct fail *fail)
{
    int code = 0;
    void *feed = NULL;
    if (options->ipc_dir)
        code = lock_take(options->ipc_dir, &io->ipc_lock, fail);
    if (code == 0)
        code = bind_one(io, &front_plan, options->endpoints.front, io->bound.front, &io->front, fail);
    if (code == 0)
        code = bind_one(io, &sink_plan, options->endpoints.sink, io->bound.sink, &io->sink, fail);
    if (code == 0)
        code = bind_one(io, &feed_plan, options->endpoints.feed, io->bound.feed, &feed, fail);
    if (code == 0 && !(io->feed = feed_create(feed, io->bound.feed, &io->auth)))
        code = fail_set(fail, -ENOMEM, "out of memory");
    if (code) {
        if (feed)
            zmq_close(feed);
        return code;
    }
    warn_of_port("front", options->endpoints.front);
    warn_of_port("sink", options->endpoints.sink);
    warn_of_port("feed", options->endpoints.feed);
    return 0;
}

/* libzmq leaves the files of ipc:// endpoints behind; only who holds the lock made them. */
static void remove_file(const struct io *io, const char *endpoint)
{
    if (io->ipc_lock.file_fd >= 0 && strncmp(endpoint, "ipc://", 6) == 0)
        unlink(endpoint + 6);
}

void io_unbind(struct io *io)
{
    for (int place = 0; io->conns && place < CONN_LIMIT_SOCKETS; place++)
        conn_limit_leave(io->conns, place);
    if (io->front)
        zmq_close(io->front);
    if (io->sink)
        zmq_close(io->sink);
    io->front = io->sink = NULL;
    feed_destroy(&io->feed);
    remove_file(io, io->bound.front);
    remove_file(io, io->bound.sink);
    remove_file(io, io->bound.feed);
}
