#include "workers/sandbox/proto/wire.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
    char bytes[CMSG_SPACE(sizeof(int) * WIRE_FDS_MAX)];
    struct cmsghdr align;
};

static void put_fds(struct msghdr *packet, union control *control, const int *fds, size_t fd_count)
{
    packet->msg_control = control->bytes;
    packet->msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
    struct cmsghdr *rights = CMSG_FIRSTHDR(packet);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
    memcpy(CMSG_DATA(rights), fds, sizeof(int) * fd_count);
}

static int send_packet(int socket, const struct msghdr *packet, int flags)
{
    ssize_t sent;
    do
        sent = sendmsg(socket, packet, MSG_NOSIGNAL | flags);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : 0;
}

int wire_try_send(int socket, const struct wire_head *head)
{
    struct iovec part = {(void *)(uintptr_t)head, sizeof(*head)};
    return send_packet(socket, &(struct msghdr){.msg_iov = &part, .msg_iovlen = 1}, MSG_DONTWAIT);
}

int wire_send(int socket, const struct wire_head *head, struct slice text, const int *fds, size_t fd_count)
{
    if (text.len > WIRE_TEXT_MAX || fd_count > WIRE_FDS_MAX)
        return -EMSGSIZE;
    struct iovec parts[2] = {
        {(void *)(uintptr_t)head, sizeof(*head)},
        {(void *)(uintptr_t)text.data, text.len},
    };
    struct msghdr packet = {.msg_iov = parts, .msg_iovlen = text.len ? 2 : 1};
    union control control = {0};
    if (fd_count > 0)
        put_fds(&packet, &control, fds, fd_count);
    return send_packet(socket, &packet, 0);
}

static void take_fds(struct msghdr *packet, struct wire_message *ret)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(packet); c; c = CMSG_NXTHDR(packet, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(ret->fds, CMSG_DATA(c), sizeof(int) * count);
        ret->fd_count = count;
    }
}

int wire_receive(int socket, struct wire_message *ret)
{
    struct iovec parts[2] = {{&ret->head, sizeof(ret->head)}, {ret->text, WIRE_TEXT_MAX}};
    union control control;
    struct msghdr packet = {
        .msg_iov = parts, .msg_iovlen = 2, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
    ssize_t got;
    do
        got = recvmsg(socket, &packet, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    ret->fd_count = 0;
    if (got <= 0)
        return got == 0 || errno == ECONNRESET ? 0 : -errno;
    take_fds(&packet, ret);
    ret->is_short = packet.msg_flags & MSG_CTRUNC;
    if ((size_t)got < sizeof(ret->head) || packet.msg_flags & MSG_TRUNC) {
        wire_close_fds(ret);
        return -EMSGSIZE;
    }
    ret->text_len = (size_t)got - sizeof(ret->head);
    ret->text[ret->text_len] = '\0';
    if (ret->is_short)
        wire_close_fds(ret);
    return 1;
}

void wire_close_fds(struct wire_message *message)
{
    for (size_t i = 0; i < message->fd_count; i++)
        if (message->fds[i] >= 0)
            close(message->fds[i]);
    message->fd_count = 0;
}

const char *wire_next_string(const struct wire_message *message, size_t *from)
{
    if (*from >= message->text_len)
        return NULL;
    const char *string = message->text + *from;
    *from += strlen(string) + 1;
    return string;
}
