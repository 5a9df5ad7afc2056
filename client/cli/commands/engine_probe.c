/* engine_probe.c - does anything take connections where an engine is said to be? */
#include "client/cli/commands/engine_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/url.h"

static int connect_within(const struct addrinfo *address, int timeout_ms)
{
    AUTO_CLOSE int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, address->ai_addr, address->ai_addrlen) == 0)
        return 0;
    if (errno != EINPROGRESS)
        return -errno;
    struct pollfd ready = {fd, POLLOUT, 0};
    if (poll(&ready, 1, timeout_ms) != 1)
        return -ETIMEDOUT;
    int why = 0;
    socklen_t size = sizeof(why);
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &size);
    return -why;
}

int engine_probe(const char *url, int timeout_ms, struct fail *fail)
{
    struct url parts;
    char port[16];
    if (url_parse(slice_from_str(url), &parts, fail) < 0)
        return -EINVAL;
    snprintf(port, sizeof(port), "%u", parts.port);
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *addresses = NULL;
    int why = getaddrinfo(parts.host, port, &hints, &addresses);
    if (why)
        return fail_set(fail, -EHOSTUNREACH, "%s", gai_strerror(why));
    int failed = -EHOSTUNREACH;
    for (struct addrinfo *at = addresses; at && failed; at = at->ai_next)
        failed = connect_within(at, timeout_ms);
    freeaddrinfo(addresses);
    return failed ? fail_set(fail, failed, "%s", strerror(-failed)) : 0;
}
