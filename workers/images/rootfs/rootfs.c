#include "workers/images/rootfs/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/xattr.h>

#include "common/base/cleanup.h"
#include "workers/files/dirtree.h"
#include "common/files/dirtree_remove.h"
#include "workers/files/open_below.h"

enum { PROGRESS_EVERY = 256 };

struct rootfs_pending {
    char *path;
    size_t order;
    mode_t mode;
    struct timespec mtime;
};

void rootfs_init(struct rootfs *rootfs, int root, const struct rootfs_limits *limits, const atomic_bool *stop,
                 struct image_trouble *trouble)
{
    *rootfs = (struct rootfs){.root = root, .limits = *limits, .stop = stop, .trouble = trouble, .parent = -1};
}

static void forget_parent(struct rootfs *rootfs)
{
    cleanup_close(&rootfs->parent);
    rootfs->parent = -1;
    free(take_ptr(&rootfs->parent_path));
}

void rootfs_finish(struct rootfs *rootfs)
{
    forget_parent(rootfs);
    for (size_t i = 0; i < rootfs->pending_count; i++)
        free(rootfs->pending[i].path);
    free(take_ptr(&rootfs->pending));
    rootfs->pending_count = rootfs->pending_capacity = 0;
}

/* As image_fail_errno of the image's own `path`, whose length may be the image's own doing. */
static int fail_entry(struct rootfs *rootfs, const char *what, const char *path)
{
    if (errno != ENAMETOOLONG)
        return image_fail_errno(rootfs->trouble, what, path);
    return image_refuse(rootfs->trouble, IMAGE_REFUSAL_TOO_LARGE,
                        "it holds %.200s: a name or a link longer than a file system takes", path);
}

/* ---- paths: the directory is the root of everything, of symlinks too ------------------------- */

/* Opens the directory `path`, made with those above it where missing; O_PATH. -1, errno. */
static int open_dirs(int root, const char *path)
{
    int dir = open_in_root(root, path, O_PATH | O_DIRECTORY, 0);
    if (dir >= 0 || errno != ENOENT || !path[0])
        return dir;
    const char *leaf = dirtree_leaf(path);
    AUTO_FREE char *above = strndup(path, leaf == path ? 0 : (size_t)(leaf - path - 1));
    if (!above)
        return -1;
    AUTO_CLOSE int parent = open_dirs(root, above);
    if (parent < 0)
        return -1;
    if (mkdirat(parent, leaf, 0700) < 0) {
        errno = errno == EEXIST ? ENOTDIR : errno; /* a symlink to nowhere */
        return -1;
    }
    fchmodat(parent, leaf, 0755, 0); /* whatever our umask is */
    return openat(parent, leaf, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* The directory that `path` is in, made where missing; borrowed until the next call. */
static int open_parent(struct rootfs *rootfs, const char *path)
{
    const char *leaf = dirtree_leaf(path);
    AUTO_FREE char *above = strndup(path, leaf == path ? 0 : (size_t)(leaf - path - 1));
    if (!above)
        return image_fail(rootfs->trouble, -ENOMEM, "out of memory");
    if (rootfs->parent >= 0 && strcmp(rootfs->parent_path, above) == 0)
        return rootfs->parent;
    forget_parent(rootfs);
    int parent = open_dirs(rootfs->root, above);
    if (parent < 0 && (errno == ENOTDIR || errno == ELOOP))
        return image_refuse(rootfs->trouble, IMAGE_REFUSAL_OCI_LAYER, "it holds %.200s: its parent is not a directory",
                            path);
    if (parent < 0)
        return fail_entry(rootfs, "make the parents of", path);
    rootfs->parent = parent;
    rootfs->parent_path = take_ptr(&above);
    return parent;
}

/* ---- limits --------------------------------------------------------------------------------- */

int rootfs_step(struct rootfs *rootfs)
{
    struct rootfs_counts *counts = &rootfs->counts;
    if (atomic_load(rootfs->stop))
        return image_fail(rootfs->trouble, -ECANCELED, "stopped");
    if (++counts->entries > rootfs->limits.entries)
        return image_refuse(rootfs->trouble, IMAGE_REFUSAL_TOO_LARGE,
                            "it holds more than %llu entries (limit: entries)",
                            (unsigned long long)rootfs->limits.entries);
    if (rootfs->progress && counts->entries % PROGRESS_EVERY == 0)
        rootfs->progress(rootfs->progress_arg, counts);
    return 0;
}

static int count_bytes(struct rootfs *rootfs, uint64_t bytes)
{
    if (atomic_load(rootfs->stop))
        return image_fail(rootfs->trouble, -ECANCELED, "stopped");
    if (bytes > rootfs->limits.bytes - rootfs->counts.bytes)
        return image_refuse(rootfs->trouble, IMAGE_REFUSAL_TOO_LARGE,
                            "it unpacks to more than %llu bytes (limit: bytes)",
                            (unsigned long long)rootfs->limits.bytes);
    rootfs->counts.bytes += bytes;
    return 0;
}

int rootfs_pass_over(struct rootfs *rootfs, uint64_t bytes) { return count_bytes(rootfs, bytes); }

/* ---- entries -------------------------------------------------------------------------------- */

static int remove_at(struct rootfs *rootfs, int parent, const char *path)
{
    const char *leaf = dirtree_leaf(path);
    struct stat it;
    if (fstatat(parent, leaf, &it, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : fail_entry(rootfs, "look at", path);
    if (!S_ISDIR(it.st_mode))
        return unlinkat(parent, leaf, 0) == 0 ? 0 : fail_entry(rootfs, "replace", path);
    int code = dirtree_remove_at(parent, leaf);
    forget_parent(rootfs); /* it may lie in what is gone */
    return code == 0 ? 0 : image_fail(rootfs->trouble, code, "cannot replace %.200s: %s", path, strerror(-code));
}

int rootfs_remove(struct rootfs *rootfs, const char *path)
{
    int parent = open_parent(rootfs, path);
    return parent < 0 ? parent : remove_at(rootfs, parent, path);
}

/* The parent, with nothing at the path. */
static int clear_place(struct rootfs *rootfs, const char *path)
{
    int code = rootfs_remove(rootfs, path);
    return code < 0 ? code : open_parent(rootfs, path);
}

static int add_pending(struct rootfs *rootfs, const struct rootfs_entry *entry)
{
    if (rootfs->pending_count == rootfs->pending_capacity) {
        size_t capacity = rootfs->pending_capacity ? rootfs->pending_capacity * 2 : 256;
        struct rootfs_pending *more = reallocarray(rootfs->pending, capacity, sizeof(*more));
        if (!more)
            return image_fail(rootfs->trouble, -ENOMEM, "out of memory");
        rootfs->pending = more;
        rootfs->pending_capacity = capacity;
    }
    char *path = strdup(entry->path);
    if (!path)
        return image_fail(rootfs->trouble, -ENOMEM, "out of memory");
    rootfs->pending[rootfs->pending_count] = (struct rootfs_pending){path, rootfs->pending_count, entry->mode & 01777,
                                                                     entry->mtime};
    rootfs->pending_count++;
    return 0;
}

int rootfs_add_dir(struct rootfs *rootfs, const struct rootfs_entry *entry)
{
    struct stat it;
    const char *leaf = dirtree_leaf(entry->path);
    int parent = open_parent(rootfs, entry->path);
    if (parent < 0)
        return parent;
    if (fstatat(parent, leaf, &it, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(it.st_mode)) {
        if ((parent = clear_place(rootfs, entry->path)) < 0)
            return parent;
        if (mkdirat(parent, leaf, 0700) < 0)
            return fail_entry(rootfs, "make", entry->path);
    }
    return add_pending(rootfs, entry);
}

int rootfs_add_symlink(struct rootfs *rootfs, const struct rootfs_entry *entry, const char *target)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, entry->mtime};
    const char *leaf = dirtree_leaf(entry->path);
    int parent = clear_place(rootfs, entry->path);
    if (parent < 0)
        return parent;
    if (symlinkat(target, parent, leaf) < 0)
        return fail_entry(rootfs, "make the symlink", entry->path);
    utimensat(parent, leaf, times, AT_SYMLINK_NOFOLLOW); /* nobody needs it */
    return 0;
}

int rootfs_add_link(struct rootfs *rootfs, const struct rootfs_entry *entry, const char *target)
{
    const char *leaf = dirtree_leaf(target);
    AUTO_FREE char *above = strndup(target, leaf == target ? 0 : (size_t)(leaf - target - 1));
    if (strcmp(target, entry->path) == 0)
        return 0;
    int parent = clear_place(rootfs, entry->path);
    if (parent < 0)
        return parent;
    AUTO_CLOSE int from = above ? open_in_root(rootfs->root, above, O_PATH | O_DIRECTORY, 0) : -1;
    if (from < 0 || linkat(from, leaf, parent, dirtree_leaf(entry->path), 0) < 0)
        return errno == ENOSPC || errno == EDQUOT
                   ? fail_entry(rootfs, "link", entry->path)
                   : image_refuse(rootfs->trouble, IMAGE_REFUSAL_OCI_LAYER,
                                  "it holds %.200s: a hard link to what is not in it", entry->path);
    return 0;
}

static int refuse_size(struct rootfs *rootfs, const struct rootfs_entry *entry, uint64_t size)
{
    return image_refuse(rootfs->trouble, IMAGE_REFUSAL_TOO_LARGE,
                        "it holds %.200s of %llu bytes, more than a file here can have", entry->path,
                        (unsigned long long)size);
}

int rootfs_open_file(struct rootfs *rootfs, const struct rootfs_entry *entry, uint64_t size)
{
    if (size > ROOTFS_FILE_MAX)
        return refuse_size(rootfs, entry, size);
    int parent = clear_place(rootfs, entry->path);
    if (parent < 0)
        return parent;
    int file = openat(parent, dirtree_leaf(entry->path), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return file < 0 ? fail_entry(rootfs, "make", entry->path) : file;
}

int rootfs_write(struct rootfs *rootfs, int file, const void *data, size_t len, uint64_t offset)
{
    int code = count_bytes(rootfs, len);
    if (code < 0)
        return code;
    if (offset > INT64_MAX - len)
        return image_refuse(rootfs->trouble, IMAGE_REFUSAL_CORRUPT, "a file of impossible size");
    return dirtree_write_at(file, data, len, (int64_t)offset) == 0
               ? 0
               : image_fail(rootfs->trouble, -errno, "cannot write: %s", strerror(errno));
}

int rootfs_end_file(struct rootfs *rootfs, int file, const struct rootfs_entry *entry, uint64_t size)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, entry->mtime};
    if (ftruncate(file, (off_t)size) < 0 && (errno == EFBIG || errno == EINVAL))
        return refuse_size(rootfs, entry, size);
    if (fchmod(file, entry->mode & 0777) < 0 || futimens(file, times) < 0)
        return fail_entry(rootfs, "set the mode of", entry->path);
    struct stat it;
    if (fstat(file, &it) < 0 || (uint64_t)it.st_size != size)
        return image_fail(rootfs->trouble, -EIO, "cannot size %.200s", entry->path);
    return 0;
}

int rootfs_set_attribute(struct rootfs *rootfs, const char *path, const char *name, struct slice value)
{
    if (strncmp(name, "user.", 5) != 0 || strncmp(name, "user.overlay.", 13) == 0) {
        rootfs->counts.attributes++;
        return 0;
    }
    int parent = open_parent(rootfs, path);
    if (parent < 0)
        return parent;
    AUTO_CLOSE int file = openat(parent, dirtree_leaf(path), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file >= 0 && fsetxattr(file, name, value.data, value.len, 0) == 0)
        return 0;
    if (errno == ENOSPC || errno == EDQUOT)
        return fail_entry(rootfs, "set an attribute of", path);
    rootfs->counts.attributes++; /* this file system has none, or not so large ones */
    return 0;
}

void rootfs_leave_out(struct rootfs *rootfs, mode_t type)
{
    if (S_ISCHR(type) || S_ISBLK(type))
        rootfs->counts.devices++;
    else
        rootfs->counts.sockets++;
}

/* ---- the end -------------------------------------------------------------------------------- */

/* From below, so that no mode shuts us out of what is within; the later of two counts. */
static int compare_pending(const void *a, const void *b)
{
    const struct rootfs_pending *x = a, *y = b;
    int order = strcmp(y->path, x->path);
    return order ? order : x->order < y->order ? -1 : 1;
}

static int apply_pending(struct rootfs *rootfs, const struct rootfs_pending *pending)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, pending->mtime};
    AUTO_CLOSE int dir = dirtree_open(rootfs->root, pending->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (dir < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 /* a later entry replaced it */
                                                                     : fail_entry(rootfs, "open", pending->path);
    if (futimens(dir, times) < 0 || fchmod(dir, pending->mode) < 0)
        return fail_entry(rootfs, "set the mode of", pending->path);
    return 0;
}

int rootfs_complete(struct rootfs *rootfs)
{
    struct rootfs_pending *pending = rootfs->pending;
    int code = 0;
    forget_parent(rootfs);
    if (rootfs->pending_count)
        qsort(pending, rootfs->pending_count, sizeof(*pending), compare_pending);
    for (size_t i = 0; i < rootfs->pending_count && code == 0; i++)
        if (i + 1 == rootfs->pending_count || strcmp(pending[i].path, pending[i + 1].path) != 0)
            code = apply_pending(rootfs, &pending[i]);
    if (code == 0 && rootfs->progress)
        rootfs->progress(rootfs->progress_arg, &rootfs->counts);
    return code;
}
