#include "workers/sandbox/init/listener_make.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "common/base/cleanup.h"

enum { BACKLOG = 128 };

static const char prefix[] = "SLUICE_GRANT_";

static int refuse(const struct listener *listener, struct fail *fail)
{
    return fail_set(fail, -errno, "the listener of grant %s: %s", listener->name, strerror(errno));
}

/* Returns where the value begins. */
static size_t name_variable(const char *name, char *variable)
{
    size_t len = sizeof(prefix) - 1;
    memcpy(variable, prefix, len);
    for (; *name; name++)
        variable[len++] = *name == '-' ? '_' : (char)toupper((unsigned char)*name);
    variable[len++] = '=';
    return len;
}

static int make_unix(const struct listener *listener, int commands, char *value, size_t size)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || (mkdirat(commands, "grant", 0755) < 0 && errno != EEXIST))
        return -1;
    snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/grant/%s", commands, listener->name);
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, BACKLOG) < 0)
        return -1;
    snprintf(value, size, "/run/sluice/grant/%s", listener->name);
    return take_fd(&fd);
}

static int make_tcp(const struct listener *listener, char *value, size_t size)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(listener->port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(address);
    AUTO_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    int bound = bind(fd, (struct sockaddr *)&address, len);
    if (bound < 0 && errno == EADDRINUSE) {
        address.sin_port = 0;
        bound = bind(fd, (struct sockaddr *)&address, len);
    }
    if (bound < 0 || listen(fd, BACKLOG) < 0 || getsockname(fd, (struct sockaddr *)&address, &len) < 0)
        return -1;
    snprintf(value, size, "127.0.0.1:%u", ntohs(address.sin_port));
    return take_fd(&fd);
}

int listener_make(const struct listener *listener, int commands, char *variable, struct fail *fail)
{
    size_t used = name_variable(listener->name, variable);
    char *value = variable + used;
    size_t size = LISTENER_VARIABLE_SIZE - used;
    int fd = listener->is_tcp ? make_tcp(listener, value, size) : make_unix(listener, commands, value, size);
    if (fd < 0)
        refuse(listener, fail);
    return fd;
}

/* NUL-ended strings, as in /proc/PID/environ. */
int listener_tell(int commands, char variables[][LISTENER_VARIABLE_SIZE], size_t count, struct fail *fail)
{
    if (count == 0)
        return 0;
    AUTO_CLOSE int file = openat(commands, "environ", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    bool is_told = file >= 0;
    for (size_t i = 0; is_told && i < count; i++) {
        size_t len = strlen(variables[i]) + 1;
        is_told = write(file, variables[i], len) == (ssize_t)len;
    }
    return is_told ? 0 : fail_set(fail, -errno, "the grants' variables: %s", strerror(errno));
}
