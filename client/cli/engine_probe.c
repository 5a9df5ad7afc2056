/* engine_probe.c - does anything take connections where an engine is said to be? */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/cli/up.h"
#include "common/cleanup.h"

/* host and port of http[s]://[user@]host[:port][/path]; [v6] in brackets. */
static bool split_url(const char *url, char *host, size_t host_size, char *port, size_t port_size)
{
    bool is_https = strncmp(url, "https://", 8) == 0;
    if (!is_https && strncmp(url, "http://", 7) != 0)
        return false;
    const char *at = url + (is_https ? 8 : 7);
    size_t len = strcspn(at, "/?#");
    const char *user = memchr(at, '@', len);
    if (user) {
        len -= (size_t)(user + 1 - at);
        at = user + 1;
    }
    const char *close = *at == '[' ? memchr(at, ']', len) : NULL;
    const char *colon = memchr(close ? close : at, ':', len - (size_t)((close ? close : at) - at));
    size_t host_len = close ? (size_t)(close - at - 1) : colon ? (size_t)(colon - at) : len;
    int wrote = snprintf(host, host_size, "%.*s", (int)host_len, close ? at + 1 : at);
    size_t port_len = colon ? len - (size_t)(colon + 1 - at) : 0;
    int wrote_port = colon ? snprintf(port, port_size, "%.*s", (int)port_len, colon + 1)
                           : snprintf(port, port_size, "%s", is_https ? "443" : "80");
    return host_len > 0 && wrote < (int)host_size && wrote_port < (int)port_size;
}

bool engine_url_is_valid(const char *url)
{
    char host[256], port[16];
    return split_url(url, host, sizeof(host), port, sizeof(port));
}

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
    char host[256], port[16];
    if (!split_url(url, host, sizeof(host), port, sizeof(port)))
        return fail_set(fail, -EINVAL, "that is no http or https URL");
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *addresses = NULL;
    int why = getaddrinfo(host, port, &hints, &addresses);
    if (why)
        return fail_set(fail, -EHOSTUNREACH, "%s", gai_strerror(why));
    int failed = -EHOSTUNREACH;
    for (struct addrinfo *at = addresses; at && failed; at = at->ai_next)
        failed = connect_within(at, timeout_ms);
    freeaddrinfo(addresses);
    return failed ? fail_set(fail, failed, "%s", strerror(-failed)) : 0;
}
