/*
 * init.h - pid 1 of a sandbox: waits for its plan, builds its container, then starts processes, reaps them, opens files
 * and packs what was written, as the worker asks. It is our own code, never
 * executes anything itself, is not dumpable and ignores the signals of those inside.
 */
#ifndef SLUICE_WORKERS_SANDBOX_INIT_INIT_H
#define SLUICE_WORKERS_SANDBOX_INIT_INIT_H

#include "workers/sandbox/container/plan.h"
#include "workers/sandbox/container/spawner_setup.h"

/* Of all that one spawner makes. */
struct init_setup {
    const struct spawner_setup *spawner;
    const char *disks; /* as plan_disk_path takes it */
    uid_t uid;         /* the spawner's, in its own user namespace */
    gid_t gid;
    uint64_t inside_uid, inside_gid; /* what those inside see in their place */
    int births;                      /* tells the spawner of our /proc */
};
/* In the clone. `control`: a WIRE_CONTAINER comes from the spawner, which then gives the other end to the worker. */
_Noreturn void init_wait(const struct init_setup *setup, int control);
/* Where the plan is there. `control` is the wire to the worker, `births` tells the spawner of our /proc. */
_Noreturn void init_main(const struct container_plan *plan, int control, int births);

#endif
