/*
 * sif.h - reads a SIF file's table of objects and finds its root file system: the one partition
 * that is the primary system partition, which must hold SquashFS for this machine's processor.
 * Nothing in the file is trusted; every offset and size is checked against the file's size.
 *
 * Format: sylabs/sif, pkg/sif (sif.go, descriptor.go). Little-endian, packed: a header of 128
 * bytes, then descriptors of 585.
 */
#ifndef SLUICE_WORKERS_IMAGES_ROOTFS_SIF_H
#define SLUICE_WORKERS_IMAGES_ROOTFS_SIF_H

#include "workers/images/rootfs/source.h"
#include "workers/images/rootfs/trouble.h"

enum { SIF_HEADER_SIZE = 128, SIF_DESCRIPTOR_SIZE = 585, SIF_DESCRIPTORS_MAX = 4096 };

struct sif {
    uint64_t root_offset, root_size; /* of the SquashFS */
    int64_t created_s;
    uint32_t object_count;    /* descriptors in use */
    const char *architecture; /* "amd64" */
};

bool sif_is(const struct image_source *source);
int sif_read(const struct image_source *source, struct sif *ret, struct image_trouble *trouble);
/* Go's name of this machine's processor: "amd64", "arm64". */
const char *image_architecture(void);

#endif
