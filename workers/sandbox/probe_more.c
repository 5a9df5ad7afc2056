/* The checks that need no namespace. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>

#include "common/cleanup.h"
#include "workers/sandbox/landlock.h"
#include "workers/sandbox/probe.h"

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
    return sysinfo(&ignored) == 0 || errno != EXDEV
               ? fail_set(fail, -EIO, "a filter was set and filters nothing") : 0;
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

/* The directory of our own cgroup in the v2 hierarchy. */
static bool find_cgroup(char *ret, size_t size)
{
    char line[PATH_MAX + 256], point[PATH_MAX] = "", own[PATH_MAX] = "";
    AUTO_FCLOSE FILE *mounts = fopen("/proc/self/mounts", "re");
    while (mounts && !point[0] && fgets(line, sizeof(line), mounts))
        if (sscanf(line, "%*s %4095s cgroup2", point) != 1 || !strstr(line, " cgroup2 "))
            point[0] = '\0';
    AUTO_FCLOSE FILE *cgroups = fopen("/proc/self/cgroup", "re");
    while (cgroups && !own[0] && fgets(line, sizeof(line), cgroups))
        if (sscanf(line, "0::%4095s", own) != 1)
            own[0] = '\0';
    return point[0] && own[0] && snprintf(ret, size, "%s%s", point, own) < (int)size;
}

int probe_try_cgroup(const struct probe_place *place, struct fail *fail)
{
    char path[PATH_MAX], name[2 * PATH_MAX], controllers[256] = "";
    (void)place;
    if (!find_cgroup(path, sizeof(path)))
        return fail_set(fail, -ENOTSUP, "there is no cgroup v2 hierarchy");
    if (access(path, W_OK) < 0)
        return fail_set(fail, -errno, "%.200s: %s", path, strerror(errno));
    snprintf(name, sizeof(name), "%s/cgroup.controllers", path);
    AUTO_FCLOSE FILE *file = fopen(name, "re");
    if (!file || !fgets(controllers, sizeof(controllers), file) || !strstr(controllers, "memory") ||
        !strstr(controllers, "pids"))
        return fail_set(fail, -ENOTSUP, "%.200s has no controllers memory and pids", path);
    return note(fail, path);
}

/* ---- programs ------------------------------------------------------------------------- */

int probe_find_program(const char *name, struct fail *fail)
{
    const char *at = getenv("PATH");
    while (at && *at) {
        char path[PATH_MAX];
        size_t len = strcspn(at, ":");
        int wrote = snprintf(path, sizeof(path), "%.*s/%s", (int)len, at, name);
        if (len && wrote < (int)sizeof(path) && access(path, X_OK) == 0)
            return note(fail, path);
        at += len + (at[len] == ':');
    }
    return fail_set(fail, -ENOENT, "not in PATH");
}

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
