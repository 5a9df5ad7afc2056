#include "workers/images/rootfs/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/files/dir_stream.h"
#include "workers/files/dirtree.h"

enum { CHUNK = 256 * 1024, NAMES_MAX = 65536, VALUE_MAX = 65536 };

struct first_name { /* of a file that has several */
    ino_t inode;
    char *path;
};

struct copy {
    struct rootfs *rootfs;
    dev_t device;
    void *names; /* tsearch: struct first_name */
    uint8_t *chunk;
};

static int compare_inodes(const void *a, const void *b)
{
    ino_t x = ((const struct first_name *)a)->inode, y = ((const struct first_name *)b)->inode;
    return x < y ? -1 : x > y;
}

static void free_name(void *name)
{
    free(((struct first_name *)name)->path);
    free(name);
}

/* ---- files -------------------------------------------------------------------------------------- */

static int copy_extent(struct copy *copy, int from, int to, off_t at, off_t end)
{
    while (at < end) {
        size_t want = end - at < CHUNK ? (size_t)(end - at) : CHUNK;
        ssize_t got = pread(from, copy->chunk, want, at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return image_refuse(copy->rootfs->trouble, IMAGE_REFUSAL_UNREADABLE, "cannot read: %s", strerror(errno));
        if (got == 0)
            break; /* it became shorter */
        int code = rootfs_write(copy->rootfs, to, copy->chunk, (size_t)got, (uint64_t)at);
        if (code < 0)
            return code;
        at += got;
    }
    return 0;
}

static int copy_data(struct copy *copy, int from, int to, off_t size)
{
    for (off_t at = 0; at < size;) {
        off_t data = lseek(from, at, SEEK_DATA);
        if (data < 0 && errno == ENXIO)
            break; /* a hole up to the end */
        if (data < 0)
            return copy_extent(copy, from, to, at, size); /* no holes are known here */
        off_t hole = lseek(from, data, SEEK_HOLE);
        hole = hole < 0 || hole > size ? size : hole;
        int code = copy_extent(copy, from, to, data, hole);
        if (code < 0)
            return code;
        at = hole;
    }
    return 0;
}

static int copy_attributes(struct copy *copy, int from, const char *path)
{
    AUTO_FREE char *names = malloc(NAMES_MAX + VALUE_MAX);
    if (!names)
        return image_fail(copy->rootfs->trouble, -ENOMEM, "out of memory");
    char *value = names + NAMES_MAX;
    ssize_t len = flistxattr(from, names, NAMES_MAX);
    for (const char *name = names; len > 0 && name < names + len; name += strlen(name) + 1) {
        ssize_t value_len = fgetxattr(from, name, value, VALUE_MAX);
        if (value_len < 0)
            continue;
        int code = rootfs_set_attribute(copy->rootfs, path, name, slice_of(value, (size_t)value_len));
        if (code < 0)
            return code;
    }
    return 0;
}

static int copy_file(struct copy *copy, int from, const struct rootfs_entry *entry, off_t size)
{
    AUTO_CLOSE int to = rootfs_open_file(copy->rootfs, entry, (uint64_t)size);
    if (to < 0)
        return to;
    int code = copy_data(copy, from, to, size);
    if (code == 0)
        code = copy_attributes(copy, from, entry->path);
    return code < 0 ? code : rootfs_end_file(copy->rootfs, to, entry, (uint64_t)size);
}

/* Whether it was copied under another name, which *ret_first then is. */
static int find_first(struct copy *copy, const struct stat *it, const char *path, const char **ret_first)
{
    struct first_name wanted = {.inode = it->st_ino};
    struct first_name **found = tfind(&wanted, &copy->names, compare_inodes);
    *ret_first = found ? (*found)->path : NULL;
    if (found || it->st_nlink < 2)
        return 0;
    struct first_name *name = calloc(1, sizeof(*name));
    if (name && (name->path = strdup(path))) {
        name->inode = it->st_ino;
        if (tsearch(name, &copy->names, compare_inodes))
            return 0;
    }
    if (name)
        free_name(name);
    return image_fail(copy->rootfs->trouble, -ENOMEM, "out of memory");
}

static int copy_symlink(struct copy *copy, int parent, const struct rootfs_entry *entry)
{
    char target[PATH_MAX];
    ssize_t len = readlinkat(parent, dirtree_leaf(entry->path), target, sizeof(target) - 1);
    if (len < 0) {
        copy->rootfs->counts.unreadable++;
        return 0;
    }
    target[len] = '\0';
    return rootfs_add_symlink(copy->rootfs, entry, target);
}

/* ---- directories -------------------------------------------------------------------------------- */

static int copy_entries(struct copy *copy, int dir, const char *above);

static int copy_opened(struct copy *copy, int from, const struct rootfs_entry *entry, const struct stat *it)
{
    if (!S_ISDIR(it->st_mode))
        return copy_file(copy, from, entry, it->st_size);
    int code = rootfs_add_dir(copy->rootfs, entry);
    if (code == 0)
        code = copy_attributes(copy, from, entry->path);
    return code < 0 ? code : copy_entries(copy, from, entry->path);
}

static int copy_node(struct copy *copy, int parent, const struct rootfs_entry *entry, const struct stat *it)
{
    const char *first = NULL;
    mode_t type = it->st_mode & S_IFMT;
    if (!S_ISDIR(type) && !S_ISREG(type) && !S_ISLNK(type)) {
        rootfs_leave_out(copy->rootfs, type);
        return 0;
    }
    int code = S_ISDIR(type) ? 0 : find_first(copy, it, entry->path, &first);
    if (code < 0 || first)
        return code < 0 ? code : rootfs_add_link(copy->rootfs, entry, first);
    if (S_ISLNK(type))
        return copy_symlink(copy, parent, entry);
    AUTO_CLOSE int from = openat(parent, dirtree_leaf(entry->path), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (from >= 0)
        return copy_opened(copy, from, entry, it);
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
        return image_fail_errno(copy->rootfs->trouble, "open", entry->path);
    copy->rootfs->counts.unreadable++;
    return 0;
}

static int copy_entry(struct copy *copy, int dir, const char *above, const char *name)
{
    AUTO_FREE char *joined = NULL;
    struct stat it;
    int code = rootfs_step(copy->rootfs);
    if (code < 0)
        return code;
    if (asprintf(&joined, "%s%s%s", above, *above ? "/" : "", name) < 0) {
        joined = NULL;
        return image_fail(copy->rootfs->trouble, -ENOMEM, "out of memory");
    }
    AUTO_FREE char *path = dirtree_clean_path(joined);
    if (!path)
        return image_refuse(copy->rootfs->trouble, IMAGE_REFUSAL_TOO_LARGE,
                            "its directories are more than %d levels deep (limit: levels)", TREE_DEPTH_MAX);
    if (fstatat(dir, name, &it, AT_SYMLINK_NOFOLLOW) < 0 || it.st_dev != copy->device) {
        copy->rootfs->counts.unreadable++;
        return 0;
    }
    const struct rootfs_entry entry = {.path = path, .mode = it.st_mode, .mtime = it.st_mtim};
    return copy_node(copy, dir, &entry, &it);
}

static int copy_entries(struct copy *copy, int dir, const char *above)
{
    const struct dirent *entry;
    int code;
    AUTO_DIR stream = dir_stream_open(dir);
    if (!stream) {
        copy->rootfs->counts.unreadable++;
        return 0;
    }
    while ((code = dir_stream_next(stream, &entry)) > 0)
        if ((code = copy_entry(copy, dir, above, entry->d_name)) < 0)
            return code;
    return code < 0 ? image_fail_errno(copy->rootfs->trouble, "read", above) : 0;
}

int copy_directory(int dir, struct rootfs *rootfs)
{
    struct stat it;
    struct copy copy = {.rootfs = rootfs, .chunk = malloc(CHUNK)};
    int code = copy.chunk && fstat(dir, &it) == 0 ? 0 : image_fail(rootfs->trouble, -ENOMEM, "out of memory");
    if (code == 0) {
        copy.device = it.st_dev;
        code = copy_entries(&copy, dir, "");
    }
    tdestroy(copy.names, free_name);
    free(copy.chunk);
    return code < 0 ? code : rootfs_complete(rootfs);
}

/* ---- owners --------------------------------------------------------------------------------------- */

static void note_owner(struct copy_owners *owners, const struct stat *it, const char *above, const char *name)
{
    owners->entries++;
    if (it->st_uid == geteuid() && it->st_gid == getegid())
        return;
    if (owners->foreign++ > 0)
        return;
    int len = snprintf(owners->first, sizeof(owners->first), "%s/%s", above, name);
    if ((size_t)len >= sizeof(owners->first))
        strcpy(owners->first + sizeof(owners->first) - sizeof("..."), "...");
}

static bool count_within(int dir, const char *above, uint64_t entries_max, int depth, struct copy_owners *owners)
{
    AUTO_DIR stream = depth > TREE_DEPTH_MAX ? NULL : dir_stream_open(dir);
    const struct dirent *entry;
    bool is_whole = true;
    while (is_whole && stream && dir_stream_next(stream, &entry) > 0) {
        struct stat it;
        char path[256];
        if (fstatat(dir, entry->d_name, &it, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        note_owner(owners, &it, above, entry->d_name);
        is_whole = owners->entries < entries_max;
        AUTO_CLOSE int within = S_ISDIR(it.st_mode) && is_whole
                                    ? openat(dir, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                                    : -1;
        if (within >= 0) {
            snprintf(path, sizeof(path), "%.120s/%.120s", above, entry->d_name);
            is_whole = count_within(within, path, entries_max, depth + 1, owners);
        }
    }
    return is_whole;
}

bool copy_count_owners(int dir, uint64_t entries_max, struct copy_owners *ret)
{
    *ret = (struct copy_owners){0};
    return count_within(dir, "", entries_max, 0, ret);
}
