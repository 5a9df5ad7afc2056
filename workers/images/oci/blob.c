#include "workers/images/oci/blob.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"

enum { CHUNK = 128 * 1024 };

struct oci_blob {
    struct oci_part part;
    struct oci_descriptor descriptor;
    uint64_t at;
    struct digest *hash;
    uint8_t chunk[CHUNK];
};

void oci_blob_close(struct oci_blob **blob)
{
    struct oci_blob *gone = take_ptr(blob);
    if (!gone)
        return;
    cleanup_close(&gone->part.file);
    digest_drop(&gone->hash);
    free(gone);
}

const char *oci_blob_digest(const struct oci_blob *blob) { return blob->descriptor.digest; }

static int find_part(const struct oci_layout *layout, const struct oci_descriptor *descriptor, struct oci_part *ret,
                     struct image_trouble *trouble)
{
    char path[DIGEST_SIZE + 16];
    const char *hex = descriptor->digest + strlen("sha256:"); /* checked when it was read */
    snprintf(path, sizeof(path), "blobs/sha256/%s", hex);
    int code = oci_layout_find(layout, path, ret);
    if (code == -ENOENT || code == -EINVAL)
        return image_refuse(trouble, IMAGE_REFUSAL_OCI_BLOB, "there is no blob %s", descriptor->digest);
    if (code < 0)
        return image_refuse(trouble, IMAGE_REFUSAL_UNREADABLE, "cannot read the blob %s: %s", descriptor->digest,
                            strerror(-code));
    if (ret->size == descriptor->size)
        return 0;
    cleanup_close(&ret->file);
    return image_refuse(trouble, IMAGE_REFUSAL_OCI_BLOB,
                        "the blob %s is %llu bytes long, not the %llu that were promised", descriptor->digest,
                        (unsigned long long)ret->size, (unsigned long long)descriptor->size);
}

struct oci_blob *oci_blob_open(const struct oci_layout *layout, const struct oci_descriptor *descriptor,
                               struct image_trouble *trouble)
{
    struct oci_part part;
    if (find_part(layout, descriptor, &part, trouble) < 0)
        return NULL;
    struct oci_blob *blob = calloc(1, sizeof(*blob));
    if (blob) {
        blob->part = part;
        blob->descriptor = *descriptor;
        blob->hash = digest_begin();
    } else {
        cleanup_close(&part.file);
    }
    if (!blob || !blob->hash) {
        image_fail(trouble, -ENOMEM, "out of memory");
        oci_blob_close(&blob);
    }
    return blob;
}

static int verify(struct oci_blob *blob, struct image_trouble *trouble)
{
    char found[DIGEST_SIZE];
    if (!digest_end(&blob->hash, found)) /* once: reading on is the end again */
        return image_fail(trouble, -ENOMEM, "out of memory");
    if (strcmp(found, blob->descriptor.digest) != 0)
        return image_refuse(trouble, IMAGE_REFUSAL_OCI_BLOB, "the blob %s is damaged: it is %s",
                            blob->descriptor.digest, found);
    return 0;
}

int oci_blob_read(struct oci_blob *blob, struct slice *ret, struct image_trouble *trouble)
{
    *ret = slice_of(NULL, 0);
    if (blob->at == blob->part.size)
        return blob->hash ? verify(blob, trouble) : 0;
    ssize_t got = oci_part_read(&blob->part, blob->at, blob->chunk, CHUNK);
    if (got < 0)
        return image_refuse(trouble, IMAGE_REFUSAL_UNREADABLE, "cannot read the blob %s: %s", blob->descriptor.digest,
                            strerror((int)-got));
    if (got == 0)
        return image_refuse(trouble, IMAGE_REFUSAL_CHANGED, "the blob %s became shorter", blob->descriptor.digest);
    digest_add(blob->hash, slice_of(blob->chunk, (size_t)got));
    blob->at += (uint64_t)got;
    *ret = slice_of(blob->chunk, (size_t)got);
    return 0;
}

int oci_blob_read_whole(const struct oci_layout *layout, const struct oci_descriptor *descriptor, struct buffer *ret,
                        struct image_trouble *trouble)
{
    if (descriptor->size > OCI_DOCUMENT_MAX)
        return image_refuse(trouble, IMAGE_REFUSAL_OCI_DOCUMENT,
                            "the blob %s is %llu bytes long, more than a document of %d", descriptor->digest,
                            (unsigned long long)descriptor->size, OCI_DOCUMENT_MAX);
    struct oci_blob *blob = oci_blob_open(layout, descriptor, trouble);
    struct slice piece;
    int code = blob ? 0 : trouble->fail.code;
    while (code == 0 && (code = oci_blob_read(blob, &piece, trouble)) == 0 && piece.len)
        if (!buffer_append(ret, piece.data, piece.len))
            code = image_fail(trouble, -ENOMEM, "out of memory");
    oci_blob_close(&blob);
    return code;
}
