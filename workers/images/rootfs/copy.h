/* copy.h - a directory copied into a rootfs, so that all of it is ours. */
#ifndef SLUICE_WORKERS_IMAGES_ROOTFS_COPY_H
#define SLUICE_WORKERS_IMAGES_ROOTFS_COPY_H

#include "workers/images/rootfs/rootfs.h"

/* Of the one file system that `dir` is on. What we may not read is left out and counted. */
int copy_directory(int dir, struct rootfs *rootfs);

struct copy_owners {
    uint64_t entries, foreign; /* foreign: of another user or group than ours */
    char first[256];           /* the first foreign path */
};
/* Looks at the owners only, at most `entries_max` entries; false when there are more. */
bool copy_count_owners(int dir, uint64_t entries_max, struct copy_owners *ret);

#endif
