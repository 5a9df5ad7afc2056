/* fuse.h - a container's overlay by the program fuse-overlayfs (tier fuse-overlayfs). */
#ifndef SLUICE_WORKERS_SANDBOX_BACKENDS_FUSE_FUSE_H
#define SLUICE_WORKERS_SANDBOX_BACKENDS_FUSE_FUSE_H

#include "common/base/fail.h"
#include "workers/sandbox/container/plan.h"

/* A mount on <plan->disk>/merged, served by plan->server, a process that ends with it. */
int fuse_mount(struct container_plan *plan, const char *scratch, struct fail *fail);

#endif
