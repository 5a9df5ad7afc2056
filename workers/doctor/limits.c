/* The limits that decide how many sandboxes a node holds, and what is enough for 200 of them. */
#include "workers/doctor/limits.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include "workers/doctor/doctor.h"

static void add(struct doctor_report *report, struct doctor_limit limit)
{
    limit.is_ok = !limit.is_known || limit.value >= limit.wanted;
    report->limits[report->limit_count++] = limit;
}

static void add_rlimit(struct doctor_report *report, const char *name, int what, uint64_t wanted, const char *use,
                       const char *remedy)
{
    struct rlimit now;
    bool known = getrlimit((__rlimit_resource_t)what, &now) == 0;
    add(report, (struct doctor_limit){.name = name,
                                      .unit = "",
                                      .is_known = known,
                                      .value = known ? now.rlim_max : 0,
                                      .wanted = wanted,
                                      .use = use,
                                      .remedy = remedy});
}

static void add_setting(struct doctor_report *report, const char *name, int64_t value, uint64_t wanted, const char *use,
                        const char *remedy)
{
    add(report, (struct doctor_limit){.name = name,
                                      .unit = "",
                                      .is_known = value >= 0,
                                      .value = value < 0 ? 0 : (uint64_t)value,
                                      .wanted = wanted,
                                      .use = use,
                                      .remedy = remedy});
}

static void add_space(struct doctor_report *report, const char *path, const char *free_name, const char *inodes_name,
                      uint64_t wanted_mib, const char *use, const char *remedy)
{
    struct statvfs disk;
    bool known = statvfs(path, &disk) == 0;
    uint64_t mib = known ? (uint64_t)disk.f_bavail * disk.f_frsize >> 20 : 0;
    add(report, (struct doctor_limit){.name = free_name,
                                      .unit = " MiB",
                                      .is_known = known,
                                      .value = mib,
                                      .wanted = wanted_mib,
                                      .use = use,
                                      .remedy = remedy});
    if (known && disk.f_files > 0) /* some file systems do not count them */
        add(report, (struct doctor_limit){.name = inodes_name,
                                          .unit = "",
                                          .is_known = true,
                                          .value = disk.f_favail,
                                          .wanted = 100000,
                                          .use = use,
                                          .remedy = remedy});
}

void doctor_read_limits(struct doctor_report *report)
{
    const struct kernel_info *kernel = &report->probe.kernel;
    static const char *const nested = "sandboxes, and all else of this user";
    static const char *const sysctl = "as root: sysctl -w NAME=63414, and in /etc/sysctl.d to stay";
    report->limit_count = 0;
    add_rlimit(report, "RLIMIT_NOFILE", RLIMIT_NOFILE, 4096, "descriptors: some 10 for each sandbox",
               "ulimit -Hn, LimitNOFILE= of the unit, or nofile in /etc/security/limits.d");
    add_rlimit(report, "RLIMIT_NPROC", RLIMIT_NPROC, 4096, "processes of this user on the node",
               "ulimit -Hu, TasksMax= of the unit, or nproc in /etc/security/limits.d");
    add_setting(report, "kernel.pid_max", kernel->pid_max, 32768, "processes of the node",
                "as root: sysctl -w kernel.pid_max=4194304");
    add_setting(report, "user.max_user_namespaces", kernel->max_user, 1000, nested, sysctl);
    add_setting(report, "user.max_mnt_namespaces", kernel->max_mnt, 1000, nested, sysctl);
    add_setting(report, "user.max_pid_namespaces", kernel->max_pid, 1000, nested, sysctl);
    add_setting(report, "user.max_ipc_namespaces", kernel->max_ipc, 1000, nested, sysctl);
    add_setting(report, "user.max_uts_namespaces", kernel->max_uts, 1000, nested, sysctl);
    add_setting(report, "user.max_cgroup_namespaces", kernel->max_cgroup, 1000, nested, sysctl);
    add_setting(report, "user.max_net_namespaces", kernel->max_net, 1000, nested, sysctl);
    add_space(report, report->cache, "free in the cache", "inodes free in the cache", 4096,
              "layers and images of this node", "--cache on a larger disk");
    add_space(report, "/dev/shm", "free in /dev/shm", "inodes free in /dev/shm", 64,
              "a tmpfs of the node's own programs", "as root: mount -o remount,size=50% /dev/shm");
}
