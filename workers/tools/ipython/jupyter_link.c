#include "workers/tools/ipython/jupyter_link.h"

#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "workers/runtime/fiber.h"

enum { SEND_MS = 5000, GREETING = 64, READY_MAX = 255 };
enum { MORE = 1, LONG = 2, COMMAND = 4 }; /* flags of a frame */

void jupyter_link_init(struct jupyter_link *link, size_t message_max)
{
    *link = (struct jupyter_link){.fd = -1, .message_max = message_max};
}

void jupyter_link_finish(struct jupyter_link *link)
{
    cleanup_close(&link->fd);
    buffer_finish(&link->bytes);
    jupyter_link_init(link, link->message_max);
}

/* ---- bytes ------------------------------------------------------------------------------ */

/* 0 once the socket is ready; -EPROTO: not by until_ms. */
static int await_ready(const struct jupyter_link *link, uint32_t events, int64_t until_ms)
{
    int64_t left_ms = until_ms - loop_now_ms();
    int ready = left_ms > 0 ? await_fd(link->fd, events, left_ms) : -ETIMEDOUT;
    return ready > 0 ? 0 : ready == -ETIMEDOUT && loop_now_ms() >= until_ms ? -EPROTO : ready;
}

static int send_all(struct jupyter_link *link, const void *data, size_t len, int64_t until_ms)
{
    int code = link->is_broken || link->fd < 0 ? -EPROTO : 0;
    for (size_t done = 0; code == 0 && done < len;) {
        ssize_t sent = send(link->fd, (const char *)data + done, len - done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0)
            done += (size_t)sent;
        else if (errno == EAGAIN)
            code = await_ready(link, EPOLLOUT, until_ms);
        else if (errno != EINTR)
            code = -EPROTO;
    }
    link->is_broken |= code < 0;
    return code;
}

static int receive_all(struct jupyter_link *link, void *ret, size_t len, int64_t until_ms)
{
    int code = 0;
    for (size_t done = 0; code == 0 && done < len;) {
        ssize_t got = recv(link->fd, (char *)ret + done, len - done, MSG_DONTWAIT);
        if (got > 0)
            done += (size_t)got;
        else if (got < 0 && errno == EAGAIN)
            code = await_ready(link, EPOLLIN, until_ms);
        else if (got == 0 || errno != EINTR)
            code = -EPROTO;
    }
    return code;
}

/* ---- the handshake ------------------------------------------------------------------------ */

/* Signature, version 3.0, mechanism NULL, no server. */
static int greet(struct jupyter_link *link, int64_t until_ms)
{
    const uint8_t ours[GREETING] = {[0] = 0xff, [9] = 0x7f, [10] = 3, [12] = 'N', 'U', 'L', 'L'};
    uint8_t theirs[GREETING];
    int code = send_all(link, ours, sizeof(ours), until_ms);
    if (code == 0)
        code = receive_all(link, theirs, sizeof(theirs), until_ms);
    if (code < 0)
        return code;
    bool is_known = theirs[0] == 0xff && theirs[9] == 0x7f && theirs[10] >= 3 &&
                    memcmp(theirs + 12, ours + 12, 20) == 0;
    return is_known ? 0 : -EPROTO;
}

/* Each says what kind of socket it is; what the other one is does not matter here. */
static int introduce(struct jupyter_link *link, enum jupyter_link_type type, int64_t until_ms)
{
    static const char dealer[] = "\4\51\5READY\13Socket-Type\0\0\0\6DEALER\10Identity\0\0\0\0",
                      sub[] = "\4\31\5READY\13Socket-Type\0\0\0\3SUB";
    uint8_t head[2], ready[READY_MAX];
    int code = type == JUPYTER_SUB ? send_all(link, sub, sizeof(sub) - 1, until_ms)
                                   : send_all(link, dealer, sizeof(dealer) - 1, until_ms);
    if (code == 0)
        code = receive_all(link, head, sizeof(head), until_ms);
    if (code == 0)
        code = head[0] == COMMAND ? receive_all(link, ready, head[1], until_ms) : -EPROTO;
    if (code < 0)
        return code;
    return head[1] >= 6 && memcmp(ready, "\5READY", 6) == 0 ? 0 : -EPROTO;
}

static int shake_hands(struct jupyter_link *link, enum jupyter_link_type type, int64_t until_ms)
{
    static const char everything[] = "\0\1\1"; /* a subscription to all that begins with nothing */
    int code = greet(link, until_ms);
    if (code == 0)
        code = introduce(link, type, until_ms);
    if (code == 0 && type == JUPYTER_SUB)
        code = send_all(link, everything, sizeof(everything) - 1, until_ms);
    return code;
}

int jupyter_link_connect(struct jupyter_link *link, int file, enum jupyter_link_type type,
                         int64_t until_ms)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    jupyter_link_finish(link);
    snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d", file);
    link->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (link->fd < 0)
        return -errno;
    int code = connect(link->fd, (const struct sockaddr *)&address, sizeof(address)) < 0
                   ? -EAGAIN
                   : shake_hands(link, type, until_ms);
    if (code < 0)
        jupyter_link_finish(link);
    return code;
}

/* ---- sending ------------------------------------------------------------------------------ */

bool jupyter_link_send(struct jupyter_link *link, const struct slice *frames, size_t count)
{
    AUTO_BUFFER all = {0};
    for (size_t i = 0; i < count; i++) {
        uint8_t head[9] = {(uint8_t)(LONG | (i + 1 < count ? MORE : 0))};
        for (size_t k = 0; k < 8; k++)
            head[1 + k] = (uint8_t)((uint64_t)frames[i].len >> (56 - 8 * k));
        buffer_append(&all, head, sizeof(head));
        buffer_append(&all, frames[i].data, frames[i].len);
    }
    return !all.failed && send_all(link, all.data, all.len, loop_now_ms() + SEND_MS) == 0;
}

/* ---- receiving ------------------------------------------------------------------------------ */

static void begin_frame(struct jupyter_link *link)
{
    link->in_body = true;
    link->left = link->head[1];
    for (size_t k = 2; k < link->head_len; k++)
        link->left = link->left << 8 | link->head[k];
    if (link->head[0] & COMMAND || link->is_too_long)
        return;
    link->is_too_long = link->left > link->message_max - link->bytes.len ||
                        link->frame_count == JUPYTER_FRAMES_MAX;
    if (link->is_too_long)
        buffer_finish(&link->bytes);
}

/* True after the last one of a message. */
static bool end_frame(struct jupyter_link *link)
{
    link->in_body = false;
    link->head_len = 0;
    if (link->head[0] & COMMAND)
        return false;
    if (!link->is_too_long)
        link->ends[link->frame_count++] = link->bytes.len;
    return !(link->head[0] & MORE);
}

static void take_head(struct jupyter_link *link)
{
    link->head[link->head_len++] = link->chunk[link->at++];
    if (link->head_len == (link->head[0] & LONG ? 9 : 2))
        begin_frame(link);
}

static void take_body(struct jupyter_link *link)
{
    size_t here = link->len - link->at;
    size_t len = link->left < here ? (size_t)link->left : here;
    if (!(link->head[0] & COMMAND) && !link->is_too_long)
        buffer_append(&link->bytes, link->chunk + link->at, len);
    link->at += len;
    link->left -= len;
}

/* True when a message is whole; false when the chunk is used up. */
static bool take_chunk(struct jupyter_link *link)
{
    while (link->at < link->len) {
        if (link->in_body)
            take_body(link);
        else
            take_head(link);
        if (link->in_body && link->left == 0 && end_frame(link))
            return true;
    }
    return false;
}

/* 1, 0: nothing is there, or not in this turn; -EPIPE. */
static int read_chunk(struct jupyter_link *link, size_t *budget)
{
    if (link->fd < 0 || link->is_broken)
        return -EPIPE;
    size_t size = *budget < sizeof(link->chunk) ? *budget : sizeof(link->chunk);
    ssize_t got = size > 0 ? recv(link->fd, link->chunk, size, MSG_DONTWAIT) : -1;
    if (size == 0 || (got < 0 && (errno == EAGAIN || errno == EINTR)))
        return 0;
    link->is_broken = got <= 0;
    link->at = 0;
    link->len = got > 0 ? (size_t)got : 0;
    *budget -= link->len;
    return got > 0 ? 1 : -EPIPE;
}

static void forget_message(struct jupyter_link *link)
{
    buffer_finish(&link->bytes);
    link->frame_count = 0;
    link->is_too_long = link->is_whole = false;
}

int jupyter_link_receive(struct jupyter_link *link, size_t *budget)
{
    if (link->is_whole)
        forget_message(link);
    for (;;) {
        if (take_chunk(link)) {
            link->is_whole = !link->is_too_long && !link->bytes.failed;
            if (link->is_whole)
                return 1;
            link->passed_over++;
            forget_message(link);
            continue;
        }
        int code = read_chunk(link, budget);
        if (code <= 0)
            return code;
    }
}

struct slice jupyter_link_frame(const struct jupyter_link *link, size_t i)
{
    if (i >= link->frame_count)
        return (struct slice){0};
    size_t from = i > 0 ? link->ends[i - 1] : 0;
    return slice_of(link->bytes.data + from, link->ends[i] - from);
}
