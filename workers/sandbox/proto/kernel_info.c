#include "workers/sandbox/proto/kernel_info.h"

#include <fcntl.h>
#include <string.h>
#include <sys/utsname.h>

#include "common/base/cleanup.h"

static bool read_text(int root, const char *path, char *ret, size_t size)
{
    AUTO_CLOSE int fd = openat(root, path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, ret, size - 1);
    ret[got > 0 ? got : 0] = '\0';
    return got > 0;
}

static int64_t read_number(int root, const char *path)
{
    char text[64], *end;
    if (!read_text(root, path, text, sizeof(text)))
        return KERNEL_INFO_UNKNOWN;
    int64_t value = strtoll(text, &end, 10);
    return end == text ? KERNEL_INFO_UNKNOWN : value;
}

static int64_t read_seccomp(int root)
{
    char text[4096];
    const char *line = read_text(root, "proc/self/status", text, sizeof(text)) ? strstr(text, "\nSeccomp:") : NULL;
    return line ? strtoll(line + sizeof("\nSeccomp:") - 1, NULL, 10) : KERNEL_INFO_UNKNOWN;
}

void kernel_info_version(unsigned *major, unsigned *minor)
{
    struct utsname kernel;
    if (uname(&kernel) < 0 || sscanf(kernel.release, "%u.%u", major, minor) != 2)
        *major = *minor = 0;
}

void kernel_info_read(int root, struct kernel_info *ret)
{
    const struct {
        const char *path;
        int64_t *value;
    } numbers[] = {
        {"proc/sys/kernel/unprivileged_userns_clone", &ret->userns_clone},
        {"proc/sys/kernel/apparmor_restrict_unprivileged_userns", &ret->apparmor_userns},
        {"proc/sys/user/max_user_namespaces", &ret->max_user},
        {"proc/sys/user/max_mnt_namespaces", &ret->max_mnt},
        {"proc/sys/user/max_pid_namespaces", &ret->max_pid},
        {"proc/sys/user/max_ipc_namespaces", &ret->max_ipc},
        {"proc/sys/user/max_uts_namespaces", &ret->max_uts},
        {"proc/sys/user/max_cgroup_namespaces", &ret->max_cgroup},
        {"proc/sys/user/max_net_namespaces", &ret->max_net},
        {"proc/sys/kernel/pid_max", &ret->pid_max},
    };
    *ret = (struct kernel_info){0};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        *numbers[i].value = read_number(root, numbers[i].path);
    ret->seccomp = read_seccomp(root);
    ret->is_container = faccessat(root, ".dockerenv", F_OK, 0) == 0 ||
                        faccessat(root, "run/.containerenv", F_OK, 0) == 0;
    kernel_info_version(&ret->kernel_major, &ret->kernel_minor);
}
