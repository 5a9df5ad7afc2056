/* The checks that need no namespace. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>

#include "common/base/cleanup.h"
#include "workers/sandbox/cgroup/cgroup.h"
#include "workers/sandbox/cgroup/cgroup_base.h"
#include "workers/sandbox/proto/usage.h"
#include "workers/sandbox/container/landlock.h"
#include "workers/sandbox/probe/probe.h"

static int refuse(struct fail *fail, const char *what)
{
    return fail_set(fail, -errno, "%s: %s", what, strerror(errno));
}

static int note(struct fail *fail, const char *text)
{
    fail_set(fail, 0, "%s", text);
    return 0;
}

/* A filter that answers one harmless call with an error, and then that call. */
int probe_try_seccomp(const struct probe_place *place, struct fail *fail)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_sysinfo, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXDEV),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(code) / sizeof(*code), code};
    struct sysinfo ignored;
    (void)place;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return refuse(fail, "no_new_privs");
    if (syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
        return refuse(fail, "setting one");
    return sysinfo(&ignored) == 0 || errno != EXDEV ? fail_set(fail, -EIO, "a filter was set and filters nothing") : 0;
}

/* Everything is given up; then a file is made and our parent is asked after. */
int probe_try_landlock(const struct probe_place *place, struct fail *fail)
{
    char text[32];
    int abi = landlock_abi();
    if (abi < 0)
        return fail_set(fail, abi, "asking for it: %s", strerror(-abi));
    if (abi < LANDLOCK_ABI_NEEDED)
        return fail_set(fail, -EPROTO, "ABI %d, which cannot hold back signals as ABI %d does", abi,
                        LANDLOCK_ABI_NEEDED);
    AUTO_CLOSE int rules = landlock_begin(fail);
    int code = rules < 0 ? rules : landlock_apply(rules, fail);
    if (code < 0)
        return code;
    AUTO_CLOSE int made = openat(place->directory, "landlock", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (made >= 0 || errno != EACCES || kill(getppid(), 0) == 0)
        return fail_set(fail, -EIO, "a ruleset was set and refuses nothing");
    snprintf(text, sizeof(text), "ABI %d", abi);
    return note(fail, text);
}

/* ---- cgroups -------------------------------------------------------------------------- */

/* More than its group may have: it should not live to say so. */
static _Noreturn void take_too_much(void)
{
    enum { MUCH = 64 << 20 };
    char *much = mmap(NULL, MUCH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t at = 0; much != MAP_FAILED && at < MUCH; at += 4096)
        ((volatile char *)much)[at] = 1;
    _exit(0);
}

static int expect_killed(int group, struct usage *usage, const struct cgroup_limits *limits, struct fail *fail)
{
    int status = 0;
    struct clone_args args = {.exit_signal = SIGCHLD};
    pid_t pid = cgroup_clone(&args, group);
    if (pid == 0)
        take_too_much();
    if (pid < 0)
        return refuse(fail, "a process in a group of its own");
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status) || cgroup_look(group, limits, usage) != LIMIT_MEMORY)
        return fail_set(fail, -EIO, "a process took more memory than its group may have, and lives");
    return 0;
}

int probe_try_cgroup(const struct probe_place *place, struct fail *fail)
{
    static struct usage usage;
    struct cgroup_limits limits = {.memory_mib = 1, .processes = 1};
    if (!cgroups_are_there(place->cgroups))
        return place->cgroups ? fail_set(fail, place->cgroups->why.code, "%s", place->cgroups->why.text)
                              : fail_set(fail, -ENOTSUP, "not asked for");
    AUTO_CLOSE int group = cgroup_make(place->cgroups, 0, fail);
    int code = group < 0 ? group : cgroup_bound(group, &limits, fail);
    if (code == 0)
        code = expect_killed(group, &usage, &limits, fail);
    if (group >= 0 && !cgroup_remove(place->cgroups, 0) && code == 0)
        code = fail_set(fail, -EBUSY, "a group cannot be removed");
    return code < 0 ? code : note(fail, place->cgroups->path);
}

/* ---- programs ------------------------------------------------------------------------- */

int probe_try_fuse_overlayfs(const struct probe_place *place, struct fail *fail)
{
    (void)place;
    return probe_find_program("fuse-overlayfs", fail);
}

int probe_try_bwrap(const struct probe_place *place, struct fail *fail)
{
    (void)place;
    return probe_find_program("bwrap", fail);
}
