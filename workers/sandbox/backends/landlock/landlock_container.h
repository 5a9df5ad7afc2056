/*
 * landlock_container.h - a container without namespaces, for machines that forbid them (tier landlock): a directory of
 * its own, a ruleset of Landlock around its processes (landlock.h), and a system call filter for what those
 * do not hold back: sockets, System V memory, ptrace, other processes' priorities, and the modes, owners
 * and times of files (seccomp_notify.h).
 *
 *     <plan->disk>/upper/workspace   home and working directory
 *     <plan->disk>/upper/tmp         $TMPDIR
 *     <plan->disk>/run               the commands, which those inside can only read
 *     <plan->disk>/run/out           their outputs
 *
 * The container's first process is under the ruleset, too, and its children are under rulesets of their own: it
 * can end them, they cannot touch it. It is the reaper of all that come from it.
 */
#ifndef SLUICE_WORKERS_SANDBOX_BACKENDS_LANDLOCK_LANDLOCK_CONTAINER_H
#define SLUICE_WORKERS_SANDBOX_BACKENDS_LANDLOCK_LANDLOCK_CONTAINER_H

#include "workers/sandbox/container/container.h"

/* As fork(2), with a pidfd; `keeps` as for high_fds_clone (high_fds.h); born in `cgroup` (cgroup.h) where that is not
 * -1. */
pid_t landlock_container_fork(int keeps, int cgroup, int *ret_pidfd);
int landlock_container_build(const struct container_plan *plan, struct container *ret, struct fail *fail);
/* The first process: ruleset and rights. */
int landlock_container_confine(const struct container_plan *plan, struct fail *fail);

/* ... where the first process takes it. */
int landlock_container_meet(struct container *container, int told, struct fail *fail);

#endif
