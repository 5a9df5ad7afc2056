#include "workers/images/oci/layer.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/files/dir_stream.h"
#include "workers/files/dirtree.h"

#define WHITEOUT ".wh."
#define OPAQUE ".wh..wh..opq"

struct layer {
    struct rootfs *rootfs;
    struct oci_unpacked *unpacked;
    struct archive *archive;
    bool is_broken; /* its bytes could not be read: the trouble says why */
    void *own;      /* tsearch: paths this layer has made */
};

static int refuse_path(const struct layer *layer, const char *path, const char *why)
{
    return image_refuse(layer->rootfs->trouble, IMAGE_REFUSAL_OCI_LAYER, "a layer holds %.200s: %s", path, why);
}

/* ---- what is this layer's own --------------------------------------------------------------------- */

static int compare_paths(const void *a, const void *b) { return strcmp(a, b); }

static bool is_own(struct layer *layer, const char *path) { return tfind(path, &layer->own, compare_paths) != NULL; }

static int add_own(struct layer *layer, const char *path)
{
    if (is_own(layer, path))
        return 0;
    char *copy = strdup(path);
    if (copy && tsearch(copy, &layer->own, compare_paths))
        return 0;
    free(copy);
    return image_fail(layer->rootfs->trouble, -ENOMEM, "out of memory");
}

/* The path and the directories above it, which tars need not name. */
static int claim(struct layer *layer, const char *path)
{
    AUTO_FREE char *part = strdup(path);
    int code = part ? add_own(layer, part) : image_fail(layer->rootfs->trouble, -ENOMEM, "out of memory");
    for (char *slash; code == 0 && (slash = strrchr(part, '/'));) {
        *slash = '\0';
        if (is_own(layer, part))
            break;
        code = add_own(layer, part);
    }
    return code;
}

/* ---- whiteouts -------------------------------------------------------------------------------------- */

static int clear_below(struct layer *layer, const char *path, int depth);

/* Removes what came from below at `path`: all of it, or what of a directory is not this layer's. */
static int clear(struct layer *layer, const char *path, int depth)
{
    if (is_own(layer, path))
        return clear_below(layer, path, depth);
    return rootfs_remove(layer->rootfs, path);
}

static int clear_name(struct layer *layer, const char *dir, const char *name, int depth)
{
    AUTO_FREE char *path = NULL;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return 0;
    if (asprintf(&path, "%s%s%s", dir, *dir ? "/" : "", name) < 0) {
        path = NULL;
        return image_fail(layer->rootfs->trouble, -ENOMEM, "out of memory");
    }
    return clear(layer, path, depth + 1);
}

static int clear_below(struct layer *layer, const char *path, int depth)
{
    AUTO_CLOSE int dir = dirtree_open(layer->rootfs->root, path, O_RDONLY | O_DIRECTORY);
    AUTO_DIR stream = dir < 0 ? NULL : dir_stream_open(dir);
    const struct dirent *entry;
    int code = 0;
    if (depth > TREE_DEPTH_MAX)
        return refuse_path(layer, path, "too many levels");
    while (stream && (code = dir_stream_next(stream, &entry)) > 0)
        if ((code = clear_name(layer, path, entry->d_name, depth)) < 0)
            return code;
    return code < 0 ? image_fail_errno(layer->rootfs->trouble, "read", path) : 0;
}

/* ".wh.NAME" and ".wh..wh..opq"; a marker that names nothing is passed over. */
static int take_marker(struct layer *layer, const char *path)
{
    const char *leaf = dirtree_leaf(path), *name = leaf + strlen(WHITEOUT);
    size_t above = (size_t)(leaf - path);
    AUTO_FREE char *target = strdup(path);
    if (!target)
        return image_fail(layer->rootfs->trouble, -ENOMEM, "out of memory");
    if (strcmp(leaf, OPAQUE) == 0) {
        target[above ? above - 1 : 0] = '\0';
        return clear_below(layer, target, 0);
    }
    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strncmp(name, WHITEOUT, strlen(WHITEOUT)) == 0)
        return 0;
    memmove(target + above, name, strlen(name) + 1);
    return clear(layer, target, 0);
}

/* ---- entries ------------------------------------------------------------------------------------------ */

static int refuse_archive(struct layer *layer)
{
    struct image_trouble *trouble = layer->rootfs->trouble;
    if (layer->is_broken)
        return trouble->fail.code;
    const char *why = archive_error_string(layer->archive);
    return image_refuse(trouble, IMAGE_REFUSAL_OCI_LAYER, "a layer is not an archive: %.200s", why ? why : "?");
}

static int write_data(struct layer *layer, int file)
{
    const void *data;
    size_t len;
    int64_t offset;
    for (;;) {
        int got = archive_read_data_block(layer->archive, &data, &len, &offset);
        if (got == ARCHIVE_EOF)
            return 0;
        if (got < ARCHIVE_WARN || offset < 0)
            return refuse_archive(layer);
        int code = rootfs_write(layer->rootfs, file, data, len, (uint64_t)offset);
        if (code < 0)
            return code;
    }
}

static int set_attributes(struct layer *layer, struct archive_entry *from, const char *path)
{
    const char *name;
    const void *value;
    size_t len;
    int code = 0;
    archive_entry_xattr_reset(from);
    while (code == 0 && archive_entry_xattr_next(from, &name, &value, &len) == ARCHIVE_OK)
        code = rootfs_set_attribute(layer->rootfs, path, name, slice_of(value, len));
    return code;
}

static int make_file(struct layer *layer, struct archive_entry *from, const struct rootfs_entry *entry)
{
    int64_t size = archive_entry_size(from);
    if (size < 0)
        return refuse_path(layer, entry->path, "a negative size");
    AUTO_CLOSE int file = rootfs_open_file(layer->rootfs, entry, (uint64_t)size);
    if (file < 0)
        return file;
    int code = write_data(layer, file);
    if (code == 0)
        code = set_attributes(layer, from, entry->path);
    return code < 0 ? code : rootfs_end_file(layer->rootfs, file, entry, (uint64_t)size);
}

static int make_link(struct layer *layer, const char *to, const struct rootfs_entry *entry)
{
    AUTO_FREE char *target = dirtree_clean_path(to);
    if (!target || !target[0])
        return refuse_path(layer, entry->path, "a hard link that leads out");
    return rootfs_add_link(layer->rootfs, entry, target);
}

static int make_dir(struct layer *layer, struct archive_entry *from, const struct rootfs_entry *entry)
{
    int code = rootfs_add_dir(layer->rootfs, entry);
    return code < 0 ? code : set_attributes(layer, from, entry->path);
}

static int make_entry(struct layer *layer, struct archive_entry *from, const struct rootfs_entry *entry)
{
    mode_t type = archive_entry_filetype(from);
    const char *link = archive_entry_hardlink(from), *target = archive_entry_symlink(from);
    if (link)
        return make_link(layer, link, entry);
    if (S_ISREG(type))
        return make_file(layer, from, entry);
    if (S_ISDIR(type))
        return make_dir(layer, from, entry);
    if (S_ISLNK(type))
        return target && *target ? rootfs_add_symlink(layer->rootfs, entry, target)
                                 : refuse_path(layer, entry->path, "a symlink to nothing");
    rootfs_leave_out(layer->rootfs, type);
    return rootfs_remove(layer->rootfs, entry->path); /* it hides what was there */
}

static int take_entry(struct layer *layer, struct archive_entry *from)
{
    int code = rootfs_step(layer->rootfs);
    const char *name = archive_entry_pathname(from);
    AUTO_FREE char *path = name ? dirtree_clean_path(name) : NULL;
    if (code < 0)
        return code;
    if (!path)
        return refuse_path(layer, name ? name : "an entry", "its path leads out or is too long");
    if (!path[0]) /* the root itself */
        return 0;
    if (strncmp(dirtree_leaf(path), WHITEOUT, strlen(WHITEOUT)) == 0)
        return take_marker(layer, path);
    const struct rootfs_entry entry = {.path = path,
                                       .mode = archive_entry_perm(from),
                                       .mtime = {archive_entry_mtime(from), archive_entry_mtime_nsec(from)}};
    code = make_entry(layer, from, &entry);
    return code < 0 ? code : claim(layer, path);
}

/* ---- the archive --------------------------------------------------------------------------------------- */

static ssize_t read_unpacked(struct archive *archive, void *arg, const void **ret)
{
    struct layer *layer = arg;
    struct slice piece;
    if (oci_unpacked_read(layer->unpacked, &piece) < 0) {
        layer->is_broken = true;
        archive_set_error(archive, EIO, "%s", layer->rootfs->trouble->fail.text);
        return -1;
    }
    *ret = piece.data;
    return (ssize_t)piece.len;
}

static int take_entries(struct layer *layer)
{
    struct archive_entry *entry;
    for (;;) {
        int got = archive_read_next_header(layer->archive, &entry);
        if (got == ARCHIVE_EOF)
            return 0;
        if (got < ARCHIVE_WARN) /* warnings are about names that are not text, which is fine */
            return refuse_archive(layer);
        int code = take_entry(layer, entry);
        if (code < 0)
            return code;
    }
}

/* What follows the archive's end counts for the digests. */
static int read_to_end(struct layer *layer)
{
    struct slice rest;
    int code;
    do
        code = oci_unpacked_read(layer->unpacked, &rest);
    while (code == 0 && rest.len);
    return code;
}

static bool open_archive(struct layer *layer)
{
    struct archive *archive = layer->archive = archive_read_new();
    return archive && archive_read_support_format_tar(archive) >= ARCHIVE_WARN &&
           archive_read_support_format_empty(archive) >= ARCHIVE_WARN;
}

int oci_layer_apply(struct oci_unpacked *unpacked, struct rootfs *rootfs)
{
    struct layer layer = {.rootfs = rootfs, .unpacked = unpacked};
    int code;
    if (!open_archive(&layer))
        code = image_fail(rootfs->trouble, -ENOMEM, "out of memory");
    else if (archive_read_open(layer.archive, &layer, NULL, read_unpacked, NULL) != ARCHIVE_OK)
        code = refuse_archive(&layer);
    else if ((code = take_entries(&layer)) == 0)
        code = read_to_end(&layer);
    if (layer.archive)
        archive_read_free(layer.archive);
    tdestroy(layer.own, free);
    return code;
}
