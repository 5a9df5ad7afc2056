#include "workers/sandbox/container/high_fds.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <sched.h>
#include <stdbool.h>
#include <unistd.h>

#include "workers/sandbox/cgroup/cgroup.h"

int high_fds_put(int fd)
{
    int moved = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FDS_FROM);
    if (moved < 0)
        return fd;
    close(fd);
    return moved;
}

/* Until then whatever the child closes is closed for its parent. Kernels before 5.9 copy all. */
static void leave(void)
{
    if (close_range(HIGH_FDS_FROM, ~0U, CLOSE_RANGE_UNSHARE) < 0 && unshare(CLONE_FILES) < 0)
        _exit(1);
}

pid_t high_fds_clone(const struct clone_args *args, int keeps, int cgroup)
{
    struct clone_args with = *args;
    bool shares = keeps >= 0 && keeps < HIGH_FDS_FROM;
    with.flags |= shares ? CLONE_FILES : 0;
    pid_t pid = cgroup_clone(&with, cgroup);
    if (pid == 0 && shares)
        leave();
    return pid;
}
