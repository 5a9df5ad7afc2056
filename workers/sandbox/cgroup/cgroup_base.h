/* cgroup_base.h - this worker's groups: found, made, cleared. */
#ifndef SLUICE_WORKERS_SANDBOX_CGROUP_CGROUP_BASE_H
#define SLUICE_WORKERS_SANDBOX_CGROUP_CGROUP_BASE_H

#include "workers/sandbox/cgroup/cgroup.h"

/*
 * Moves this process, which has one thread, into a group of its own, and removes what dead workers left. False: this
 * process is where it was, ret->why says why, and limits are watched instead. *ret is to be closed anyhow.
 */
bool cgroups_open(struct cgroups *ret);
/* The same without trying: `word` says why. */
void cgroups_refuse(struct cgroups *ret, const char *word);
static inline bool cgroups_are_there(const struct cgroups *cgroups) { return cgroups && cgroups->ours >= 0; }
/* Kills what is left in containers; back to where this process was, where that can be, and nothing of ours is left
 * there. */
void cgroups_close(struct cgroups *cgroups);
/* Kills and removes every container, as after a spawner that was killed. */
void cgroups_clear(const struct cgroups *cgroups);

/* Removes all groups that have no process (any more); how many are left. */
size_t cgroups_sweep_containers(const struct cgroups *cgroups);

#endif
