/*
 * images/oci/layout.h - where the documents and blobs of an OCI layout lie: in a directory, or in a tar of
 * one as `skopeo copy ... oci-archive:` and `podman save` write it, which is read where it is: a
 * blob is a part of the file. Only plain files count; of several of one name the last does.
 */
#ifndef SLUICE_WORKERS_IMAGES_OCI_LAYOUT_H
#define SLUICE_WORKERS_IMAGES_OCI_LAYOUT_H

#include <stdint.h>
#include <sys/types.h>

#include "workers/images/rootfs/trouble.h"

struct oci_layout;

struct oci_part {
    int file; /* the caller's, to close */
    uint64_t offset, size;
};

bool oci_layout_is_directory(int dir);
bool oci_layout_is_archive(int file); /* a tar, of whatever */

/* `file` is borrowed until oci_layout_close: a directory or a tar. NULL: *trouble. */
struct oci_layout *oci_layout_open(int file, struct image_trouble *trouble);
void oci_layout_close(struct oci_layout **layout);

/* "index.json", "blobs/sha256/...". Negative errno: -ENOENT, -EINVAL when it is not a plain file ... */
int oci_layout_find(const struct oci_layout *layout, const char *path, struct oci_part *ret);
/* Some bytes, at most `len`, at `at` of the part; 0 at its end. Negative errno. */
ssize_t oci_part_read(const struct oci_part *part, uint64_t at, void *ret, size_t len);

#endif
