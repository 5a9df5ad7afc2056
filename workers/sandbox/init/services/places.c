#include "workers/sandbox/init/services/places.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "workers/files/dirtree.h"
#include "common/files/dirtree_remove.h"
#include "workers/files/open_below.h"
#include "workers/sandbox/container/mounts.h"

static int open_dir(int root, const char *path)
{
    int fd = open_in_root(root, *path ? path : ".", O_PATH | O_DIRECTORY, 0);
    return fd < 0 ? -errno : fd;
}

/* Its owner, who those inside are, may use it: one that somebody else owns stays as it is. */
static void let_in(int root, const char *path)
{
    struct stat it;
    AUTO_CLOSE int dir = open_in_root(root, path, O_RDONLY | O_DIRECTORY, 0);
    if (dir >= 0 && fstat(dir, &it) == 0 && (it.st_mode & 0700) != 0700)
        fchmod(dir, (it.st_mode & 07777) | 0700);
}

/* `path` is clean; its directory, whose parents are there. */
static int need_dir(int root, const char *path)
{
    AUTO_CLOSE int there = open_dir(root, path);
    if (there >= 0) {
        let_in(root, path);
        return 0;
    }
    const char *name = dirtree_leaf(path);
    AUTO_FREE char *above = strndup(path, name == path ? 0 : (size_t)(name - path - 1));
    AUTO_CLOSE int parent = above ? open_dir(root, above) : -ENOMEM;
    if (parent < 0)
        return parent;
    if (unlinkat(parent, name, 0) < 0 && errno != ENOENT)
        return -errno;
    return mkdirat(parent, name, 0755) < 0 ? -errno : 0;
}

/* The directory that `path` is in; those above it are made. */
static int open_parent(int root, char *path)
{
    for (char *at = strchr(path, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        int code = need_dir(root, path);
        *at = '/';
        if (code < 0)
            return code;
    }
    const char *name = dirtree_leaf(path);
    AUTO_FREE char *above = strndup(path, name == path ? 0 : (size_t)(name - path - 1));
    return above ? open_dir(root, above) : -ENOMEM;
}

static int clear(int parent, const char *name)
{
    struct stat it;
    if (fstatat(parent, name, &it, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (S_ISDIR(it.st_mode))
        return dirtree_remove_at(parent, name);
    return unlinkat(parent, name, 0) < 0 ? -errno : 0;
}

static int prepare(int root, char *path, enum wire_place wanted, mode_t mode)
{
    AUTO_CLOSE int parent = open_parent(root, path);
    const char *name = dirtree_leaf(path);
    if (parent < 0)
        return parent;
    int code = wanted == PLACE_DIRECTORY ? need_dir(root, path) : clear(parent, name);
    if (code < 0 || wanted == PLACE_FREE)
        return code;
    if (wanted == PLACE_NEW_DIRECTORY && mkdirat(parent, name, 0755) < 0)
        return -errno;
    return fchmodat(parent, name, mode & 0777, 0) < 0 ? -errno : 0;
}

int place_prepare(const char *path, enum wire_place wanted, mode_t mode, struct fail *fail)
{
    AUTO_CLOSE int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    AUTO_FREE char *clean = dirtree_clean_path(path + strspn(path, "/"));
    int code = root < 0 ? -errno : !clean || !clean[0] ? -EINVAL : prepare(root, clean, wanted, mode);
    return code < 0 ? fail_set(fail, code, "%.400s: %s", path, strerror(-code)) : 0;
}
