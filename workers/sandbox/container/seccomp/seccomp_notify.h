/*
 * seccomp_notify.h - system calls that change a file's mode, owner or times, which Landlock does not hold back:
 * those inside a container of Landlock's (landlock_container.h) hand them in, and the container's first process does
 * them, where the file is in the container. What decides is the file that was opened, not its name.
 */
#ifndef SLUICE_WORKERS_SANDBOX_CONTAINER_SECCOMP_SECCOMP_NOTIFY_H
#define SLUICE_WORKERS_SANDBOX_CONTAINER_SECCOMP_SECCOMP_NOTIFY_H

#include <poll.h>
#include <stddef.h>

#include "workers/sandbox/container/seccomp/seccomp.h"

enum { NOTIFIERS_MAX = 256 };

/* Of each process that was started the listener of its filter, while it or a child of it lives. */
struct seccomp_notify {
    int listeners[NOTIFIERS_MAX];
    size_t count;
    const char *places[2]; /* directories, with a '/' at their ends, below which it may be done */
};

/* The calls are handed in. */
void seccomp_notify_rules(struct seccomp_rules *rules);
/* Takes the listener over. False when there are too many. */
bool seccomp_notify_add(struct seccomp_notify *seccomp_notify, int listener);
/* What to poll for, at most `max`; their number. */
size_t seccomp_notify_poll(const struct seccomp_notify *seccomp_notify, struct pollfd *ret, size_t max);
/* After the poll: answers those that came, one each. */
void seccomp_notify_serve(struct seccomp_notify *seccomp_notify, const struct pollfd *polled, size_t count);

#endif
