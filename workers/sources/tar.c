/* Nothing of it is trusted: rootfs.h makes the entries, and these are those it may have. */
#include "workers/sources/tar.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/files/dirtree.h"

static int refuse_entry(struct copying *copying, const char *path, const char *why)
{
    return image_refuse(copying->rootfs->trouble, IMAGE_REFUSAL_CORRUPT, "it holds %.200s: %s", path, why);
}

static int refuse_archive(struct copying *copying, struct archive *archive)
{
    const char *why = archive_error_string(archive);
    return image_refuse(copying->rootfs->trouble, IMAGE_REFUSAL_CORRUPT, "it is not a tar: %.200s", why ? why : "?");
}

static int write_data(struct copying *copying, struct archive *archive, int file)
{
    const void *data;
    size_t len;
    int64_t offset;
    for (;;) {
        int got = archive_read_data_block(archive, &data, &len, &offset);
        if (got == ARCHIVE_EOF)
            return 0;
        if (got < ARCHIVE_WARN || offset < 0)
            return refuse_archive(copying, archive);
        int code = rootfs_write(copying->rootfs, file, data, len, (uint64_t)offset);
        if (code < 0)
            return code;
    }
}

/* What an entry holds that has no content here, or nobody wants. */
static int pass_over_data(struct copying *copying, struct archive *archive)
{
    const void *data;
    size_t len = 0;
    int64_t offset;
    for (int got; (got = archive_read_data_block(archive, &data, &len, &offset)) != ARCHIVE_EOF;) {
        if (got < ARCHIVE_WARN)
            return refuse_archive(copying, archive);
        int code = rootfs_pass_over(copying->rootfs, len);
        if (code < 0)
            return code;
    }
    return 0;
}

static int make_file(struct copying *copying, struct archive *archive, struct archive_entry *from,
                     const struct rootfs_entry *entry)
{
    int64_t size = archive_entry_size(from);
    if (size < 0)
        return refuse_entry(copying, entry->path, "a negative size");
    AUTO_CLOSE int file = rootfs_open_file(copying->rootfs, entry, (uint64_t)size);
    if (file < 0)
        return file;
    int code = write_data(copying, archive, file);
    return code < 0 ? code : rootfs_end_file(copying->rootfs, file, entry, (uint64_t)size);
}

/* What it leads to must be in the archive, before it. */
static int make_link(struct copying *copying, const char *to, const struct rootfs_entry *entry)
{
    AUTO_FREE char *clean = dirtree_clean_path(to);
    AUTO_FREE char *target = clean && clean[0] ? copying_place(copying, clean) : NULL;
    if (!clean || !clean[0])
        return refuse_entry(copying, entry->path, "a hard link that leads out of it");
    return target ? rootfs_add_link(copying->rootfs, entry, target) : copying->rootfs->trouble->fail.code;
}

static int make_entry(struct copying *copying, struct archive *archive, struct archive_entry *from,
                      const struct rootfs_entry *entry)
{
    const mode_t type = archive_entry_filetype(from);
    const char *link = archive_entry_hardlink(from), *target = archive_entry_symlink(from);
    if (link)
        return make_link(copying, link, entry);
    if (S_ISREG(type))
        return make_file(copying, archive, from, entry);
    if (S_ISDIR(type))
        return rootfs_add_dir(copying->rootfs, entry);
    if (S_ISLNK(type) && target && *target)
        return rootfs_add_symlink(copying->rootfs, entry, target);
    return refuse_entry(copying, entry->path, "it is neither a file, a directory nor a symbolic link");
}

static int take_entry(struct copying *copying, struct archive *archive, struct archive_entry *from)
{
    const char *name = archive_entry_pathname(from);
    AUTO_FREE char *clean = name ? dirtree_clean_path(name) : NULL;
    int code = rootfs_step(copying->rootfs);
    if (code < 0)
        return code;
    if (!clean)
        return refuse_entry(copying, name ? name : "an entry", "its name is absolute, has \"..\", or is too long");
    if (!clean[0]) /* the top itself */
        return 0;
    AUTO_FREE char *place = copying_place(copying, clean);
    if (!place)
        return copying->rootfs->trouble->fail.code;
    const struct rootfs_entry entry = {.path = place,
                                       .mode = archive_entry_perm(from),
                                       .mtime = {archive_entry_mtime(from), archive_entry_mtime_nsec(from)}};
    return make_entry(copying, archive, from, &entry);
}

static int take_entries(struct copying *copying, struct archive *archive)
{
    struct archive_entry *entry;
    for (;;) {
        int got = archive_read_next_header(archive, &entry);
        if (got == ARCHIVE_EOF)
            return 0;
        if (got < ARCHIVE_WARN) /* warnings are about names that are not text, which is fine */
            return refuse_archive(copying, archive);
        int code = take_entry(copying, archive, entry);
        if (code == 0)
            code = pass_over_data(copying, archive);
        if (code < 0)
            return code;
    }
}

static struct archive *open_archive(int fd)
{
    struct archive *archive = archive_read_new();
    if (!archive)
        return NULL;
    archive_read_support_format_tar(archive);
    archive_read_support_filter_gzip(archive);
    archive_read_support_filter_zstd(archive);
    archive_read_support_filter_xz(archive);
    archive_read_open_fd(archive, fd, COPYING_CHUNK); /* what fails here is said at the first entry */
    return archive;
}

int source_tar_copy(struct copying *copying, int fd, const struct stat *it)
{
    struct archive *archive = open_archive(fd);
    if (!archive)
        return image_fail(copying->rootfs->trouble, -ENOMEM, "out of memory");
    int code = take_entries(copying, archive);
    archive_read_free(archive);
    return code < 0 || copying_is_same(fd, it) ? code : copying_changed(copying, "");
}

bool source_tar_is(int fd)
{
    struct archive_entry *entry;
    struct archive *archive = open_archive(fd);
    const bool is_tar = archive && archive_read_next_header(archive, &entry) >= ARCHIVE_WARN;
    archive_read_free(archive);
    return is_tar;
}
