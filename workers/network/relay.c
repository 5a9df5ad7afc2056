#include "workers/network/relay.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "common/base/cleanup.h"
#include "workers/runtime/fiber.h"

enum { ROUNDS_MAX = 16 }; /* before others have their turn */

struct side {
    int fd;
    struct loop_watch *watch;
    uint32_t wants;
    bool has_ended; /* nothing more comes from here */
    bool is_shut;   /* and the other side has been told */
    size_t from, to;
    uint8_t held[RELAY_BYTES]; /* read here, for the other side */
};

struct relay {
    struct side sides[2];
};

static bool is_later(void) { return errno == EAGAIN || errno == EINTR; }

/* 1: bytes moved; 0: nothing can move now; negative errno. */
static int read_side(struct side *side)
{
    ssize_t got = recv(side->fd, side->held, sizeof(side->held), 0);
    if (got < 0)
        return is_later() ? 0 : -errno;
    side->has_ended = got == 0;
    side->from = 0;
    side->to = (size_t)got;
    return 1;
}

static int write_side(struct side *from, const struct side *to)
{
    ssize_t sent = send(to->fd, from->held + from->from, from->to - from->from, MSG_NOSIGNAL);
    if (sent < 0)
        return is_later() ? 0 : -errno;
    from->from += (size_t)sent;
    return 1;
}

/* Moves what can be moved in one direction; 0 or negative errno. */
static int pump(struct side *from, const struct side *to)
{
    int moved = 1;
    for (int round = 0; round < ROUNDS_MAX && moved > 0; round++)
        moved = from->from < from->to ? write_side(from, to) : from->has_ended ? 0 : read_side(from);
    if (moved < 0)
        return moved;
    if (from->has_ended && from->from == from->to && !from->is_shut) {
        shutdown(to->fd, SHUT_WR); /* one that is gone already says so when it is read */
        from->is_shut = true;
    }
    return 0;
}

static void on_ready(void *arg, uint32_t events)
{
    (void)events;
    fiber_wake(arg);
}

/* A side that waits for nothing is not watched: its hang-up would be told without end. */
static int watch_side(struct side *side, uint32_t wants)
{
    struct loop *loop = fiber_loop();
    if (wants == side->wants)
        return 0;
    side->wants = wants;
    if (wants == 0)
        loop_unwatch(loop, &side->watch);
    else if (side->watch)
        return loop_rewatch(loop, side->watch, wants) ? 0 : -ENOMEM;
    else
        side->watch = loop_watch(loop, side->fd, wants, on_ready, fiber_current());
    return wants == 0 || side->watch ? 0 : -ENOMEM;
}

static int watch_both(struct relay *relay)
{
    int code = 0;
    for (int i = 0; i < 2 && code == 0; i++) {
        const struct side *side = &relay->sides[i], *other = &relay->sides[1 - i];
        uint32_t wants = other->from < other->to ? EPOLLOUT : 0;
        if (!side->has_ended && side->from == side->to)
            wants |= EPOLLIN;
        code = watch_side(&relay->sides[i], wants);
    }
    return code;
}

static int run(struct relay *relay)
{
    struct side *one = &relay->sides[0], *other = &relay->sides[1];
    int code = 0;
    while (code == 0 && !(one->is_shut && other->is_shut)) {
        code = pump(one, other);
        if (code == 0)
            code = pump(other, one);
        if (code == 0 && !(one->is_shut && other->is_shut))
            code = watch_both(relay);
        if (code == 0 && !(one->is_shut && other->is_shut))
            code = await_wake(-1);
    }
    return code;
}

int relay_run(int one, int other)
{
    AUTO_FREE struct relay *relay = calloc(1, sizeof(*relay));
    if (!relay)
        return -ENOMEM;
    relay->sides[0].fd = one;
    relay->sides[1].fd = other;
    int code = run(relay);
    for (int i = 0; i < 2; i++)
        loop_unwatch(fiber_loop(), &relay->sides[i].watch);
    return code;
}
