#include "workers/sandbox/spawner/prewarmed.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>

#include "common/base/cleanup.h"
#include "workers/sandbox/cgroup/cgroup_base.h"
#include "workers/sandbox/container/namespaces.h"
#include "workers/sandbox/cgroup/cgroup.h"
#include "workers/sandbox/spawner/zygote.h"
#include "workers/sandbox/init/init.h"
#include "workers/sandbox/backends/landlock/landlock_container.h"
#include "workers/sandbox/container/high_fds.h"

static pid_t clone_one(const struct zygote *zygote, const struct init_setup *setup, int keeps, int cgroup,
                       int *ret_pidfd)
{
    if (zygote)
        return zygote_clone(zygote, keeps, cgroup, ret_pidfd);
    pid_t pid = tier_has_namespaces(setup->spawner->tier)
                    ? namespaces_clone(NAMESPACES_CONTAINER, keeps, cgroup, ret_pidfd)
                    : landlock_container_fork(keeps, cgroup, ret_pidfd);
    return pid < 0 ? -errno : pid;
}

int prewarmed_make(struct prewarmed *prewarmed, const struct zygote *zygote, const struct init_setup *setup,
                   uint32_t group)
{
    int control[2], pidfd = -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0)
        return -errno;
    const struct cgroups *cgroups = &setup->spawner->cgroups;
    bool is_bounded = cgroups_are_there(cgroups);
    AUTO_CLOSE int cgroup = is_bounded ? high_fds_put(cgroup_make(cgroups, group, NULL)) : -1;
    pid_t pid = is_bounded && cgroup < 0 ? cgroup : clone_one(zygote, setup, control[1], cgroup, &pidfd);
    if (pid == 0)
        init_wait(setup, control[1]);
    if (pid < 0) {
        close(control[0]);
        close(control[1]);
        if (is_bounded)
            cgroup_remove(cgroups, group);
        return (int)pid;
    }
    *prewarmed = (struct prewarmed){.pid = pid,
                                    .pidfd = high_fds_put(pidfd),
                                    .control = high_fds_put(control[0]),
                                    .its_end = control[1],
                                    .cgroup = take_fd(&cgroup),
                                    .group = group};
    return 0;
}

struct prewarmed prewarmed_take(struct prewarmed *prewarmed)
{
    struct prewarmed taken = *prewarmed;
    *prewarmed = (struct prewarmed){.is_wanted = true};
    return taken;
}

void prewarmed_drop(struct prewarmed *prewarmed)
{
    if (prewarmed->pid == 0)
        return;
    kill(prewarmed->pid, SIGKILL);
    cleanup_close(&prewarmed->pidfd);
    cleanup_close(&prewarmed->control);
    cleanup_close(&prewarmed->its_end);
    cleanup_close(&prewarmed->cgroup);
    *prewarmed = (struct prewarmed){0};
}
