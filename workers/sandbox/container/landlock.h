/*
 * landlock.h - Landlock, the kernel's rulesets that a process puts around itself and its children: what is
 * not allowed by a rule is refused. Source: the kernel's Documentation/userspace-api/landlock.rst; what
 * headers before ABI 6 lack is defined here and nowhere else.
 */
#ifndef SLUICE_WORKERS_SANDBOX_CONTAINER_LANDLOCK_H
#define SLUICE_WORKERS_SANDBOX_CONTAINER_LANDLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/fail.h"

/* Before 6 a process can signal strangers: Linux 6.12. */
enum { LANDLOCK_ABI_NEEDED = 6 };

/* What the kernel has; negative errno. */
int landlock_abi(void);

enum landlock_right {
    LANDLOCK_READ,   /* and execute, the whole tree */
    LANDLOCK_LIST,   /* directories' names */
    LANDLOCK_WRITE,  /* and all of reading: anything but devices and sockets */
    LANDLOCK_MOVE,   /* names from one directory to another */
    LANDLOCK_DEVICE, /* one device: read, write, ioctl */
};

/* Rules under which nothing is allowed yet: no file, no TCP port, no signal and no abstract socket of who
 * is outside. A descriptor, or negative errno. */
int landlock_begin(struct fail *fail);
/* What `path`, no symlink, is and what is below. 0, -ENOENT where it is not there, negative errno. */
int landlock_allow(int rules, const char *path, enum landlock_right right, struct fail *fail);
/* From now on, for good; gaining rights ends, too. */
int landlock_apply(int rules, struct fail *fail);
/* Rules of a process of its own within those: its signals reach itself and its children alone. */
int landlock_seclude(struct fail *fail);

#endif
