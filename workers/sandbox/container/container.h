/*
 * container.h - one sandbox from within, built by the process that will be its
 * pid 1, just cloned into new namespaces. Everything is opened before it is mounted and every
 * target is resolved inside the new root, so that no symlink of an image leads outside.
 * Nothing is ever mounted in the namespace of the host.
 */
#ifndef SLUICE_WORKERS_SANDBOX_CONTAINER_CONTAINER_H
#define SLUICE_WORKERS_SANDBOX_CONTAINER_CONTAINER_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/fail.h"
#include "workers/sandbox/container/plan.h"
#include "workers/sandbox/container/seccomp/seccomp_notify.h"
#include "workers/sandbox/proto/listener.h"

enum { CONTAINER_SETTINGS_MAX = 3 };

/* What pid 1 keeps of the construction. */
struct container {
    int upper;             /* what was written, as overlayfs stores it; in a container of Landlock's, all there is */
    int disk;              /* a file system of its own that takes it; -1 */
    int commands;          /* /run/sluice, which the sandbox can only read */
    int outputs;           /* /run/sluice/out, a tmpfs of its own */
    int proc;              /* the sandbox's /proc, or the host's */
    int base, stage;       /* while it is built: the base mounts, and the disk's own root, where all is mounted first */
    const char *workspace; /* home and working directory, as those inside name it; borrowed, as settings are */
    const char *settings[CONTAINER_SETTINGS_MAX]; /* in their environment beside, or in place of, the usual */
    size_t setting_count;
    struct seccomp_notify seccomp_notify;                  /* of a container of Landlock's */
    char variables[LISTENERS_MAX][LISTENER_VARIABLE_SIZE]; /* what they tell those inside */
};

/* How many files and directories it may make, by the plan. */
uint64_t container_disk_inodes(const struct container_plan *plan);
/* Makes of it what is the same for all: who we are, the network, and on the stage a disk of no size yet, /proc, /dev
 * and /run/sluice. Of the plan it takes what all plans of a spawner share. */
int container_prepare(const struct container_plan *plan, struct container *ret, struct fail *fail);
/* Then the rest, by the whole plan. */
int container_build(const struct container_plan *plan, struct container *container, struct fail *fail);

#endif
