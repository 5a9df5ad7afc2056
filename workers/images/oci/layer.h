/*
 * images/oci/layer.h - one layer of an OCI image (layer.md) put over what those below it left: files
 * replace files, directories merge, ".wh.NAME" removes and ".wh..wh..opq" empties what came from
 * below, wherever in the layer they stand.
 */
#ifndef SLUICE_WORKERS_IMAGES_OCI_LAYER_H
#define SLUICE_WORKERS_IMAGES_OCI_LAYER_H

#include "workers/images/oci/unpacked.h"

/* Reads the layer to its end. */
int oci_layer_apply(struct oci_unpacked *unpacked, struct rootfs *rootfs);

#endif
