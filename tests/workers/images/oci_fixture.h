/* oci_fixture.h - OCI image layouts written by hand, so that a test can make any of it wrong. */
#ifndef SLUICE_TESTS_WORKERS_IMAGES_OCI_FIXTURE_H
#define SLUICE_TESTS_WORKERS_IMAGES_OCI_FIXTURE_H

#include "tests/workers/images/image_fixture.h"

#include <archive.h>
#include <archive_entry.h>
#include <locale.h>

#include "common/digest/digest.h"

enum packing { PLAIN, GZIP, ZSTD };

struct tar_item {
    const char *path;
    mode_t type;
    const char *text; /* of a file; of a link what it points to */
    bool is_hard_link;
};

struct blob {
    char digest[DIGEST_SIZE];
    size_t size;
    char diff_id[DIGEST_SIZE]; /* of a layer, unpacked */
};

static const char *const layer_type[] = {
    [PLAIN] = "application/vnd.oci.image.layer.v1.tar",
    [GZIP] = "application/vnd.oci.image.layer.v1.tar+gzip",
    [ZSTD] = "application/vnd.oci.image.layer.v1.tar+zstd",
};

static inline void make_layout(const char *name)
{
    char path[320];
    const char *const dirs[] = {"", "/blobs", "/blobs/sha256"};
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "%s/%s%s", directory, name, dirs[i]);
        assert_int_equal(mkdir(path, 0755), 0);
    }
    snprintf(path, sizeof(path), "%s/oci-layout", name);
    write_image(path, "{\"imageLayoutVersion\":\"1.0.0\"}", 30);
}

static inline struct blob put_blob(const char *layout, const void *data, size_t size)
{
    struct blob blob = {.size = size};
    char path[320];
    assert_true(digest_of(slice_of(data, size), blob.digest));
    strcpy(blob.diff_id, blob.digest);
    snprintf(path, sizeof(path), "%s/blobs/sha256/%s", layout, blob.digest + 7);
    write_image(path, data, size);
    return blob;
}

static inline void put_item(struct archive *archive, const struct tar_item *item)
{
    struct archive_entry *entry = archive_entry_new();
    archive_entry_set_pathname(entry, item->path);
    archive_entry_set_perm(entry, S_ISDIR(item->type) ? 0755 : 0644);
    archive_entry_set_mtime(entry, 1000000000, 0);
    archive_entry_set_uid(entry, 4711);
    if (item->is_hard_link)
        archive_entry_set_hardlink(entry, item->text);
    else {
        archive_entry_set_filetype(entry, item->type);
        if (S_ISLNK(item->type))
            archive_entry_set_symlink(entry, item->text);
        if (S_ISREG(item->type))
            archive_entry_set_size(entry, item->text ? (int64_t)strlen(item->text) : 0);
    }
    assert_true(archive_write_header(archive, entry) >= ARCHIVE_WARN); /* odd names */
    if (S_ISREG(item->type) && item->text && !item->is_hard_link)
        assert_int_equal(archive_write_data(archive, item->text, strlen(item->text)), (ssize_t)strlen(item->text));
    archive_entry_free(entry);
}

/* Items up to one without a path, as a tar in `bytes`; its length. */
static inline size_t make_tar(char *bytes, size_t size, enum packing packing, const struct tar_item *items)
{
    size_t used = 0;
    locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", NULL), before = uselocale(utf8);
    struct archive *archive = archive_write_new();
    assert_int_equal(archive_write_set_format_pax_restricted(archive), ARCHIVE_OK);
    if (packing == GZIP)
        assert_int_equal(archive_write_add_filter_gzip(archive), ARCHIVE_OK);
    if (packing == ZSTD)
        assert_int_equal(archive_write_add_filter_zstd(archive), ARCHIVE_OK);
    assert_int_equal(archive_write_set_bytes_per_block(archive, 0), ARCHIVE_OK); /* no padding */
    assert_int_equal(archive_write_open_memory(archive, bytes, size, &used), ARCHIVE_OK);
    for (; items->path; items++)
        put_item(archive, items);
    assert_int_equal(archive_write_close(archive), ARCHIVE_OK);
    archive_write_free(archive);
    uselocale(before); /* what reads must not need it */
    freelocale(utf8);
    return used;
}

static inline struct blob put_layer(const char *layout, enum packing packing, const struct tar_item *items)
{
    static char bytes[8 << 20];
    struct blob blob;
    char diff_id[DIGEST_SIZE];
    size_t size = make_tar(bytes, sizeof(bytes), PLAIN, items);
    assert_true(digest_of(slice_of(bytes, size), diff_id));
    blob = put_blob(layout, bytes, make_tar(bytes, sizeof(bytes), packing, items));
    strcpy(blob.diff_id, diff_id);
    return blob;
}

/* The config of `layers` layers, and the manifest over them. `architecture` may be NULL: ours. */
static inline struct blob put_manifest(const char *layout, const struct blob *layers, const enum packing *packings,
                                       size_t count, const char *architecture)
{
    AUTO_BUFFER config = {0}, manifest = {0};
    buffer_printf(&config,
                  "{\"architecture\":\"%s\",\"os\":\"linux\",\"rootfs\":{\"type\":\"layers\","
                  "\"diff_ids\":[",
                  architecture ? architecture : image_architecture());
    for (size_t i = 0; i < count; i++)
        buffer_printf(&config, "%s\"%s\"", i ? "," : "", layers[i].diff_id);
    buffer_append_str(&config, "]}}");
    struct blob blob = put_blob(layout, config.data, config.len);
    buffer_printf(&manifest,
                  "{\"schemaVersion\":2,\"config\":{\"mediaType\":"
                  "\"application/vnd.oci.image.config.v1+json\",\"digest\":\"%s\",\"size\":%zu},"
                  "\"layers\":[",
                  blob.digest, blob.size);
    for (size_t i = 0; i < count; i++)
        buffer_printf(&manifest, "%s{\"mediaType\":\"%s\",\"digest\":\"%s\",\"size\":%zu}", i ? "," : "",
                      layer_type[packings[i]], layers[i].digest, layers[i].size);
    buffer_append_str(&manifest, "]}");
    return put_blob(layout, manifest.data, manifest.len);
}

struct indexed {
    struct blob blob;
    const char *tag, *architecture; /* both may be NULL */
};

static inline void put_index(const char *layout, const struct indexed *manifests, size_t count)
{
    char path[320];
    AUTO_BUFFER index = {0};
    buffer_append_str(&index, "{\"schemaVersion\":2,\"manifests\":[");
    for (size_t i = 0; i < count; i++) {
        buffer_printf(&index,
                      "%s{\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\","
                      "\"digest\":\"%s\",\"size\":%zu",
                      i ? "," : "", manifests[i].blob.digest, manifests[i].blob.size);
        if (manifests[i].architecture)
            buffer_printf(&index, ",\"platform\":{\"os\":\"linux\",\"architecture\":\"%s\"}",
                          manifests[i].architecture);
        if (manifests[i].tag)
            buffer_printf(&index, ",\"annotations\":{\"org.opencontainers.image.ref.name\":\"%s\"}", manifests[i].tag);
        buffer_append_str(&index, "}");
    }
    buffer_append_str(&index, "]}");
    snprintf(path, sizeof(path), "%s/index.json", layout);
    write_image(path, index.data, index.len);
}

/* <directory>/<name>: the layout's files behind one another in a tar, as `podman save` makes it. */
static inline const char *put_archive(const char *layout, const char *name)
{
    char command[1400];
    snprintf(command, sizeof(command), "tar -C '%s/%s' -cf '%s/%s' .", directory, layout, directory, name);
    assert_int_equal(system(command), 0);
    return in_directory(name);
}

/* A layout of one image of at most 4 plain layers. */
static inline const char *make_image(const char *layout, const struct tar_item *const *layers, size_t count)
{
    static const enum packing plain[4] = {PLAIN, PLAIN, PLAIN, PLAIN};
    struct blob blobs[4];
    make_layout(layout);
    for (size_t i = 0; i < count; i++)
        blobs[i] = put_layer(layout, PLAIN, layers[i]);
    struct indexed one = {.blob = put_manifest(layout, blobs, plain, count, NULL)};
    put_index(layout, &one, 1);
    return in_directory(layout);
}

#endif
