/*
 * high_fds.h - where the spawner keeps descriptors that no first process is to have: from HIGH_FDS_FROM on. A child's
 * table is as large as its parent's, which has some for each sandbox that lives. So a first process shares that table
 * at first, and leaves with a copy of its beginning, which the kernel has room for in what it has for each process
 * anyhow.
 */
#ifndef SLUICE_WORKERS_SANDBOX_CONTAINER_HIGH_FDS_H
#define SLUICE_WORKERS_SANDBOX_CONTAINER_HIGH_FDS_H

#include <sys/types.h>

struct clone_args;

enum { HIGH_FDS_FROM = 64 };

/* The same descriptor, moved there, close-on-exec; where there is no room for it, where it was. What is negative stays
 * that. */
int high_fds_put(int fd);

/*
 * cgroup_clone (cgroup.h) of a child that has no descriptors from there on. `keeps`: one that it must have, which stays
 * open here until it is known to live by itself; where that is there, or is -1, the child has them all.
 */
pid_t high_fds_clone(const struct clone_args *args, int keeps, int cgroup);

#endif
