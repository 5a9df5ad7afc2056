/*
 * namespaces.h - a child process in a user, mount and pid namespace of its own, where this user is
 * CONTAINER_UID and may make namespaces below; it has no right on the host that the user has not.
 * Whoever holds its uid in that user namespace owns the ones made in it, and one signal to it
 * ends every process below.
 */
#ifndef SLUICE_WORKERS_SANDBOX_CONTAINER_NAMESPACES_H
#define SLUICE_WORKERS_SANDBOX_CONTAINER_NAMESPACES_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/base/fail.h"

/* "deny" to setgroups, and `inside` of the new user namespace we are in for uid, gid outside. */
struct namespaces_identity {
    uid_t uid;
    gid_t gid;
};
int namespaces_take_identity(const struct namespaces_identity *inside, uid_t uid, gid_t gid, struct fail *fail);

enum {
    NAMESPACES_CONTAINER = 1, /* all namespaces that a sandbox has */
    NAMESPACES_ZYGOTE = 2,    /* the same but for the user namespace: zygote.h */
    NAMESPACES_SIBLING = 4    /* a child of our parent */
};
/* As fork(2), with a pidfd; `keeps` as for high_fds_clone (high_fds.h); born in `cgroup` (cgroup.h) where that is not
 * -1. */
pid_t namespaces_clone(unsigned how, int keeps, int cgroup, int *ret_pidfd);

/*
 * As fork(2); to be called while there is one thread. *is_apart says in the child (and the
 * parent) whether there are namespaces of its own: where they are refused it is a plain fork.
 * The child is killed when the parent ends.
 */
pid_t namespaces_fork(bool *has_namespaces);
/* The plain fork; the child is killed when the parent ends. */
pid_t namespaces_skip(void);

#endif
