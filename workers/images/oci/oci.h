/*
 * oci.h - an OCI image layout (image-layout.md 1.0.0): which image of it, its manifest, its config
 * and its layers. Every blob is checked against its digest and size while it is read, and every
 * layer, unpacked, against the config's diff_id; nothing else of the layout is believed. A manifest of Docker's (schema
 * 2) is read too.
 *
 * Which image: the one named by the tag (annotation org.opencontainers.image.ref.name); without a
 * tag the only one there is for Linux on this processor. Within an index, the first for it.
 */
#ifndef SLUICE_WORKERS_IMAGES_OCI_OCI_H
#define SLUICE_WORKERS_IMAGES_OCI_OCI_H

#include <jansson.h>

#include "workers/images/rootfs/rootfs.h"

struct oci;

/* A directory, or a tar of one; borrowed until oci_close. `tag` may be NULL. NULL: *trouble. */
struct oci *oci_open(int file, const char *tag, struct image_trouble *trouble);
void oci_close(struct oci **oci);

const char *oci_digest(const struct oci *oci); /* of the manifest */
uint64_t oci_size(const struct oci *oci);      /* compressed layers together */
size_t oci_layer_count(const struct oci *oci);

/* What its config says of how it is to be run, as a document; borrowed. */
const json_t *oci_config(const struct oci *oci);

int oci_unpack(struct oci *oci, struct rootfs *rootfs);

#endif
