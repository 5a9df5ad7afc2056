#include "client/client.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/stream/stream.h"

enum {
    TIMEOUT_MS = 10000,
    PATIENCE_MS = 600000,
    FRAME_BYTES_MAX = 80 << 20, /* the largest record and then some */
    QUEUE_MESSAGES = 128,
    RECONNECT_MS = 100,
    RECONNECT_LAST_MS = 2000,
    KEEPALIVE_IDLE_S = 20,
    KEEPALIVE_PERIOD_S = 5,
    KEEPALIVE_COUNT = 3
};

/* FEED stands beside FRONT: the port + 2, or "feed" where FRONT's path says "front". */
static bool feed_of(const char *front, char *feed, size_t size)
{
    const char *end = front + strlen(front);
    if (strncmp(front, "ipc://", 6) == 0) {
        if (end - front < 11 || strcmp(end - 5, "front") != 0)
            return false;
        return snprintf(feed, size, "%.*sfeed", (int)(end - front - 5), front) < (int)size;
    }
    const char *colon = strrchr(front, ':');
    char *rest;
    errno = 0;
    unsigned long port = colon ? strtoul(colon + 1, &rest, 10) : 0;
    if (strncmp(front, "tcp://", 6) != 0 || colon < front + 6 || *rest || errno || port < 1 || port > 65533)
        return false;
    return snprintf(feed, size, "%.*s:%lu", (int)(colon - front), front, port + 2) < (int)size;
}

struct sluice_client *sluice_connect(const char *url)
{
    struct sluice_client *client = calloc(1, sizeof(*client));
    if (!client)
        return NULL;
    const char *wanted = url ? url : getenv("SLUICE_BROKER");
    if (!wanted || !*wanted)
        wanted = "tcp://127.0.0.1:5750";
    client->timeout_ms = TIMEOUT_MS;
    client->patience_ms = PATIENCE_MS;
    link_init(&client->link);
    snprintf(client->front_url, sizeof(client->front_url), "%s", wanted);
    if (strlen(wanted) >= sizeof(client->front_url) ||
        !feed_of(client->front_url, client->feed_url, sizeof(client->feed_url)))
        client->feed_url[0] = '\0'; /* front_open says so */
    return client;
}

void sluice_close(struct sluice_client **handle)
{
    struct sluice_client *client = *handle;
    if (!client)
        return;
    *handle = NULL;
    stream_close(&client->stream);
    trajectory_view_finish(&client->got);
    buffer_finish(&client->text);
    link_close_front(client);
    link_finish(&client->link);
    if (client->context)
        zmq_ctx_term(client->context);
    free(client);
}

const char *sluice_error(const struct sluice_client *client) { return client->error; }

void sluice_set_timeout(struct sluice_client *client, int64_t timeout_ms)
{
    client->timeout_ms = timeout_ms < 0 ? 0 : timeout_ms;
}

void sluice_set_patience(struct sluice_client *client, int64_t patience_ms)
{
    client->patience_ms = patience_ms < 0 ? -1 : patience_ms;
}

const char *sluice_url(const struct sluice_client *client) { return client->front_url; }

int client_fail(struct sluice_client *client, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(client->error, sizeof(client->error), format, args);
    va_end(args);
    return code;
}

static const struct {
    enum refusal_reason reason;
    int code;
} refusal_errnos[] = {
    {REFUSAL_QUEUE_FULL, -EAGAIN},      {REFUSAL_GROUP_EXISTS, -EEXIST},   {REFUSAL_UNKNOWN_GROUP, -ENOENT},
    {REFUSAL_UNKNOWN_ROLLOUT, -ENOENT}, {REFUSAL_UNKNOWN_STREAM, -ENOENT}, {REFUSAL_UNKNOWN_ENGINE, -ENOENT},
    {REFUSAL_NO_ENGINE, -EHOSTUNREACH}, {REFUSAL_FORGOTTEN, -ENODATA},     {REFUSAL_UNKNOWN_MESSAGE, -EPROTO},
    {REFUSAL_NOT_ALLOWED, -EACCES},     {REFUSAL_DISK_LOW, -EAGAIN},       {REFUSAL_UNKNOWN_WORKER, -ENOENT},
    {REFUSAL_BACKUP_FAILED, -EIO},
};

/*
 * Everything without a row of its own is a mistake in what was asked for. A broker that is full
 * and does not say when to try again will never have room for this.
 */
int refused_errno(const struct msg_refused *refused)
{
    struct slice reason = refused->reason;
    if (slice_is(reason, refusal_wire(REFUSAL_QUEUE_FULL)) && !refused->has_retry_after_ms)
        return -ENOSPC;
    for (size_t i = 0; i < sizeof(refusal_errnos) / sizeof(*refusal_errnos); i++)
        if (slice_is(reason, refusal_wire(refusal_errnos[i].reason)))
            return refusal_errnos[i].code;
    return -EINVAL;
}

int client_refused(struct sluice_client *client, const struct msg_refused *refused)
{
    return client_fail(client, refused_errno(refused), "%.*s", SLICE_ARG(refused->text));
}

static bool set_int(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof(value)) == 0;
}

static bool set_limits(void *socket)
{
    int64_t frame_bytes_max = FRAME_BYTES_MAX;
    return zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &frame_bytes_max, sizeof(frame_bytes_max)) == 0 &&
           set_int(socket, ZMQ_LINGER, 0) && set_int(socket, ZMQ_SNDHWM, QUEUE_MESSAGES) &&
           set_int(socket, ZMQ_RCVHWM, QUEUE_MESSAGES) && set_int(socket, ZMQ_RECONNECT_IVL, RECONNECT_MS) &&
           set_int(socket, ZMQ_RECONNECT_IVL_MAX, RECONNECT_LAST_MS) && set_int(socket, ZMQ_TCP_KEEPALIVE, 1) &&
           set_int(socket, ZMQ_TCP_KEEPALIVE_IDLE, KEEPALIVE_IDLE_S) &&
           set_int(socket, ZMQ_TCP_KEEPALIVE_INTVL, KEEPALIVE_PERIOD_S) &&
           set_int(socket, ZMQ_TCP_KEEPALIVE_CNT, KEEPALIVE_COUNT);
}

void *client_socket(struct sluice_client *client, int type, const char *url)
{
    if (!client->feed_url[0]) {
        client_fail(client, -EINVAL, "'%s' is no broker: say tcp://HOST:PORT or ipc:///DIRECTORY/front",
                    client->front_url);
        errno = EINVAL;
        return NULL;
    }
    if (!client->context && !(client->context = zmq_ctx_new())) {
        client_fail(client, -errno, "no ZeroMQ context: %s", zmq_strerror(errno));
        return NULL;
    }
    void *socket = zmq_socket(client->context, type);
    bool is_front = type == ZMQ_DEALER;
    int code = socket ? link_arm(client, socket, url) : 0;
    if (code == 0 && is_front && socket)
        code = handshakes_open(&client->link.handshakes, client->context, socket);
    if (code == 0 &&
        (!socket || !set_limits(socket) || !set_int(socket, ZMQ_IMMEDIATE, is_front) || zmq_connect(socket, url) != 0))
        code = client_fail(client, -errno, "cannot connect to %s: %s", url, zmq_strerror(errno));
    if (code) {
        if (is_front)
            handshakes_close(&client->link.handshakes, socket);
        if (socket)
            zmq_close(socket);
        errno = -code;
        return NULL;
    }
    return socket;
}
