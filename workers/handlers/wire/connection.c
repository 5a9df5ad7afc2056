#include "workers/handlers/wire/connection.h"

#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "common/base/cleanup.h"
#include "workers/handlers/wire/json_lines.h"

enum { HEAD_BYTES = 4, CHUNK_BYTES = 65536 };

void handler_message_finish(struct handler_message *message)
{
    buffer_finish(&message->bytes);
    *message = (struct handler_message){0};
}

static void tell_broken(void *arg)
{
    struct connection *connection = arg;
    connection->broken(connection->arg, connection->how, connection->why.text);
}

/* Not at once: who sends would find its connection gone. The first reason stays. */
static void break_as(struct connection *connection, enum connection_break how, const char *why)
{
    if (connection->fd < 0 || connection->why.code)
        return;
    connection->how = how;
    fail_set(&connection->why, -EPIPE, "%s", why);
    loop_post(connection->loop, &connection->soon);
}

static void break_later(struct connection *connection, const char *why) { break_as(connection, CONNECTION_FAULT, why); }
static void break_closed(struct connection *connection)
{
    break_as(connection, CONNECTION_CLOSED, "it closed its socket");
}

static void ready(void *arg, uint32_t events);

static void watch_out(struct connection *connection, bool wants_out)
{
    if (!wants_out) {
        loop_unwatch(connection->loop, &connection->out_watch);
        return;
    }
    connection->out_watch = loop_watch(connection->loop, connection->out_fd, EPOLLOUT, ready, connection);
    if (!connection->out_watch)
        break_later(connection, "out of memory");
}

static void set_events(struct connection *connection)
{
    const bool wants_out = connection->out.len > connection->out_at;
    if (wants_out != connection->wants_out && connection->out_fd != connection->fd)
        watch_out(connection, wants_out);
    else if (wants_out != connection->wants_out && connection->watch)
        loop_rewatch(connection->loop, connection->watch, wants_out ? EPOLLIN | EPOLLOUT : EPOLLIN);
    connection->wants_out = wants_out;
}

/* ---- out ---------------------------------------------------------------------------------- */

/* Of what was sent nothing is kept for long, also where there is always more to send. */
static void forget_sent(struct connection *connection)
{
    struct buffer *out = &connection->out;
    const size_t left = out->len - connection->out_at;
    if (left > 0 && connection->out_at < CHUNK_BYTES)
        return;
    if (left > 0)
        memmove(out->data, out->data + connection->out_at, left);
    else
        buffer_finish(out);
    if (left == 0)
        *out = (struct buffer){0};
    out->len = left;
    connection->out_at = 0;
}

static void flush(struct connection *connection)
{
    struct buffer *out = &connection->out;
    while (out->len > connection->out_at) {
        ssize_t sent = send(connection->out_fd, out->data + connection->out_at, out->len - connection->out_at,
                            MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno != EAGAIN)
            break_closed(connection);
        if (sent < 0)
            break;
        connection->out_at += (size_t)sent;
    }
    forget_sent(connection);
    set_events(connection);
}

static bool append_message(struct connection *connection, enum message_id id, const void *message, struct refusal *no)
{
    struct buffer *out = &connection->out;
    const size_t from = out->len;
    if (connection->is_lines)
        return json_lines_encode(id, message, out, no);
    if (!buffer_append(out, "\0\0\0\0", HEAD_BYTES) || !message_encode(id, message, out, no)) {
        out->len = from;
        return false;
    }
    const uint32_t len = (uint32_t)(out->len - from - HEAD_BYTES);
    const uint8_t head[HEAD_BYTES] = {(uint8_t)(len >> 24), (uint8_t)(len >> 16), (uint8_t)(len >> 8), (uint8_t)len};
    memcpy(out->data + from, head, sizeof(head));
    return true;
}

bool connection_has_room(const struct connection *connection)
{
    return connection->out.len - connection->out_at <= HANDLER_QUEUE_MAX - HANDLER_MESSAGE_MAX;
}

bool connection_send(struct connection *connection, enum message_id id, const void *message, struct refusal *no)
{
    if (connection->fd < 0 || connection->why.code)
        return true; /* who asked hears of that another way */
    if (!append_message(connection, id, message, no))
        return false;
    if (connection->out.len - connection->out_at > HANDLER_QUEUE_MAX)
        break_later(connection, "it does not read what is sent to it");
    else
        flush(connection);
    return true;
}

/* ---- in ----------------------------------------------------------------------------------- */

/* A whole message among the bytes, without what frames it; 0: not yet, -1 with why. `ret_next` is behind it. */
static int find_frame(const struct connection *connection, size_t at, struct slice *ret, size_t *ret_next,
                      struct fail *why)
{
    const uint8_t *data = connection->in.data + at;
    const size_t left = connection->in.len - at;
    if (left < HEAD_BYTES)
        return 0;
    const size_t len = (size_t)data[0] << 24 | (size_t)data[1] << 16 | (size_t)data[2] << 8 | data[3];
    if (len > HANDLER_MESSAGE_MAX || len == 0)
        return fail_set(why, -1, "it sent a frame of %zu bytes; 1 to %d are allowed", len, HANDLER_MESSAGE_MAX);
    if (left - HEAD_BYTES < len)
        return 0;
    *ret = slice_of(data + HEAD_BYTES, len);
    *ret_next = at + HEAD_BYTES + len;
    return 1;
}

static int find_line(struct connection *connection, size_t at, struct slice *ret, size_t *ret_next, struct fail *why)
{
    const size_t from = connection->scanned > at ? connection->scanned : at;
    const uint8_t *data = connection->in.data, *end = memchr(data + from, '\n', connection->in.len - from);
    connection->scanned = end ? (size_t)(end - data) + 1 : connection->in.len;
    if ((end ? (size_t)(end - data) : connection->in.len) - at > HANDLER_MESSAGE_MAX)
        return fail_set(why, -1, "it sent a line of more than %d bytes", HANDLER_MESSAGE_MAX);
    if (!end)
        return 0;
    *ret = slice_of(data + at, (size_t)(end - data) - at);
    *ret_next = connection->scanned;
    return 1;
}

static bool read_message(const struct connection *connection, struct slice bytes, struct handler_message *ret,
                         struct refusal *no)
{
    *ret = (struct handler_message){0};
    if (connection->is_lines) {
        if (!json_lines_decode(bytes, &ret->bytes, no))
            return false;
    } else if (!buffer_append(&ret->bytes, bytes.data, bytes.len)) {
        return refuse(no, REFUSAL_MALFORMED, "", "out of memory");
    }
    bytes = buffer_peek(&ret->bytes);
    if (!message_peek(bytes, &ret->id, no))
        return false;
    if (message_get(ret->id)->sender != SENDER_HANDLER)
        return refuse(no, REFUSAL_UNKNOWN_MESSAGE, "", "%s is not a handler's message", message_get(ret->id)->wire);
    return message_decode(ret->id, bytes, &ret->as, no);
}

/* False once the connection is closed or broken. */
static bool hear(struct connection *connection, struct slice bytes)
{
    struct handler_message message;
    struct refusal no = {0};
    if (!read_message(connection, bytes, &message, &no)) {
        char why[512];
        snprintf(why, sizeof(why), "it sent something that is not a message: %.400s", no.text);
        handler_message_finish(&message);
        break_later(connection, why);
        return false;
    }
    connection->heard(connection->arg, &message);
    return connection->fd >= 0 && !connection->why.code;
}

/* `in` is not touched by what is heard, unless the connection is closed. */
static void hear_all(struct connection *connection)
{
    struct fail why = {0};
    struct slice bytes = {0};
    size_t at = 0, next = 0;
    int found = 0;
    while (at < connection->in.len &&
           (found = connection->is_lines ? find_line(connection, at, &bytes, &next, &why)
                                         : find_frame(connection, at, &bytes, &next, &why)) > 0) {
        if (!hear(connection, bytes))
            return;
        at = next;
    }
    if (found < 0)
        break_later(connection, why.text);
    const size_t left = connection->in.len - at;
    if (at > 0 && left > 0)
        memmove(connection->in.data, connection->in.data + at, left);
    connection->in.len = left;
    connection->scanned = connection->scanned > at ? connection->scanned - at : 0;
    if (left == 0) {
        buffer_finish(&connection->in);
        connection->in = (struct buffer){0};
    }
}

static void take_readable(struct connection *connection)
{
    for (size_t done = 0; done < HANDLER_READ_MAX;) {
        uint8_t *room = buffer_reserve(&connection->in, CHUNK_BYTES);
        if (!room) {
            break_later(connection, "out of memory");
            return;
        }
        ssize_t got = recv(connection->fd, room, CHUNK_BYTES, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            break;
        if (got <= 0) {
            hear_all(connection); /* what it said last counts */
            if (connection->fd >= 0)
                break_closed(connection);
            return;
        }
        connection->in.len += (size_t)got;
        done += (size_t)got;
        if (got < CHUNK_BYTES)
            break;
    }
    hear_all(connection);
}

void connection_drain(struct connection *connection)
{
    if (connection->fd >= 0 && !connection->why.code)
        take_readable(connection);
}

static void ready(void *arg, uint32_t events)
{
    struct connection *connection = arg;
    if (connection->why.code) { /* it is told soon, and not read until then */
        loop_unwatch(connection->loop, &connection->watch);
        loop_unwatch(connection->loop, &connection->out_watch);
        return;
    }
    if (events & EPOLLOUT)
        flush(connection);
    if (!connection->why.code && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
        take_readable(connection);
}

/* ---- life --------------------------------------------------------------------------------- */

bool connection_open(struct connection *connection, struct loop *loop, int fd, int out_fd)
{
    connection->loop = loop;
    connection->fd = fd;
    connection->out_fd = out_fd < 0 ? fd : out_fd;
    connection->why.code = 0;
    connection->soon = (struct loop_soon){.run = tell_broken, .arg = connection};
    connection->watch = loop_watch(loop, fd, EPOLLIN, ready, connection);
    if (!connection->watch)
        connection_close(connection);
    return connection->watch != NULL;
}

void connection_close(struct connection *connection)
{
    if (connection->fd < 0)
        return;
    loop_unpost(connection->loop, &connection->soon);
    loop_unwatch(connection->loop, &connection->watch);
    loop_unwatch(connection->loop, &connection->out_watch);
    if (connection->out_fd != connection->fd)
        close(connection->out_fd);
    connection->out_fd = -1;
    close(take_fd(&connection->fd));
    buffer_finish(&connection->in);
    buffer_finish(&connection->out);
    connection->in = connection->out = (struct buffer){0};
    connection->out_at = connection->scanned = 0;
    connection->wants_out = false;
}
