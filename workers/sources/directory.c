#include "workers/sources/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/files/dir_stream.h"
#include "workers/files/dirtree.h"

static int copy_entries(struct copying *copying, int dir, const char *path);

/* A node that could not be opened was there a moment ago. */
static int refuse_open(struct copying *copying, const char *path)
{
    if (errno == ENOENT || errno == ELOOP || errno == ENOTDIR)
        return copying_changed(copying, path);
    return image_fail_errno(copying->rootfs->trouble, "open", path);
}

static int copy_symlink(struct copying *copying, int dir, const char *path, const struct rootfs_entry *entry)
{
    char target[PATH_MAX];
    ssize_t len = readlinkat(dir, dirtree_leaf(path), target, sizeof(target) - 1);
    if (len < 0)
        return refuse_open(copying, path);
    target[len] = '\0';
    return rootfs_add_symlink(copying->rootfs, entry, target);
}

static int copy_dir(struct copying *copying, int dir, const char *path, const struct rootfs_entry *entry)
{
    AUTO_CLOSE int inner = openat(dir, dirtree_leaf(path), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner < 0)
        return refuse_open(copying, path);
    int code = rootfs_add_dir(copying->rootfs, entry);
    return code < 0 ? code : copy_entries(copying, inner, path);
}

static int copy_regular(struct copying *copying, int dir, const char *path)
{
    struct stat it;
    AUTO_CLOSE int file = openat(dir, dirtree_leaf(path), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return refuse_open(copying, path);
    if (fstat(file, &it) < 0 || !S_ISREG(it.st_mode))
        return copying_changed(copying, path);
    return copying_file(copying, file, &it, path);
}

static int copy_node(struct copying *copying, int dir, const char *path)
{
    struct stat it;
    int code = rootfs_step(copying->rootfs);
    AUTO_FREE char *place = code < 0 ? NULL : copying_place(copying, path);
    if (!place)
        return copying->rootfs->trouble->fail.code;
    if (fstatat(dir, dirtree_leaf(path), &it, AT_SYMLINK_NOFOLLOW) < 0)
        return refuse_open(copying, path);
    const struct rootfs_entry entry = {.path = place, .mode = it.st_mode, .mtime = it.st_mtim};
    if (S_ISDIR(it.st_mode))
        return copy_dir(copying, dir, path, &entry);
    if (S_ISLNK(it.st_mode))
        return copy_symlink(copying, dir, path, &entry);
    if (S_ISREG(it.st_mode))
        return copy_regular(copying, dir, path);
    return image_refuse(copying->rootfs->trouble, IMAGE_REFUSAL_UNREADABLE,
                        "it holds %.200s, which is neither a file, a directory nor a symbolic link", path);
}

static int copy_named(struct copying *copying, int dir, const char *path, const char *name)
{
    AUTO_FREE char *inner = NULL;
    if (asprintf(&inner, "%s%s%s", path, *path ? "/" : "", name) < 0) {
        inner = NULL;
        return image_fail(copying->rootfs->trouble, -ENOMEM, "out of memory");
    }
    return copy_node(copying, dir, inner);
}

static int copy_entries(struct copying *copying, int dir, const char *path)
{
    struct stat before;
    const struct dirent *entry;
    int code;
    AUTO_DIR stream = dir_stream_open(dir);
    if (!stream || fstat(dirfd(stream), &before) < 0)
        return image_fail_errno(copying->rootfs->trouble, "read", path[0] ? path : "it");
    while ((code = dir_stream_next(stream, &entry)) > 0)
        if ((code = copy_named(copying, dir, path, entry->d_name)) < 0)
            return code;
    if (code < 0)
        return image_fail_errno(copying->rootfs->trouble, "read", path[0] ? path : "it");
    return copying_is_same(dirfd(stream), &before) ? 0 : copying_changed(copying, path);
}

int source_directory_copy(struct copying *copying, int fd) { return copy_entries(copying, fd, ""); }
