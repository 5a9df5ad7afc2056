#include "workers/image/oci_blob.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/cleanup.h"

enum { CHUNK = 128 * 1024 };

struct oci_blob {
    int file;
    struct oci_descriptor descriptor;
    uint64_t left;
    struct digest *hash;
    uint8_t chunk[CHUNK];
};

void oci_blob_close(struct oci_blob **blob)
{
    struct oci_blob *gone = take_ptr(blob);
    if (!gone)
        return;
    cleanup_close(&gone->file);
    digest_drop(&gone->hash);
    free(gone);
}

static int open_file(int layout, const struct oci_descriptor *descriptor,
                     struct image_trouble *trouble)
{
    char path[DIGEST_SIZE + 16];
    struct stat it;
    const char *hex = descriptor->digest + strlen("sha256:"); /* checked when it was read */
    snprintf(path, sizeof(path), "blobs/sha256/%s", hex);
    AUTO_CLOSE int file = openat(layout, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (file < 0 && errno == ENOENT)
        return image_refuse(trouble, IMAGE_REFUSAL_OCI_BLOB, "there is no blob %s",
                            descriptor->digest);
    if (file < 0 || fstat(file, &it) < 0)
        return image_refuse(trouble, IMAGE_REFUSAL_UNREADABLE, "cannot read the blob %s: %s",
                            descriptor->digest, strerror(errno));
    if (!S_ISREG(it.st_mode) || (uint64_t)it.st_size != descriptor->size)
        return image_refuse(trouble, IMAGE_REFUSAL_OCI_BLOB,
                            "the blob %s is %lld bytes long, not the %llu that were promised",
                            descriptor->digest, (long long)it.st_size,
                            (unsigned long long)descriptor->size);
    return take_fd(&file);
}

struct oci_blob *oci_blob_open(int layout, const struct oci_descriptor *descriptor,
                               struct image_trouble *trouble)
{
    AUTO_CLOSE int file = open_file(layout, descriptor, trouble);
    struct oci_blob *blob = file < 0 ? NULL : calloc(1, sizeof(*blob));
    if (!blob) {
        if (file >= 0)
            image_fail(trouble, -ENOMEM, "out of memory");
        return NULL;
    }
    blob->file = take_fd(&file);
    blob->descriptor = *descriptor;
    blob->left = descriptor->size;
    if (!(blob->hash = digest_begin())) {
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
    if (blob->left == 0)
        return blob->hash ? verify(blob, trouble) : 0;
    size_t want = blob->left < CHUNK ? (size_t)blob->left : CHUNK;
    ssize_t got;
    do
        got = read(blob->file, blob->chunk, want);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return image_refuse(trouble, IMAGE_REFUSAL_UNREADABLE, "cannot read the blob %s: %s",
                            blob->descriptor.digest, strerror(errno));
    if (got == 0)
        return image_refuse(trouble, IMAGE_REFUSAL_CHANGED, "the blob %s became shorter",
                            blob->descriptor.digest);
    digest_add(blob->hash, slice_of(blob->chunk, (size_t)got));
    blob->left -= (uint64_t)got;
    *ret = slice_of(blob->chunk, (size_t)got);
    return 0;
}

int oci_blob_read_whole(int layout, const struct oci_descriptor *descriptor, struct buffer *ret,
                        struct image_trouble *trouble)
{
    if (descriptor->size > OCI_DOCUMENT_MAX)
        return image_refuse(trouble, IMAGE_REFUSAL_OCI_DOCUMENT,
                            "the blob %s is %llu bytes long, more than a document of %d",
                            descriptor->digest, (unsigned long long)descriptor->size,
                            OCI_DOCUMENT_MAX);
    struct oci_blob *blob = oci_blob_open(layout, descriptor, trouble);
    struct slice piece;
    int code = blob ? 0 : trouble->fail.code;
    while (code == 0 && (code = oci_blob_read(blob, &piece, trouble)) == 0 && piece.len)
        if (!buffer_append(ret, piece.data, piece.len))
            code = image_fail(trouble, -ENOMEM, "out of memory");
    oci_blob_close(&blob);
    return code;
}
