#include "workers/sandbox/container/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "common/base/cleanup.h"
#include "workers/files/open_below.h"

int container_name_of(int fd, char *ret, size_t size)
{
    char link[64];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, ret, size);
    if (len < 0)
        return -errno;
    if ((size_t)len == size)
        return -ENAMETOOLONG;
    ret[len] = '\0';
    return 0;
}

/* Makes the last component of `path`, whose parents are there. */
static int make_dir(int root, char *path, mode_t mode)
{
    char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    if (slash)
        *slash = '\0';
    AUTO_CLOSE int parent = open_in_root(root, slash ? path : ".", O_PATH | O_DIRECTORY, 0);
    int code = parent < 0 || mkdirat(parent, name, mode) < 0 ? -errno : 0;
    if (slash)
        *slash = '/';
    return code;
}

int container_make_dirs(int root, const char *path, mode_t mode)
{
    while (*path == '/')
        path++;
    AUTO_FREE char *part = strdup(path);
    if (!part)
        return -ENOMEM;
    for (char *at = part; at;) {
        at = strchr(at, '/');
        if (at)
            *at = '\0';
        AUTO_CLOSE int there = open_in_root(root, part, O_PATH | O_DIRECTORY, 0);
        int code = there >= 0 ? 0 : errno == ENOENT ? make_dir(root, part, mode) : -errno;
        if (code < 0 && code != -EEXIST)
            return code;
        if (!at)
            break;
        *at++ = '/';
        while (*at == '/')
            at++;
        if (!*at)
            break;
    }
    return 0;
}

/* A clone of a mounted tree, its whole subtree with `attributes` (MOUNT_ATTR_*); -1, errno. */
static int clone_tree(int dir, const char *path, uint64_t attributes)
{
    AUTO_CLOSE int tree = open_tree(dir, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH);
    struct mount_attr attr = {.attr_set = attributes};
    if (tree < 0)
        return -1;
    if (attributes && mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0)
        return -1;
    return take_fd(&tree);
}

/* Mounts such a clone on a path inside `root`; 0 or -1, errno. */
static int attach(int tree, int root, const char *path)
{
    AUTO_CLOSE int target = open_in_root(root, path, O_PATH, 0);
    if (target < 0)
        return -1;
    return move_mount(tree, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

int container_attach_clone(int dir, const char *path, uint64_t attributes, int root, const char *target)
{
    AUTO_CLOSE int tree = clone_tree(dir, path, attributes);
    return tree < 0 ? -1 : attach(tree, root, target);
}
