#include "workers/sandbox/spare.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>

#include "common/cleanup.h"
#include "workers/sandbox/apart.h"
#include "workers/sandbox/floor.h"
#include "workers/sandbox/init.h"
#include "workers/sandbox/plain_room.h"

static pid_t clone_one(const struct floor *floor, const struct init_setup *setup, int *ret_pidfd)
{
    if (floor)
        return floor_clone(floor, ret_pidfd);
    pid_t pid = tier_is_apart(setup->spawner->tier) ? apart_clone(APART_ROOM, ret_pidfd) : plain_room_fork(ret_pidfd);
    return pid < 0 ? -errno : pid;
}

int spare_make(struct spare *spare, const struct floor *floor, const struct init_setup *setup)
{
    int control[2], pidfd = -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0)
        return -errno;
    pid_t pid = clone_one(floor, setup, &pidfd);
    if (pid == 0)
        init_wait(setup, control[1]);
    close(control[1]);
    if (pid < 0) {
        close(control[0]);
        return (int)pid;
    }
    *spare = (struct spare){.pid = pid, .pidfd = pidfd, .control = control[0]};
    return 0;
}

struct spare spare_take(struct spare *spare)
{
    struct spare taken = *spare;
    *spare = (struct spare){.is_wanted = true};
    return taken;
}

void spare_drop(struct spare *spare)
{
    if (spare->pid == 0)
        return;
    kill(spare->pid, SIGKILL);
    cleanup_close(&spare->pidfd);
    cleanup_close(&spare->control);
    *spare = (struct spare){0};
}
