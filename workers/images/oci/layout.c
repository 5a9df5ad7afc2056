#include "workers/images/oci/layout.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "workers/files/dirtree.h"

enum { TAR_BLOCK = 512, READ_BLOCK = 65536, ENTRIES_MAX = 65536, PATH_SIZE = 96 };

struct member {
    char path[PATH_SIZE];
    uint64_t offset, size;
};

struct oci_layout {
    int file;
    bool is_archive;
    uint64_t file_size;
    struct member *members; /* of an archive, in its order */
    size_t count, capacity;
};

bool oci_layout_is_directory(int dir) { return faccessat(dir, "oci-layout", F_OK, 0) == 0; }

bool oci_layout_is_archive(int file)
{
    char magic[5];
    return pread(file, magic, sizeof(magic), 257) == sizeof(magic) && memcmp(magic, "ustar", sizeof(magic)) == 0;
}

/* ---- the members of an archive -------------------------------------------------------------------- */

static bool is_of_layout(const char *path)
{
    return strcmp(path, "oci-layout") == 0 || strcmp(path, "index.json") == 0 || strcmp(path, "manifest.json") == 0 ||
           strncmp(path, "blobs/sha256/", 13) == 0;
}

static int add_member(struct oci_layout *layout, const struct member *member, struct image_trouble *trouble)
{
    if (layout->count == layout->capacity) {
        size_t capacity = layout->capacity ? 2 * layout->capacity : 64;
        struct member *grown = realloc(layout->members, capacity * sizeof(*grown));
        if (!grown)
            return image_fail(trouble, -ENOMEM, "out of memory");
        layout->members = grown;
        layout->capacity = capacity;
    }
    layout->members[layout->count++] = *member;
    return 0;
}

/* What is no plain file, or no part of a layout, has no path. */
static struct member look_at(struct archive_entry *entry)
{
    struct member member = {.path = ""};
    const char *name = archive_entry_pathname(entry);
    AUTO_FREE char *path = name ? dirtree_clean_path(name) : NULL;
    bool is_file = archive_entry_filetype(entry) == S_IFREG && !archive_entry_hardlink(entry);
    if (path && is_file && archive_entry_size(entry) >= 0 && strlen(path) < PATH_SIZE && is_of_layout(path)) {
        strcpy(member.path, path);
        member.size = (uint64_t)archive_entry_size(entry);
    }
    return member;
}

/* Its data ends, with padding, where the next header begins. */
static int place(struct oci_layout *layout, struct member *member, int64_t next, struct image_trouble *trouble)
{
    uint64_t end = next < 0 ? 0 : (uint64_t)next, size = member->size;
    if (!member->path[0])
        return 0;
    uint64_t padded = size > UINT64_MAX - TAR_BLOCK ? size : (size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
    if (padded > end || end - padded > layout->file_size || layout->file_size - (end - padded) < size)
        return image_refuse(trouble, IMAGE_REFUSAL_TRUNCATED, "the archive ends within %.80s, or before it",
                            member->path);
    member->offset = end - padded;
    return add_member(layout, member, trouble);
}

static int scan_entries(struct oci_layout *layout, struct archive *archive, struct image_trouble *trouble)
{
    struct archive_entry *entry;
    struct member before = {.path = ""};
    for (size_t i = 0; i <= ENTRIES_MAX; i++) {
        int got = archive_read_next_header(archive, &entry);
        if (got < ARCHIVE_WARN)
            return image_refuse(trouble, IMAGE_REFUSAL_TRUNCATED, "the archive cannot be read: %.200s",
                                archive_error_string(archive) ? archive_error_string(archive) : "?");
        int code = place(layout, &before, archive_read_header_position(archive), trouble);
        if (code < 0 || got == ARCHIVE_EOF)
            return code;
        before = look_at(entry);
    }
    return image_refuse(trouble, IMAGE_REFUSAL_TOO_LARGE, "the archive holds more than %d files", ENTRIES_MAX);
}

static int scan(struct oci_layout *layout, struct image_trouble *trouble)
{
    struct archive *archive = archive_read_new();
    int code = archive && archive_read_support_format_tar(archive) >= ARCHIVE_WARN
                   ? 0
                   : image_fail(trouble, -ENOMEM, "out of memory");
    if (code == 0 &&
        (lseek(layout->file, 0, SEEK_SET) < 0 || archive_read_open_fd(archive, layout->file, READ_BLOCK) != ARCHIVE_OK))
        code = image_refuse(trouble, IMAGE_REFUSAL_UNREADABLE, "cannot read the archive: %s", strerror(errno));
    if (code == 0)
        code = scan_entries(layout, archive, trouble);
    if (archive)
        archive_read_free(archive);
    return code;
}

static const struct member *find_member(const struct oci_layout *layout, const char *path)
{
    for (size_t i = layout->count; i > 0; i--)
        if (strcmp(layout->members[i - 1].path, path) == 0)
            return &layout->members[i - 1];
    return NULL;
}

static int check_is_layout(const struct oci_layout *layout, struct image_trouble *trouble)
{
    if (find_member(layout, "oci-layout"))
        return 0;
    if (find_member(layout, "manifest.json"))
        return image_refuse(trouble, IMAGE_REFUSAL_OCI_LAYOUT,
                            "what `docker save` wrote before Docker 25: run `skopeo copy "
                            "docker-archive:FILE.tar oci-archive:OTHER.tar`, and name that");
    return image_refuse(trouble, IMAGE_REFUSAL_OCI_LAYOUT,
                        "a tar file that holds no OCI layout (of a root file system: unpack it, "
                        "and name the directory)");
}

/* ---- layouts ---------------------------------------------------------------------------------------- */

struct oci_layout *oci_layout_open(int file, struct image_trouble *trouble)
{
    struct stat it;
    struct oci_layout *layout = calloc(1, sizeof(*layout));
    if (!layout || fstat(file, &it) < 0) {
        image_fail(trouble, -ENOMEM, "out of memory");
        free(layout);
        return NULL;
    }
    layout->file = file;
    layout->is_archive = !S_ISDIR(it.st_mode);
    layout->file_size = (uint64_t)it.st_size;
    int code = layout->is_archive ? scan(layout, trouble) : 0;
    if (code == 0 && layout->is_archive)
        code = check_is_layout(layout, trouble);
    if (code < 0)
        oci_layout_close(&layout);
    return layout;
}

void oci_layout_close(struct oci_layout **layout)
{
    struct oci_layout *gone = take_ptr(layout);
    if (gone)
        free(gone->members);
    free(gone);
}

static int find_in_archive(const struct oci_layout *layout, const char *path, struct oci_part *ret)
{
    const struct member *member = find_member(layout, path);
    if (!member)
        return -ENOENT;
    int file = fcntl(layout->file, F_DUPFD_CLOEXEC, 0);
    if (file < 0)
        return -errno;
    *ret = (struct oci_part){.file = file, .offset = member->offset, .size = member->size};
    return 0;
}

int oci_layout_find(const struct oci_layout *layout, const char *path, struct oci_part *ret)
{
    struct stat it;
    if (layout->is_archive)
        return find_in_archive(layout, path, ret);
    AUTO_CLOSE int file = openat(layout->file, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (file < 0 || fstat(file, &it) < 0)
        return -errno;
    if (!S_ISREG(it.st_mode))
        return -EINVAL;
    *ret = (struct oci_part){.file = take_fd(&file), .size = (uint64_t)it.st_size};
    return 0;
}

ssize_t oci_part_read(const struct oci_part *part, uint64_t at, void *ret, size_t len)
{
    ssize_t got;
    if (at >= part->size)
        return 0;
    if (len > part->size - at)
        len = (size_t)(part->size - at);
    do
        got = pread(part->file, ret, len, (off_t)(part->offset + at));
    while (got < 0 && errno == EINTR);
    return got < 0 ? -errno : got;
}
