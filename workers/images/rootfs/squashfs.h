/*
 * squashfs.h - a SquashFS 4.0 file system, unpacked through libsquashfs into a rootfs (rootfs.h).
 *
 * It is walked twice: once to count what it holds and to find what is wrong with it, which writes
 * nothing, and once to write. A directory that comes twice, in a loop or beside itself, is
 * refused; so a small file cannot unpack to more than its inodes. Files that share an inode become
 * hard links, blocks that were stored as holes stay holes.
 */
#ifndef SLUICE_WORKERS_IMAGES_ROOTFS_SQUASHFS_H
#define SLUICE_WORKERS_IMAGES_ROOTFS_SQUASHFS_H

#include "workers/images/rootfs/rootfs.h"
#include "workers/images/rootfs/source.h"

struct squashfs;

bool squashfs_is(const struct image_source *source);
/* What `source` reads from is borrowed until squashfs_close. NULL: *trouble. */
struct squashfs *squashfs_open(const struct image_source *source, struct image_trouble *trouble);
void squashfs_close(struct squashfs **squashfs);
const char *squashfs_compression(const struct squashfs *squashfs); /* "gzip", "zstd" */

#endif
