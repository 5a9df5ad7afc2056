/*
 * small_disk.h - a disk of a few MiB, seen by the calling process and its children alone: a
 * tmpfs in a mount namespace, in a user namespace where that is needed. Where neither may be
 * made, small_disk_enter is false and the test says that it was skipped.
 */
#ifndef SLUICE_TESTS_BROKER_LEDGER_SMALL_DISK_H
#define SLUICE_TESTS_BROKER_LEDGER_SMALL_DISK_H

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mount.h>
#include <unistd.h>

static inline bool small_disk_write(const char *path, const char *format, unsigned id)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool wrote = fd >= 0 && dprintf(fd, format, id) > 0;
    if (fd >= 0)
        close(fd);
    return wrote;
}

/* Before the process has threads. */
static inline bool small_disk_enter(void)
{
    unsigned uid = getuid(), gid = getgid();
    if (unshare(CLONE_NEWNS) != 0 &&
        (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 || !small_disk_write("/proc/self/setgroups", "deny", 0) ||
         !small_disk_write("/proc/self/uid_map", "0 %u 1", uid) ||
         !small_disk_write("/proc/self/gid_map", "0 %u 1", gid)))
        return false;
    return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

static inline bool small_disk_mount(const char *dir, const char *size)
{
    char options[32];
    snprintf(options, sizeof(options), "size=%s", size);
    return mount("tmpfs", dir, "tmpfs", 0, options) == 0;
}

static inline bool small_disk_resize(const char *dir, const char *size)
{
    char options[32];
    snprintf(options, sizeof(options), "size=%s", size);
    return mount("tmpfs", dir, "tmpfs", MS_REMOUNT, options) == 0;
}

#endif
