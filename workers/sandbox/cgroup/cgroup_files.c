#include "workers/sandbox/cgroup/cgroup_files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"

int cgroup_write(int group, const char *name, const char *text)
{
    AUTO_CLOSE int fd = openat(group, name, O_WRONLY | O_CLOEXEC);
    return fd < 0 || write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

bool cgroup_read(int group, const char *name, char *ret, size_t size)
{
    AUTO_CLOSE int fd = openat(group, name, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, ret, size - 1);
    ret[got > 0 ? got : 0] = '\0';
    return got > 0;
}
