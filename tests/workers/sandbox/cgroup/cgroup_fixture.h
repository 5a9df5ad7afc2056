/*
 * cgroup_fixture.h - a cgroup v2 for tests of limits that the kernel holds: the one that is delegated to who runs them
 * or, for root, a group of their own on a hierarchy that is mounted in a mount namespace of theirs. That has the
 * controllers that no cgroup v1 of the machine holds; where memory or pids is held so, the kernel gives it to nobody
 * else.
 */
#ifndef SLUICE_TESTS_WORKERS_SANDBOX_CGROUP_CGROUP_FIXTURE_H
#define SLUICE_TESTS_WORKERS_SANDBOX_CGROUP_CGROUP_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "workers/sandbox/cgroup/cgroup_base.h"
#include "workers/sandbox/cgroup/cgroup_files.h"

enum { CGROUP_FIXTURE_GO = 256 /* no exit status */, CGROUP_FIXTURE_SKIPPED = 77 };

static const char cgroup_fixture_mount[] = "/sys/fs/cgroup", cgroup_fixture_controllers[] = "+memory +pids";

static bool cgroup_fixture_is_open(struct fail *why)
{
    static struct cgroups cgroups; /* too large for a stack */
    bool is_open = cgroups_open(&cgroups);
    *why = cgroups.why;
    cgroups_close(&cgroups);
    return is_open;
}

/* Which of memory and pids a hierarchy of cgroup v1 has: lines such as "4:memory:/". */
static void cgroup_fixture_held_by_v1(char *ret, size_t size)
{
    char text[4096], *rest = text;
    ret[0] = '\0';
    cgroup_read(AT_FDCWD, "/proc/self/cgroup", text, sizeof(text));
    for (char *line; (line = strsep(&rest, "\n"));)
        for (const char *const *name = (const char *const[]){"memory", "pids", NULL}; *name; name++) {
            const char *found = strstr(line, *name), *path = strchr(line, '/');
            size_t used = strlen(ret);
            if (found && path && found < path)
                snprintf(ret + used, size - used, "%s%s", used ? " and " : "", *name);
        }
}

/* In a mount namespace of this process's: no cgroup v2 but a new one, at the usual place. */
static int cgroup_fixture_mount_it(struct fail *fail)
{
    if (unshare(CLONE_NEWNS) < 0)
        return fail_set(fail, -errno, "no mount namespace for one of our own: %s", strerror(errno));
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return fail_set(fail, -errno, "mounts cannot be made private: %s", strerror(errno));
    while (umount2(cgroup_fixture_mount, MNT_DETACH) == 0)
        ;
    if (mount("cgroup2", cgroup_fixture_mount, "cgroup2", 0, NULL) < 0)
        return fail_set(fail, -errno, "one of our own cannot be mounted: %s", strerror(errno));
    return 0;
}

/* A new group in the root of what is mounted, marked as given to us. Its descriptor. */
static int cgroup_fixture_make(const char *name, struct fail *fail)
{
    char has[256], held[64];
    AUTO_CLOSE int root = open(cgroup_fixture_mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cgroup_read(root, "cgroup.controllers", has, sizeof(has));
    if (!strstr(has, "memory") || !strstr(has, "pids")) {
        cgroup_fixture_held_by_v1(held, sizeof(held));
        has[strcspn(has, "\n")] = '\0';
        return fail_set(fail, -ENOTSUP,
                        "one mounted for this test has not memory and pids but only \"%s\": cgroup v1 holds %s", has,
                        held[0] ? held : "none of them");
    }
    int code = cgroup_write(root, "cgroup.subtree_control", cgroup_fixture_controllers);
    if (code < 0)
        return fail_set(fail, code, "one mounted for this test cannot be divided: %s", strerror(-code));
    if (mkdirat(root, name, 0755) < 0)
        return fail_set(fail, -errno, "one mounted for this test takes no group: %s", strerror(errno));
    AUTO_CLOSE int group = openat(root, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fsetxattr(group, "trusted.delegate", "1", 1, 0) < 0)
        return fail_set(fail, -errno, "a group cannot be marked as given: %s", strerror(errno));
    return take_fd(&group);
}

/* The child that this is called in runs the tests; its parent removes the group behind it. */
static int cgroup_fixture_enter_own(struct fail *fail)
{
    char name[64], path[128];
    int status = 0;
    snprintf(name, sizeof(name), "test-of-sluice-%d", getpid());
    snprintf(path, sizeof(path), "%s/%s", cgroup_fixture_mount, name);
    int code = cgroup_fixture_mount_it(fail);
    if (code < 0)
        return code;
    AUTO_CLOSE int group = cgroup_fixture_make(name, fail);
    fflush(NULL);
    pid_t pid = group < 0 ? -1 : fork();
    if (group >= 0 && pid < 0)
        fail_set(fail, -errno, "no process for its tests: %s", strerror(errno));
    if (pid == 0) {
        code = cgroup_write(group, "cgroup.procs", "0");
        if (code == 0)
            return CGROUP_FIXTURE_GO;
        printf("the group of the test cannot be entered: %s\n", strerror(-code));
        exit(1);
    }
    if (pid > 0)
        waitpid(pid, &status, 0);
    rmdir(path);
    return pid < 0 ? -1 : WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* CGROUP_FIXTURE_GO: cgroups_open succeeds in this process. Else the status to end with, and it was said why. */
static int cgroup_fixture_enter(void)
{
    struct fail why, own = {0};
    if (cgroup_fixture_is_open(&why))
        return CGROUP_FIXTURE_GO;
    int code = geteuid() == 0 ? cgroup_fixture_enter_own(&own)
                              : fail_set(&own, -EPERM, "only root may mount one for this test");
    if (code >= 0)
        return code;
    printf("SKIPPED: no cgroup v2 is delegated to us: %s; %s\n", why.text, own.text);
    return CGROUP_FIXTURE_SKIPPED;
}

#endif
