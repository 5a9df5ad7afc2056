#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/peer_systems/peers.h"

enum { ROOM = 64 << 20 }; /* a batch of the largest tasks, several times */

_Noreturn void die(const char *what, struct slice said)
{
    fprintf(stderr, "peers: %s: %.*s\n", what, SLICE_ARG(said));
    exit(1);
}

static _Noreturn void die_of_errno(const char *what) { die(what, slice_from_str(strerror(errno))); }

void wire_open(struct wire *wire, int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int on = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    *wire = (struct wire){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (wire->fd < 0 || connect(wire->fd, (struct sockaddr *)&address, sizeof(address)) ||
        setsockopt(wire->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
        die_of_errno("cannot connect");
    wire->in = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (wire->in == MAP_FAILED)
        die_of_errno("no memory for a connection");
}

void wire_flush(struct wire *wire)
{
    if (wire->out.failed)
        die("a connection", slice_from_str("out of memory"));
    for (size_t sent = 0; sent < wire->out.len;) {
        ssize_t len = send(wire->fd, wire->out.data + sent, wire->out.len - sent, MSG_NOSIGNAL);
        if (len <= 0)
            die_of_errno("cannot send");
        sent += (size_t)len;
    }
    buffer_clear(&wire->out);
}

static bool fill(struct wire *wire, int flags)
{
    if (wire->len == ROOM)
        die("a connection", slice_from_str("more than fits into its buffer"));
    ssize_t len = recv(wire->fd, wire->in + wire->len, ROOM - wire->len, flags);
    if (len < 0 && errno == EAGAIN)
        return false;
    if (len < 0)
        die_of_errno("cannot receive");
    if (len == 0)
        die("a connection", slice_from_str("the server has closed it"));
    wire->len += (size_t)len;
    return true;
}

struct slice wire_take(struct wire *wire, size_t len)
{
    while (wire->len - wire->at < len)
        fill(wire, 0);
    wire->at += len;
    return slice_of(wire->in + wire->at - len, len);
}

struct slice wire_line(struct wire *wire)
{
    const uint8_t *end;
    while (!(end = memmem(wire->in + wire->at, wire->len - wire->at, "\r\n", 2)))
        fill(wire, 0);
    size_t len = (size_t)(end - (wire->in + wire->at));
    struct slice line = slice_of(wire->in + wire->at, len);
    wire->at += len + 2;
    return line;
}

bool wire_pending(struct wire *wire) { return wire->at < wire->len || fill(wire, MSG_DONTWAIT); }

bool wire_await(struct wire *wire, int timeout_ms)
{
    struct pollfd poller = {.fd = wire->fd, .events = POLLIN};
    return wire->at < wire->len || poll(&poller, 1, timeout_ms) > 0;
}

void wire_forget(struct wire *wire)
{
    if (wire->at < wire->len)
        memmove(wire->in, wire->in + wire->at, wire->len - wire->at);
    wire->len -= wire->at;
    wire->at = 0;
}
