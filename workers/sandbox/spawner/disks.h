/*
 * disks.h - the spawner's part of tiers whose containers do not write to a tmpfs of their own mount
 * namespace: for each container a directory <id>/ with upper/ and work/.
 *
 * overlay-disk: below the cache, held by a lock; what killed spawners left there is removed by the
 * next. A process beside the spawner, the *quota daemon*, looks at how much each container has written, tells
 * the spawner of who wrote too much, and removes what is no longer needed. Neither waits for the other:
 * orders wait in the spawner, so many that no more containers are made, and a breach that finds no place
 * is told again after the next look.
 *
 * apptainer, landlock: the same; the container itself is there.
 *
 * fuse-overlayfs: a tmpfs for each in the spawner's mount namespace, so that its limits are the
 * kernel's, with the program fuse-overlayfs over it on merged/.
 *
 * overlay-tmpfs has none: every call does nothing.
 */
#ifndef SLUICE_WORKERS_SANDBOX_SPAWNER_DISKS_H
#define SLUICE_WORKERS_SANDBOX_SPAWNER_DISKS_H

#include "common/base/fail.h"
#include "workers/sandbox/container/plan.h"

struct quota_order;

struct disks {
    enum tier tier;
    char path[PLAN_DISK_PATH_MAX];
    int lock, quota; /* descriptors, or -1 */
    pid_t quota_pid;
    size_t containers;
    struct quota_order *waiting; /* orders that the quota daemon has not had time for */
    size_t waiting_count, waiting_capacity;
};

/* `parent`: below the cache, made where it is missing; breaches are told on `births` as WIRE_BREACH. */
int disks_open(struct disks *disks, enum tier tier, const char *scratch, const char *parent, int births,
               struct fail *fail);
/* Whether `quota daemon` is to be polled for POLLOUT, and then disks_send called. */
bool disks_is_waiting(const struct disks *disks);
void disks_send(struct disks *disks);
/* Makes the container's and sets plan->disk to `path`, which it writes. */
int disks_make(struct disks *disks, struct container_plan *plan, char path[PLAN_DISK_PATH_MAX], struct fail *fail);
/* Its container has ended. */
void disks_remove(struct disks *disks, uint32_t id);
/* All containers have ended: waits until everything is removed. */
void disks_close(struct disks *disks);

enum { DISKS_WAITING_MAX = 4096 }; /* beyond it disks_make says -EBUSY */

#endif
