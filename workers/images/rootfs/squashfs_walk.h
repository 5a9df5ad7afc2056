/* squashfs_walk.h - a SquashFS is walked: once to count what it holds, once to write it. */
#ifndef SLUICE_WORKERS_IMAGES_ROOTFS_SQUASHFS_WALK_H
#define SLUICE_WORKERS_IMAGES_ROOTFS_SQUASHFS_WALK_H

#include "workers/images/rootfs/squashfs.h"

/* What unpacking would write. Stops as a rootfs does; the rootfs' root is not touched. */
int squashfs_count(struct squashfs *squashfs, struct rootfs *rootfs);
int squashfs_unpack(struct squashfs *squashfs, struct rootfs *rootfs);

#endif
