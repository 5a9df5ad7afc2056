#include "workers/files/open_below.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

int open_below(int dir, const char *path, uint64_t flags, mode_t mode, uint64_t resolve)
{
    struct open_how how = {.flags = flags | O_CLOEXEC, .mode = flags & O_CREAT ? mode & 07777 : 0, .resolve = resolve};
    long fd = -1;
    for (int tries = 0; tries < OPEN_TRIES_MAX; tries++) {
        fd = syscall(SYS_openat2, dir, path[0] ? path : ".", &how, sizeof(how));
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
            break;
    }
    return (int)fd;
}

int open_in_root(int root, const char *path, uint64_t flags, mode_t mode)
{
    return open_below(root, path, flags, mode, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}
