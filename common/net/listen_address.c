#include "common/net/listen_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/cleanup.h"

enum { BACKLOG = 1024 };

static int reject(struct fail *fail, const char *option, const char *text)
{
    return fail_set(fail, -EINVAL, "%s %.200s: not HOST:PORT, or a port of 127.0.0.1, with a port in 0-65535", option,
                    text);
}

static bool is_port(const char *text)
{
    const size_t len = strlen(text);
    return len > 0 && len <= 5 && strspn(text, "0123456789") == len && atoi(text) <= UINT16_MAX;
}

bool listen_address_split(const char *text, char ret_host[LISTEN_HOST_MAX + 1], const char **ret_port)
{
    const char *colon = strrchr(text, ':');
    size_t len = colon ? (size_t)(colon - text) : 0;
    *ret_port = colon ? colon + 1 : text;
    if (!is_port(*ret_port))
        return false;
    if (!colon || len == 0)
        return snprintf(ret_host, LISTEN_HOST_MAX + 1, "127.0.0.1") > 0;
    if (len > 2 && text[0] == '[' && text[len - 1] == ']') {
        text++;
        len -= 2;
    }
    if (len > LISTEN_HOST_MAX || strcspn(text, " \t\n[]/@") < len)
        return false;
    snprintf(ret_host, LISTEN_HOST_MAX + 1, "%.*s", (int)len, text);
    return true;
}

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return (ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24) == 127;
    return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

static bool is_any(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return ((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr == htonl(INADDR_ANY);
    return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

static int listen_at(const struct addrinfo *at)
{
    static const int yes = 1;
    AUTO_CLOSE int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) < 0 ||
        bind(fd, at->ai_addr, at->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0)
        return -errno;
    return take_fd(&fd);
}

static int say_base(const char *host, struct listen_address *ret)
{
    struct sockaddr_storage bound = {0};
    socklen_t size = sizeof(bound);
    if (getsockname(ret->fd, (struct sockaddr *)&bound, &size) < 0)
        return -errno;
    const uint16_t port = bound.ss_family == AF_INET ? ((struct sockaddr_in *)&bound)->sin_port
                                                     : ((struct sockaddr_in6 *)&bound)->sin6_port;
    const bool is_bracketed = strchr(host, ':') != NULL;
    ret->is_loopback = is_loopback((struct sockaddr *)&bound);
    ret->is_any = is_any((struct sockaddr *)&bound);
    snprintf(ret->base, sizeof(ret->base), "%s%s%s:%u", is_bracketed ? "[" : "", host, is_bracketed ? "]" : "",
             ntohs(port));
    return 0;
}

/* ---- Unix sockets ------------------------------------------------------------------------------ */

/* One that a program left behind, which nobody listens at any more. */
static void remove_dead(const struct sockaddr_un *address)
{
    struct stat at;
    AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && lstat(address->sun_path, &at) == 0 && S_ISSOCK(at.st_mode) &&
        connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 && errno == ECONNREFUSED)
        unlink(address->sun_path);
}

static int listen_unix(const char *path, struct listen_address *ret)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (snprintf(address.sun_path, sizeof(address.sun_path), "%s", path) >= (int)sizeof(address.sun_path))
        return -ENAMETOOLONG;
    remove_dead(&address);
    AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const mode_t mask = umask(0177);
    const bool is_bound = fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0;
    const int error = errno;
    umask(mask);
    if (!is_bound)
        return -error;
    if (listen(fd, BACKLOG) < 0)
        return -errno;
    ret->is_unix = true;
    snprintf(ret->base, sizeof(ret->base), "unix:%s", path);
    ret->fd = take_fd(&fd);
    return 0;
}

/* ---- all ------------------------------------------------------------------------------------------ */

static int listen_inet(const char *option, const char *text, struct listen_address *ret, struct fail *fail)
{
    char host[LISTEN_HOST_MAX + 1];
    const char *port;
    struct addrinfo *found = NULL;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    if (!listen_address_split(text, host, &port))
        return reject(fail, option, text);
    const int why = getaddrinfo(host, port, &hints, &found);
    if (why)
        return fail_set(fail, -EINVAL, "%s %.200s: %s", option, text, gai_strerror(why));
    ret->fd = listen_at(found);
    freeaddrinfo(found);
    const int code = ret->fd < 0 ? ret->fd : say_base(host, ret);
    return code == 0 ? 0 : fail_set(fail, code, "%s %.200s: %s", option, text, strerror(-code));
}

int listen_address_open(const char *option, const char *text, struct listen_address *ret, struct fail *fail)
{
    *ret = (struct listen_address){.fd = -1};
    if (strncmp(text, "unix:", 5) != 0)
        return listen_inet(option, text, ret, fail);
    const int code = listen_unix(text + 5, ret);
    return code == 0 ? 0 : fail_set(fail, code, "%s %.200s: %s", option, text, strerror(-code));
}
