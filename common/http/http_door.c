#include "common/http/http_door.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/base/cleanup.h"

enum {
    AT_ONCE = 32,  /* who comes in one turn of the loop, so that those who are in are not kept waiting */
    SILENT_S = 60, /* after which a client that waits is asked whether it is still there, */
    PROBE_S = 15,  /* how often, */
    PROBES = 4     /* and how many times in vain before it is not */
};

/* Where the system has no descriptor left: until another connection ends, or is looked for. */
static bool is_short_of_room(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

static void on_knock(void *arg, uint32_t events)
{
    struct http_door *door = arg;
    (void)events;
    for (int i = 0; i < AT_ONCE && !door->is_shut; i++) {
        struct sockaddr_storage address = {0};
        socklen_t len = sizeof(address);
        const int fd = accept4(door->fd, (struct sockaddr *)&address, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
            door->come(door->arg, fd, (const struct sockaddr *)&address, len);
        else if (is_short_of_room(errno))
            http_door_shut(door);
        else if (errno == EAGAIN)
            return;
    }
}

/* Of a client whose host or network has failed nothing is heard. Those that come have this of the socket. */
static void ask_the_silent(int fd)
{
    static const struct {
        int level, name, value;
    } options[] = {{SOL_SOCKET, SO_KEEPALIVE, 1},
                   {IPPROTO_TCP, TCP_KEEPIDLE, SILENT_S},
                   {IPPROTO_TCP, TCP_KEEPINTVL, PROBE_S},
                   {IPPROTO_TCP, TCP_KEEPCNT, PROBES}};
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(options[i].value));
}

bool http_door_open(struct http_door *door)
{
    const int flags = fcntl(door->fd, F_GETFL);
    if (flags >= 0)
        fcntl(door->fd, F_SETFL, flags | O_NONBLOCK);
    ask_the_silent(door->fd);
    door->watch = loop_watch(door->loop, door->fd, EPOLLIN, on_knock, door);
    return door->watch != NULL;
}

void http_door_close(struct http_door *door)
{
    loop_unwatch(door->loop, &door->watch);
    if (door->fd >= 0)
        close(take_fd(&door->fd));
}

void http_door_shut(struct http_door *door)
{
    door->is_shut = true;
    loop_rewatch(door->loop, door->watch, 0);
}

void http_door_reopen(struct http_door *door)
{
    if (!door->is_shut)
        return;
    door->is_shut = false;
    loop_rewatch(door->loop, door->watch, EPOLLIN);
}
