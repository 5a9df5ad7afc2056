/* Why a check failed and what an administrator does about it: a table, the first row that fits. */
#include "workers/sandbox/probe/remedy.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "workers/sandbox/probe/probe.h"

enum { SECCOMP_FILTERED = 2 };

#define BIT(check) (1u << CHECK_##check)
static const uint32_t namespace_checks = BIT(userns) | BIT(namespaces) | BIT(network);
static const uint32_t userns_checks = BIT(userns);
static const uint32_t mount_checks = BIT(mounts) | BIT(proc) | BIT(terminals) | BIT(overlay_tmpfs) | BIT(overlay_disk) |
                                     BIT(fuse);

/* ---- what can be seen ----------------------------------------------------------------- */

static bool is_forbidden(int code) { return code == -EPERM || code == -EACCES; }

static bool has_no_userns(const struct kernel_info *f, int code) { return f->max_user == 0 && code < 0; }

static bool is_cloning_off(const struct kernel_info *f, int code) { return f->userns_clone == 0 && is_forbidden(code); }

static bool is_apparmor(const struct kernel_info *f, int code) { return f->apparmor_userns > 0 && is_forbidden(code); }

static bool is_filtered(const struct kernel_info *f, int code)
{
    return f->seccomp == SECCOMP_FILTERED && (is_forbidden(code) || code == -ENOSYS);
}

static bool is_used_up(const struct kernel_info *f, int code)
{
    (void)f;
    return code == -ENOSPC || code == -EUSERS;
}

static bool is_not_built(const struct kernel_info *f, int code)
{
    (void)f;
    return code == -EINVAL || code == -ENOSYS;
}

static bool is_old(const struct kernel_info *f, unsigned major, unsigned minor)
{
    return f->kernel_major < major || (f->kernel_major == major && f->kernel_minor < minor);
}

static bool is_before_5_11(const struct kernel_info *f, int code) { return is_old(f, 5, 11) && code < 0; }

static bool is_before_5_12(const struct kernel_info *f, int code) { return is_old(f, 5, 12) && code < 0; }

static bool is_before_5_13(const struct kernel_info *f, int code) { return is_old(f, 5, 13) && code < 0; }

static bool is_before_6_6(const struct kernel_info *f, int code) { return is_old(f, 6, 6) && code < 0; }
static bool is_no_device(const struct kernel_info *f, int code) { return f && code == -ENODEV; }
static bool is_before_6_12(const struct kernel_info *f, int code) { return is_old(f, 6, 12) && code == -EPROTO; }
static bool is_missing(const struct kernel_info *f, int code) { return f && code == -ENOENT; }
static bool is_refused(const struct kernel_info *f, int code) { return f && is_forbidden(code); }
static bool is_invalid(const struct kernel_info *f, int code) { return f && code == -EINVAL; }
static bool is_off(const struct kernel_info *f, int code) { return f && code == -EOPNOTSUPP; }
static bool is_root(const struct kernel_info *f, int code) { return f && code == -ENOTSUP; }
static bool is_switched_off(const struct kernel_info *f, int code) { return f && code == -EPROTO; }
static bool is_busy(const struct kernel_info *f, int code) { return f && code == -EBUSY; }
static bool is_container_without(const struct kernel_info *f, int code)
{
    return f->is_container && (is_forbidden(code) || code == -EROFS);
}
static bool is_tmpfs_cache(const struct kernel_info *f, int code) { return f && code == -ENOTSUP; }

/* ---- the table ------------------------------------------------------------------------ */

/* "%s" in a cure is this program's path. */
static const struct {
    uint32_t checks;
    bool (*fits)(const struct kernel_info *kernel, int code);
    const char *reason, *remedy;
} rows[] = {
    {userns_checks, has_no_userns, "user.max_user_namespaces is 0",
     "as root: echo user.max_user_namespaces=63414 > /etc/sysctl.d/90-sluice.conf && sysctl "
     "--system"},
    {userns_checks, is_cloning_off, "kernel.unprivileged_userns_clone is 0",
     "as root: echo kernel.unprivileged_userns_clone=1 > /etc/sysctl.d/90-sluice.conf && sysctl "
     "--system"},
    {userns_checks | BIT(namespaces) | BIT(network) | BIT(mounts), is_apparmor,
     "AppArmor (kernel.apparmor_restrict_unprivileged_userns is 1) gives this program no rights in "
     "it",
     "as root, a profile for this program alone: printf 'abi <abi/4.0>,\\ninclude "
     "<tunables/global>\\n"
     "profile sluice-worker \"%s\" flags=(unconfined) {\\n  userns,\\n}\\n' > "
     "/etc/apparmor.d/sluice-worker"
     " && apparmor_parser -r /etc/apparmor.d/sluice-worker; or for every program: "
     "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"},
    {namespace_checks | mount_checks, is_filtered,
     "a system call filter on this process refuses it, as those of containers and systemd units do",
     "outside a container, or: docker or podman run --security-opt seccomp=unconfined "
     "--security-opt systempaths=unconfined; systemd: RestrictNamespaces=no SystemCallFilter="},
    {namespace_checks, is_used_up, "a limit user.max_*_namespaces is reached, or 32 are nested",
     "as root: sysctl user | grep max_ shows them; echo 'user.max_NAME_namespaces=63414' > "
     "/etc/sysctl.d/90-sluice.conf && sysctl --system for what is 0 or small"},
    {namespace_checks, is_not_built, "the kernel was built or started without it",
     "a kernel with CONFIG_USER_NS, CONFIG_PID_NS, CONFIG_IPC_NS, CONFIG_UTS_NS and CONFIG_NET_NS"},
    {BIT(mounts), is_before_5_12, "the kernel is older than Linux 5.12", "a newer kernel"},
    {BIT(proc), is_refused, "parts of this machine's own /proc are covered, as in a container",
     "outside a container, or: docker run --security-opt systempaths=unconfined, podman run "
     "--security-opt unmask=ALL"},
    {BIT(overlay_tmpfs) | BIT(overlay_disk), is_no_device, "the kernel has no overlay loaded",
     "as root: modprobe overlay && echo overlay > /etc/modules-load.d/overlay.conf"},
    {BIT(overlay_tmpfs) | BIT(overlay_disk), is_before_5_11, "overlay without root needs Linux 5.11",
     "a newer kernel, or install fuse-overlayfs"},
    {BIT(overlay_tmpfs), is_before_6_6,
     "a tmpfs keeps what overlay needs (user.* attributes) since "
     "Linux 6.6",
     "nothing: the tier overlay-disk does without"},
    {BIT(overlay_disk), is_tmpfs_cache, NULL, "--cache on a local disk"},
    {BIT(overlay_disk), is_invalid, "the file system of the cache cannot hold what is written",
     "--cache on a local ext4, xfs or btrfs; NFS, Lustre and overlays cannot"},
    {BIT(fuse), is_missing, NULL, "as root: modprobe fuse && echo fuse > /etc/modules-load.d/fuse.conf"},
    {BIT(fuse), is_refused, NULL,
     "as root: echo 'KERNEL==\"fuse\", MODE=\"0666\"' > /etc/udev/rules.d/90-fuse.rules && chmod "
     "0666 /dev/fuse"},
    {BIT(fuse_overlayfs), is_missing, NULL, "as root: apt-get install fuse-overlayfs, or dnf install fuse-overlayfs"},
    {BIT(landlock), is_before_5_13, "the kernel is older than Linux 5.13", "a newer kernel"},
    {BIT(landlock), is_before_6_12, "that is Linux 6.12", "a newer kernel"},
    {BIT(landlock), is_off, "it is switched off",
     "add landlock to the kernel's command line: lsm=landlock,... (cat /sys/kernel/security/lsm "
     "shows the rest)"},
    {BIT(landlock), is_not_built, "the kernel was built without it", "a kernel with CONFIG_SECURITY_LANDLOCK"},
    {BIT(apptainer), is_missing, NULL,
     "as root: apt-get install apptainer-suid, or dnf install apptainer-suid "
     "(https://apptainer.org/docs/admin); apptainer "
     "alone needs user namespaces"},
    {BIT(apptainer), is_root, NULL, "run the worker as an ordinary user"},
    {BIT(apptainer), is_switched_off, NULL,
     "in apptainer.conf: allow setuid, allow pid ns, allow ipc ns, allow uts ns, mount proc, mount "
     "devpts, user bind "
     "control and allow container dir = yes, mount hostfs = no"},
    {BIT(apptainer), NULL, NULL,
     "apptainer 1.2 or newer, set-user-ID root (the package apptainer-suid) where user namespaces "
     "are forbidden; what it "
     "says of: apptainer exec --containall --pid --net --network none DIRECTORY COMMAND"},
    {BIT(seccomp), is_invalid, "the kernel was built without it", "a kernel with CONFIG_SECCOMP_FILTER"},
    {BIT(cgroup), is_busy, NULL,
     "nothing, limits are watched; for the kernel's own, the worker in a group of its own, without "
     "a shell beside it: "
     "systemd-run --user --scope -p Delegate=yes sluice-worker run ..."},
    {BIT(cgroup), is_container_without, NULL,
     "nothing, limits are watched; for the kernel's own: podman run --cgroupns=private "
     "--security-opt unmask=/sys/fs/cgroup, "
     "or docker run --cgroupns=private -v /sys/fs/cgroup:/sys/fs/cgroup:rw, and the worker as the "
     "container's only process"},
    {BIT(cgroup), is_refused, NULL,
     "nothing, limits are watched; for the kernel's own: systemd-run --user --scope -p "
     "Delegate=yes sluice-worker run ..., or "
     "Delegate=yes in the [Service] of its unit; Slurm gives jobs no groups of theirs"},
    {BIT(cgroup), NULL, NULL,
     "nothing, limits are watched; for the kernel's own: cgroup v2 with memory and pids, which is "
     "systemd.unified_cgroup_hierarchy=1 on the kernel's command line, and Delegate=yes for the "
     "worker's unit"},
};

static void write_remedy(const char *text, char *ret, size_t size)
{
    char self[PATH_MAX];
    const char *path = strstr(text, "%s");
    ssize_t len = path ? readlink("/proc/self/exe", self, sizeof(self) - 1) : 0;
    if (!path)
        snprintf(ret, size, "%s", text);
    else
        snprintf(ret, size, "%.*s%.*s%s", (int)(path - text), text, len > 200 || len < 0 ? 0 : (int)len, self,
                 path + 2);
}

void remedy_find(enum probe_check check, const struct kernel_info *kernel, struct probe_result *result)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        if (!(rows[i].checks & (1u << check)) || (rows[i].fits && !rows[i].fits(kernel, result->code)))
            continue;
        size_t len = strlen(result->text);
        if (rows[i].reason)
            snprintf(result->text + len, sizeof(result->text) - len, "; %s", rows[i].reason);
        write_remedy(rows[i].remedy, result->remedy, sizeof(result->remedy));
        return;
    }
}
