/*
 * images/oci/unpacked.h - a layer's bytes as they were before they were packed (gzip, zstd or not at all),
 * read once. At their end the blob has been compared with its digest, and they with the diff_id of
 * the image's config: what is unpacked is what was built.
 */
#ifndef SLUICE_WORKERS_IMAGES_OCI_UNPACKED_H
#define SLUICE_WORKERS_IMAGES_OCI_UNPACKED_H

#include "workers/images/oci/blob.h"
#include "workers/images/rootfs/rootfs.h"

struct oci_unpacked;

/* Borrows all; the rootfs for its limit, its wish to stop and its trouble. NULL: the trouble. */
struct oci_unpacked *oci_unpacked_open(struct oci_blob *blob, const char *diff_id, struct rootfs *rootfs);
void oci_unpacked_close(struct oci_unpacked **unpacked);
/* The next bytes, good until the next call; none at the end. */
int oci_unpacked_read(struct oci_unpacked *unpacked, struct slice *ret);

#endif
