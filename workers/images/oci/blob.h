/* images/oci/blob.h - one blob of an OCI layout, read once from its start to its end and verified there. */
#ifndef SLUICE_WORKERS_IMAGES_OCI_BLOB_H
#define SLUICE_WORKERS_IMAGES_OCI_BLOB_H

#include "common/base/buffer.h"
#include "common/digest/digest.h"
#include "workers/images/oci/layout.h"

enum { OCI_DOCUMENT_MAX = 4 << 20 };

struct oci_descriptor {
    char digest[DIGEST_SIZE];
    uint64_t size;
    char type[128]; /* media type */
};

struct oci_blob;

/* NULL: *trouble, a refusal by name when the blob is missing or not as long as it should be. */
struct oci_blob *oci_blob_open(const struct oci_layout *layout, const struct oci_descriptor *descriptor,
                               struct image_trouble *trouble);
void oci_blob_close(struct oci_blob **blob);
const char *oci_blob_digest(const struct oci_blob *blob);
/* The next bytes, good until the next call; none at the end, where the digest has been compared. */
int oci_blob_read(struct oci_blob *blob, struct slice *ret, struct image_trouble *trouble);
/* All of a small one. */
int oci_blob_read_whole(const struct oci_layout *layout, const struct oci_descriptor *descriptor, struct buffer *ret,
                        struct image_trouble *trouble);

#endif
