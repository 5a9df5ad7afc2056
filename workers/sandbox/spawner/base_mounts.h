/*
 * base_mounts.h - what all containers have in common, made once by the spawner in its own mount namespace
 * and read-only to every container, whose mount namespace begins as a copy of that: a tmpfs on the
 * scratch directory, seen nowhere else, with
 *
 *   skeleton/  what every root has, under whatever the image has
 *   top/       the host's links and mount points for the image "host", over whatever layers have
 *   harness_skeleton/  /opt/harness, where a harness is mounted: under what has one, and under the host's /opt
 *   dev/       /dev but for its ptys and shared memory: the host's device nodes, links
 *   empty/     to cover directories with, and
 *   nothing    to cover files with
 *   tree/      the host's system directories, read-only and without secrets, and its links
 *   container/      where each container mounts its disk
 *   disks/     what containers write by fuse-overlayfs (disks.h); the spawner's
 */
#ifndef SLUICE_WORKERS_SANDBOX_SPAWNER_BASE_MOUNTS_H
#define SLUICE_WORKERS_SANDBOX_SPAWNER_BASE_MOUNTS_H

#include <stdbool.h>

#include "common/base/fail.h"

/* In the spawner, which needs the right to mount; ends with the process. */
int base_mounts_make(const char *scratch, struct fail *fail);

#endif
