#include "workers/network/dial.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/base/cleanup.h"
#include "workers/runtime/fiber.h"
#include "common/loop/loop_now.h"
#include "workers/runtime/offload.h"

enum { ADDRESSES_MAX = 8, RETRY_MS = 20 };

struct addresses {
    const struct grant *grant;
    int flags; /* of getaddrinfo */
    struct sockaddr_storage items[ADDRESSES_MAX];
    socklen_t lens[ADDRESSES_MAX];
    size_t count;
};

/* For a thread of its own: a name server may be slow to answer. */
static int find_addresses(void *arg, const atomic_bool *stop)
{
    struct addresses *addresses = arg;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | addresses->flags};
    struct addrinfo *found;
    char port[8];
    (void)stop;
    snprintf(port, sizeof(port), "%u", addresses->grant->port);
    if (getaddrinfo(addresses->grant->host, port, &hints, &found) != 0)
        return -EHOSTUNREACH;
    for (struct addrinfo *at = found; at && addresses->count < ADDRESSES_MAX; at = at->ai_next) {
        memcpy(&addresses->items[addresses->count], at->ai_addr, at->ai_addrlen);
        addresses->lens[addresses->count++] = at->ai_addrlen;
    }
    freeaddrinfo(found);
    return addresses->count > 0 ? 0 : -EHOSTUNREACH;
}

static int resolve(const struct grant *grant, struct addresses *ret, struct fail *fail)
{
    atomic_bool never = false;
    *ret = (struct addresses){.grant = grant, .flags = AI_NUMERICHOST};
    int code = find_addresses(ret, &never);
    if (code == 0)
        return 0;
    ret->flags = 0;
    code = offload_run(find_addresses, ret, fail);
    return code < 0 ? fail_set(fail, code, "no address of %s is known", grant->host) : 0;
}

static int await_connected(int fd)
{
    int error = 0;
    socklen_t len = sizeof(error);
    int code = await_fd(fd, EPOLLOUT, DIAL_MS);
    if (code < 0)
        return code;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 ? -errno : -error;
}

/* A Unix listener whose queue is full says EAGAIN instead of letting us wait. */
static int try_address(const struct sockaddr *address, socklen_t len)
{
    int64_t until_ms = loop_now_ms() + DIAL_MS;
    AUTO_CLOSE int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int code;
    while ((code = connect(fd, address, len) < 0 ? -errno : 0) == -EAGAIN) {
        if (loop_now_ms() >= until_ms)
            return -ETIMEDOUT;
        if ((code = await_sleep(RETRY_MS)) < 0)
            return code;
    }
    if (code == -EINPROGRESS)
        code = await_connected(fd);
    return code < 0 ? code : take_fd(&fd);
}

static int dial_unix(const struct grant *grant)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, grant->host, strlen(grant->host) + 1);
    return try_address((struct sockaddr *)&address, sizeof(address));
}

static int dial_tcp(const struct grant *grant, struct fail *fail)
{
    struct addresses addresses;
    int code = resolve(grant, &addresses, fail);
    if (code < 0)
        return code;
    for (size_t i = 0; i < addresses.count; i++) {
        code = try_address((struct sockaddr *)&addresses.items[i], addresses.lens[i]);
        if (code >= 0 || code == -ECANCELED)
            return code;
    }
    return code;
}

int dial(const struct grant *grant, struct fail *fail)
{
    int code = grant->is_tcp ? dial_tcp(grant, fail) : dial_unix(grant);
    return code < 0 ? fail_set(fail, code, "%s: %s", grant->host, strerror(-code)) : code;
}
