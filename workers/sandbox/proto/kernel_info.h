/*
 * kernel_info.h - what the kernel's files say about this machine, without trying anything: the
 * settings that stop sandboxes, and the limits that matter to a node full of them.
 */
#ifndef SLUICE_WORKERS_SANDBOX_PROTO_KERNEL_INFO_H
#define SLUICE_WORKERS_SANDBOX_PROTO_KERNEL_INFO_H

#include <stdbool.h>
#include <stdint.h>

enum { KERNEL_INFO_UNKNOWN = -1 };

/* KERNEL_INFO_UNKNOWN where the kernel has no such file. */
struct kernel_info {
    int64_t userns_clone;    /* kernel.unprivileged_userns_clone: 0 forbids (Debian's patch) */
    int64_t apparmor_userns; /* kernel.apparmor_restrict_unprivileged_userns: 1 forbids (Ubuntu) */
    int64_t max_user, max_mnt, max_pid, max_ipc, max_uts, max_cgroup, max_net; /* user.max_*_namespaces */
    int64_t pid_max;
    int64_t seccomp;   /* of this process: 2, a filter is on it */
    bool is_container; /* the files that container programs leave */
    unsigned kernel_major, kernel_minor;
};

/* Of the kernel that runs; 0 and 0 where it says nothing of the kind. */
void kernel_info_version(unsigned *major, unsigned *minor);
/* `root` is an open directory, "/" but in tests. */
void kernel_info_read(int root, struct kernel_info *ret);

#endif
