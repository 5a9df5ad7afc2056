#include "workers/images/oci/unpacked.h"

#include <archive.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"

/* Of one layer, beside the bytes of its files: what a tar takes for an entry, at most. */
enum { ENTRY_BYTES = 4096 };

struct oci_unpacked {
    struct oci_blob *blob;
    const char *diff_id;
    struct rootfs *rootfs;
    struct image_trouble blob_trouble; /* why the blob could not be read */
    struct archive *filter;
    struct digest *hash;
    uint64_t size;
    bool ended;
};

static ssize_t read_blob(struct archive *archive, void *arg, const void **ret)
{
    struct oci_unpacked *unpacked = arg;
    struct slice piece;
    if (oci_blob_read(unpacked->blob, &piece, &unpacked->blob_trouble) < 0) {
        archive_set_error(archive, EIO, "%s", unpacked->blob_trouble.fail.text);
        return -1;
    }
    *ret = piece.data;
    return (ssize_t)piece.len;
}

static int refuse_layer(struct oci_unpacked *unpacked)
{
    struct image_trouble *trouble = unpacked->rootfs->trouble;
    if (unpacked->blob_trouble.fail.code < 0) {
        *trouble = unpacked->blob_trouble;
        return trouble->fail.code;
    }
    const char *why = archive_error_string(unpacked->filter);
    return image_refuse(trouble, IMAGE_REFUSAL_OCI_LAYER, "a layer cannot be decompressed: %.200s", why ? why : "?");
}

static bool open_filter(struct oci_unpacked *unpacked)
{
    struct archive *filter = unpacked->filter = archive_read_new();
    return filter && (unpacked->hash = digest_begin()) && archive_read_support_filter_gzip(filter) >= ARCHIVE_WARN &&
           archive_read_support_filter_zstd(filter) >= ARCHIVE_WARN &&
           archive_read_support_format_raw(filter) >= ARCHIVE_WARN &&
           archive_read_support_format_empty(filter) >= ARCHIVE_WARN;
}

static int begin(struct oci_unpacked *unpacked)
{
    struct archive_entry *whole;
    if (!open_filter(unpacked))
        return image_fail(unpacked->rootfs->trouble, -ENOMEM, "out of memory");
    if (archive_read_open(unpacked->filter, unpacked, NULL, read_blob, NULL) != ARCHIVE_OK)
        return refuse_layer(unpacked);
    int got = archive_read_next_header(unpacked->filter, &whole);
    unpacked->ended = got == ARCHIVE_EOF; /* a blob of no bytes */
    return got < ARCHIVE_WARN && got != ARCHIVE_EOF ? refuse_layer(unpacked) : 0;
}

struct oci_unpacked *oci_unpacked_open(struct oci_blob *blob, const char *diff_id, struct rootfs *rootfs)
{
    struct oci_unpacked *unpacked = calloc(1, sizeof(*unpacked));
    if (!unpacked) {
        image_fail(rootfs->trouble, -ENOMEM, "out of memory");
        return NULL;
    }
    unpacked->blob = blob;
    unpacked->diff_id = diff_id;
    unpacked->rootfs = rootfs;
    if (begin(unpacked) < 0)
        oci_unpacked_close(&unpacked);
    return unpacked;
}

void oci_unpacked_close(struct oci_unpacked **unpacked)
{
    struct oci_unpacked *gone = take_ptr(unpacked);
    if (!gone)
        return;
    if (gone->filter)
        archive_read_free(gone->filter);
    digest_drop(&gone->hash);
    free(gone);
}

/* What follows the packed bytes counts for the blob's digest. */
static int read_rest(struct oci_unpacked *unpacked)
{
    struct slice rest;
    int code;
    do
        code = oci_blob_read(unpacked->blob, &rest, unpacked->rootfs->trouble);
    while (code == 0 && rest.len);
    return code;
}

static int verify(struct oci_unpacked *unpacked)
{
    char found[DIGEST_SIZE];
    int code = read_rest(unpacked);
    if (code < 0)
        return code;
    if (!digest_end(&unpacked->hash, found))
        return image_fail(unpacked->rootfs->trouble, -ENOMEM, "out of memory");
    if (strcmp(found, unpacked->diff_id) == 0)
        return 0;
    return image_refuse(unpacked->rootfs->trouble, IMAGE_REFUSAL_OCI_BLOB,
                        "the layer %s unpacks to %s, but the image's config says %s", oci_blob_digest(unpacked->blob),
                        found, unpacked->diff_id);
}

static int count(struct oci_unpacked *unpacked, size_t len)
{
    const struct rootfs_limits *limits = &unpacked->rootfs->limits;
    if (atomic_load(unpacked->rootfs->stop))
        return image_fail(unpacked->rootfs->trouble, -ECANCELED, "stopped");
    unpacked->size += len;
    return unpacked->size / 2 <= limits->bytes / 2 + limits->entries * (ENTRY_BYTES / 2)
               ? 0
               : image_refuse(unpacked->rootfs->trouble, IMAGE_REFUSAL_TOO_LARGE,
                              "a layer unpacks to more than %llu bytes (limit: bytes)",
                              (unsigned long long)limits->bytes);
}

int oci_unpacked_read(struct oci_unpacked *unpacked, struct slice *ret)
{
    const void *data = NULL;
    size_t len = 0;
    int64_t offset;
    *ret = slice_of(NULL, 0);
    while (!unpacked->ended && len == 0) {
        int got = archive_read_data_block(unpacked->filter, &data, &len, &offset);
        if (got < ARCHIVE_WARN && got != ARCHIVE_EOF)
            return refuse_layer(unpacked);
        unpacked->ended = got == ARCHIVE_EOF;
        len = unpacked->ended ? 0 : len;
    }
    if (len == 0)
        return unpacked->hash ? verify(unpacked) : 0; /* once: reading on is the end again */
    digest_add(unpacked->hash, slice_of(data, len));
    *ret = slice_of(data, len);
    return count(unpacked, len);
}
