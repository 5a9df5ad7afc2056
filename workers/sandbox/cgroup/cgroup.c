/* One sandbox's group: made, entered, looked at, removed. */
#include "workers/sandbox/cgroup/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/sched.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "workers/sandbox/cgroup/cgroup_files.h"
#include "workers/sandbox/proto/usage.h"

enum {
    OWN_MIB = 16,      /* the first process, the tools' output and the kernel's bookkeeping; more than they take */
    OWN_PROCESSES = 9, /* the first process and what it can always start (confine.c) */
};

/* ---- files of a group --------------------------------------------------------------- */

/* False where the kernel has no such file, or the group is gone. */
static bool read_number(int group, const char *name, uint64_t *ret)
{
    char text[32];
    bool is_there = cgroup_read(group, name, text, sizeof(text));
    *ret = strtoull(text, NULL, 10);
    return is_there;
}

/* "key 123" at the start of a line; 0 where there is none. */
static uint64_t find_number(const char *text, const char *key)
{
    size_t len = strlen(key);
    for (; text && *text; text = strchr(text, '\n'), text += text != NULL)
        if (strncmp(text, key, len) == 0 && text[len] == ' ')
            return strtoull(text + len, NULL, 10);
    return 0;
}

static void name_container(char ret[32], uint32_t number) { snprintf(ret, 32, "sandbox-%u", number); }

/* ---- its life ----------------------------------------------------------------------- */

bool cgroup_is_memory(const char *directory)
{
    struct statfs on;
    return statfs(directory, &on) == 0 && on.f_type == TMPFS_MAGIC;
}

/* What swaps would not count. A kernel without swap has no such file, and one before 5.13 no cgroup.kill. */
int cgroup_bound(int group, const struct cgroup_limits *limits, struct fail *fail)
{
    char memory[32], processes[32];
    snprintf(memory, sizeof(memory), "%llu",
             (unsigned long long)(limits->memory_mib + limits->disk_mib + OWN_MIB) << 20);
    snprintf(processes, sizeof(processes), "%llu", (unsigned long long)limits->processes + OWN_PROCESSES);
    const struct {
        const char *name, *text;
        bool is_needed;
    } files[] = {{"memory.max", memory, true},
                 {"memory.swap.max", "0", false},
                 {"memory.oom.group", "1", true},
                 {"pids.max", processes, true}};
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        int code = cgroup_write(group, files[i].name, files[i].text);
        if (code < 0 && (files[i].is_needed || code != -ENOENT))
            return fail_set(fail, code, "cgroup: %s: %s", files[i].name, strerror(-code));
    }
    return 0;
}

int cgroup_make(const struct cgroups *cgroups, uint32_t number, struct fail *fail)
{
    char name[32];
    name_container(name, number);
    if (mkdirat(cgroups->ours, name, 0755) < 0)
        return fail_set(fail, -errno, "cgroup: %.200s/%s: %s", cgroups->path, name, strerror(errno));
    int group = openat(cgroups->ours, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (group >= 0)
        return group;
    int code = fail_set(fail, -errno, "cgroup: %s: %s", name, strerror(errno));
    unlinkat(cgroups->ours, name, AT_REMOVEDIR);
    return code;
}

void cgroup_kill(int group)
{
    if (group >= 0)
        cgroup_write(group, "cgroup.kill", "1");
}

bool cgroup_remove(const struct cgroups *cgroups, uint32_t number)
{
    char name[32];
    name_container(name, number);
    if (unlinkat(cgroups->ours, name, AT_REMOVEDIR) == 0 || errno != EBUSY)
        return true;
    AUTO_CLOSE int group = openat(cgroups->ours, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cgroup_kill(group);
    return unlinkat(cgroups->ours, name, AT_REMOVEDIR) == 0 || errno != EBUSY;
}

/* ---- in it from birth --------------------------------------------------------------- */

int cgroup_open_door(int group) { return openat(group, "cgroup.procs", O_WRONLY | O_CLOEXEC); }
int cgroup_join(int door) { return write(door, "0", 1) == 1 ? 0 : -errno; }

/* Kernels before 5.7 do not know the flag; moving costs milliseconds, which is why it is not the first way. */
static pid_t clone_and_move(const struct clone_args *args, int group)
{
    pid_t pid = (pid_t)syscall(SYS_clone3, args, CLONE_ARGS_SIZE_VER0);
    if (pid != 0)
        return pid;
    AUTO_CLOSE int door = cgroup_open_door(group);
    if (door < 0 || cgroup_join(door) < 0)
        _exit(1);
    return 0;
}

/* Filters that cannot look into the arguments of clone3 forbid it, and of clone what they see there. */
static pid_t clone_outside(const struct clone_args *args)
{
    pid_t pid = (pid_t)syscall(SYS_clone3, args, sizeof(*args));
    if (pid >= 0 || errno != ENOSYS)
        return pid;
    return (pid_t)syscall(SYS_clone, (unsigned long)(args->flags | args->exit_signal), NULL,
                          (void *)(uintptr_t)args->pidfd, NULL, 0);
}

/* The namespace is made after the move: it begins where its maker is. */
pid_t cgroup_clone(const struct clone_args *args, int group)
{
    struct clone_args into = *args;
    if (group < 0)
        return clone_outside(args);
    into.flags = (args->flags & ~(uint64_t)CLONE_NEWCGROUP) | CLONE_INTO_CGROUP;
    into.cgroup = (uint64_t)group;
    pid_t pid = (pid_t)syscall(SYS_clone3, &into, sizeof(into));
    if (pid < 0 && (errno == E2BIG || errno == EINVAL)) {
        into.flags &= ~(uint64_t)CLONE_INTO_CGROUP;
        pid = clone_and_move(&into, group);
    }
    if (pid == 0 && (args->flags & CLONE_NEWCGROUP) && unshare(CLONE_NEWCGROUP) < 0)
        _exit(1);
    return pid;
}

/* ---- what it uses ------------------------------------------------------------------- */

static void see_processes(int group, const struct cgroup_limits *limits, struct usage *usage)
{
    uint64_t now, most;
    char events[256];
    if (!read_number(group, "pids.current", &now))
        return;
    if (!read_number(group, "pids.peak", &most) || most < now) /* Linux 6.1 */
        most = now;
    now -= now > 0; /* the first process is ours */
    most -= most > 0;
    usage_peak(&usage->processes, most);
    usage_see(usage, LIMIT_PROCESSES, now >= limits->processes);
    bool was_beyond = most >= limits->processes ||
                      (cgroup_read(group, "pids.events", events, sizeof(events)) && find_number(events, "max") > 0);
    if (was_beyond && atomic_load(&usage->breaches[LIMIT_PROCESSES]) == 0) /* between two looks */
        atomic_store(&usage->breaches[LIMIT_PROCESSES], 1);
}

static uint64_t less(uint64_t from, uint64_t what) { return from > what ? from - what : 0; }

/* What the kernel gives back when it is asked for it, and what is written: counted, but no limit is lost to it. */
static bool read_aside(int group, uint64_t disk, uint64_t *ret)
{
    char stat[8192];
    if (!cgroup_read(group, "memory.stat", stat, sizeof(stat)))
        return false;
    *ret = less(find_number(stat, "file"), find_number(stat, "shmem")) + find_number(stat, "slab_reclaimable") + disk;
    return true;
}

/* The wall is around memory and what is written to it; the limit of memory alone is looked at here: true beyond it. */
static bool see_memory(int group, const struct cgroup_limits *limits, struct usage *usage)
{
    uint64_t now, most, aside, wall = (limits->memory_mib + OWN_MIB) << 20;
    uint64_t disk = limits->disk_mib > 0 ? atomic_load(&usage->disk_now) : 0;
    if (!read_number(group, "memory.current", &now))
        return false;
    if (!read_number(group, "memory.peak", &most)) /* Linux 5.19 */
        most = now;
    bool is_higher = most > atomic_load(&usage->kernel_peak);
    bool is_beyond = limits->disk_mib > 0 && less(now, disk) > wall;
    if ((!is_higher && !is_beyond) || !read_aside(group, disk, &aside))
        return false; /* nothing new: reading all that it has is the dear part */
    uint64_t before = atomic_exchange(&usage->aside, aside);
    atomic_store(&usage->kernel_peak, most);
    if (is_higher)
        usage_peak(&usage->memory_kib, less(most, before > aside ? before : aside) >> 10);
    return is_beyond && less(now, aside) > wall;
}

/* `oom` is counted where the limit is, `oom_kill` where the killed are: one without the other,
 * and it was the node's. */
static bool was_killed(int group, struct usage *usage)
{
    char events[512];
    if (!cgroup_read(group, "memory.events", events, sizeof(events)) || find_number(events, "oom_kill") == 0)
        return false;
    bool is_own = find_number(events, "oom") > 0;
    atomic_store(&usage->is_starved, !is_own);
    return is_own;
}

enum limit_id cgroup_look(int group, const struct cgroup_limits *limits, struct usage *usage)
{
    see_processes(group, limits, usage);
    bool is_beyond = see_memory(group, limits, usage);
    is_beyond |= was_killed(group, usage);
    usage_see(usage, LIMIT_MEMORY, is_beyond);
    return is_beyond ? LIMIT_MEMORY : LIMIT_COUNT;
}
