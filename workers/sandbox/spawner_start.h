/* spawner_start.h - the spawner of sandboxes, as the worker has it: started, attached to a loop, stopped. */
#ifndef SLUICE_WORKERS_SANDBOX_SPAWNER_START_H
#define SLUICE_WORKERS_SANDBOX_SPAWNER_START_H

#include "workers/sandbox/sandbox.h"

/*
 * Executes the spawner. Call before any thread or ZeroMQ context.
 * `scratch` is an existing private directory used only as a mount point.
 */
struct spawner *spawner_start(const char *scratch, struct fail *fail);
/* The same with another tier than overlay-tmpfs; `disks`: a directory of the cache, made where it
 * is missing, for tiers that write to a disk (workers with one cache share it). */
struct spawner *spawner_start_tier(const char *scratch, enum tier tier, const char *disks, struct fail *fail);
/* The same, each sandbox in a group of `cgroups` (cgroup.h), which outlives the spawner; NULL, or where there are
 * none: limits are watched. */
struct spawner *spawner_start_bounded(const char *scratch, enum tier tier, const char *disks,
                                      const struct cgroups *cgroups, struct fail *fail);
/* Binds it to the loop that its calls will await on. */
bool spawner_attach(struct spawner *spawner, struct loop *loop);
/* For whoever watches it: a child of the process that started it. */
pid_t spawner_pid(const struct spawner *spawner);
size_t spawner_count(const struct spawner *spawner); /* sandboxes that are open */
/* Kills every sandbox, waits for the spawner. */
void spawner_stop(struct spawner **spawner);

#endif
