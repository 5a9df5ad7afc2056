#include "client/cli/session/session_post.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/url.h"

enum { QUIET_S = 10, ANSWER_MAX = 65536 };

static int refuse_errno(struct fail *fail, const struct url *url)
{
    const int code = errno == EAGAIN ? ETIMEDOUT : errno;
    return fail_set(fail, -code, "%s: %s", url->host, strerror(code));
}

static int connect_to(const struct url *url, struct fail *fail)
{
    char port[16];
    const struct timeval quiet = {.tv_sec = QUIET_S};
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *addresses = NULL;
    snprintf(port, sizeof(port), "%u", url->port);
    const int why = getaddrinfo(url->host, port, &hints, &addresses);
    if (why)
        return fail_set(fail, -EHOSTUNREACH, "%s: %s", url->host, gai_strerror(why));
    int fd = -1;
    for (const struct addrinfo *at = addresses; at && fd < 0; at = at->ai_next) {
        fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &quiet, sizeof(quiet)) < 0 ||
            setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &quiet, sizeof(quiet)) < 0 ||
            connect(fd, at->ai_addr, at->ai_addrlen) < 0) {
            refuse_errno(fail, url);
            if (fd >= 0)
                close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(addresses);
    return fd < 0 ? fail->code : fd;
}

static bool send_all(int fd, struct slice bytes)
{
    while (bytes.len > 0) {
        const ssize_t sent = send(fd, bytes.data, bytes.len, MSG_NOSIGNAL);
        if (sent < 0)
            return false;
        bytes = slice_of(bytes.data + sent, bytes.len - (size_t)sent);
    }
    return true;
}

static bool read_all(int fd, struct buffer *ret)
{
    char bytes[4096];
    ssize_t len = 0;
    while (ret->len < ANSWER_MAX && (len = recv(fd, bytes, sizeof(bytes), 0)) > 0)
        buffer_append(ret, bytes, (size_t)len);
    return ret->len > 0 && len >= 0;
}

/* The connection is closed behind it, so that its end is the body's. */
static bool write_request(struct buffer *ret, const struct url *url, const char *path, const char *json)
{
    const char *own = strchr(strstr(url->base, "://") + 3, '/');
    return buffer_printf(ret,
                         "POST %s%s HTTP/1.1\r\nHost: %s:%u\r\nConnection: close\r\nContent-Type: application/json\r\n"
                         "Content-Length: %zu\r\n\r\n%s",
                         own ? own : "", path, url->host, url->port, strlen(json), json);
}

static int take_answer(struct buffer *raw, struct buffer *answer, struct fail *fail)
{
    int status;
    buffer_append(raw, "", 1);
    const char *text = (const char *)raw->data, *body = raw->failed ? NULL : strstr(text, "\r\n\r\n");
    if (!body || sscanf(text, "HTTP/1.%*d %d", &status) != 1)
        return fail_set(fail, -EPROTO, "what answers there speaks no HTTP");
    return buffer_append_str(answer, body + 4) ? status : fail_memory(fail);
}

int session_post(const char *url, const char *path, const char *json, struct buffer *answer, struct fail *fail)
{
    struct url to;
    AUTO_BUFFER request = {0}, raw = {0};
    if (url_parse(slice_from_str(url), &to, fail) < 0)
        return fail->code;
    if (strncmp(to.base, "https:", 6) == 0)
        return fail_set(fail, -EPROTONOSUPPORT, "this command speaks no TLS: curl -d '%s' URL%s does", json, path);
    AUTO_CLOSE int fd = connect_to(&to, fail);
    if (fd < 0)
        return fail->code;
    if (!write_request(&request, &to, path, json))
        return fail_memory(fail);
    if (!send_all(fd, buffer_peek(&request)) || !read_all(fd, &raw))
        return refuse_errno(fail, &to);
    return take_answer(&raw, answer, fail);
}
