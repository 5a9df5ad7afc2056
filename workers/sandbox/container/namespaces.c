#include "workers/sandbox/container/namespaces.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "workers/sandbox/container/plan.h"
#include "workers/sandbox/container/high_fds.h"

/* ---- who we are --------------------------------------------------------------------- */

static int write_own(const char *path, const char *text, const char *hint, struct fail *fail)
{
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        return fail_set(fail, -errno, "%s%s: %s", path + strlen("/proc/self/"), hint, strerror(errno));
    return 0;
}

int namespaces_take_identity(const struct namespaces_identity *inside, uid_t uid, gid_t gid, struct fail *fail)
{
    char map[64];
    int code = write_own("/proc/self/setgroups", "deny", "", fail);
    snprintf(map, sizeof(map), "%lu %lu 1\n", (unsigned long)inside->uid, (unsigned long)uid);
    if (code == 0)
        code = write_own("/proc/self/uid_map", map, " (are user namespaces restricted on this machine?)", fail);
    snprintf(map, sizeof(map), "%lu %lu 1\n", (unsigned long)inside->gid, (unsigned long)gid);
    return code == 0 ? write_own("/proc/self/gid_map", map, "", fail) : code;
}

/* ---- the fork ----------------------------------------------------------------------- */

pid_t namespaces_clone(unsigned how, int keeps, int cgroup, int *ret_pidfd)
{
    bool is_sibling = how & NAMESPACES_SIBLING; /* the kernel takes our own exit signal then */
    struct clone_args args = {
        .flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_NEWNET |
                 CLONE_PIDFD | (is_sibling ? CLONE_PARENT : 0) | (how & NAMESPACES_CONTAINER ? CLONE_NEWUSER : 0),
        .pidfd = (uint64_t)(uintptr_t)ret_pidfd,
        .exit_signal = is_sibling ? 0 : SIGCHLD,
    };
    return high_fds_clone(&args, keeps, cgroup);
}

static pid_t clone_apart(void)
{
    struct clone_args args = {.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID, .exit_signal = SIGCHLD};
    return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

/* In the clone: the parent reads one byte once it is in order, and none when it is not. */
static void settle(int tell, uid_t uid, gid_t gid)
{
    static const struct namespaces_identity own = {CONTAINER_UID, CONTAINER_UID};
    struct fail fail;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (namespaces_take_identity(&own, uid, gid, &fail) < 0 || write(tell, "", 1) != 1)
        _exit(1);
    close(tell);
}

pid_t namespaces_skip(void)
{
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(0);
    }
    return pid;
}

pid_t namespaces_fork(bool *has_namespaces)
{
    uid_t uid = geteuid();
    gid_t gid = getegid();
    int ends[2];
    char settled;
    *has_namespaces = true;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    AUTO_CLOSE int told = ends[0];
    pid_t pid = clone_apart();
    if (pid == 0)
        settle(ends[1], uid, gid);
    else
        close(ends[1]);
    if (pid == 0 || (pid > 0 && read(told, &settled, 1) == 1))
        return pid;
    if (pid > 0)
        waitpid(pid, NULL, 0);
    *has_namespaces = false;
    return namespaces_skip();
}
