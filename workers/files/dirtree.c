#include "workers/files/dirtree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "common/base/cleanup.h"
#include "workers/files/open_below.h"

int dirtree_refuse(struct fail *fail, const char *what, const char *path)
{
    return fail_set(fail, -errno, "cannot %s %.200s: %s", what, path, strerror(errno));
}

/* ---- paths: relative, without ".", ".." or doubled slashes --------------------------------- */

char *dirtree_clean_path(const char *path)
{
    size_t len = strlen(path);
    AUTO_FREE char *clean = malloc(len + 1);
    if (!clean || path[0] == '/' || len >= PATH_MAX)
        return NULL;
    char *to = clean;
    int depth = 0;
    for (const char *from = path; *from;) {
        size_t part = strcspn(from, "/");
        if (part == 2 && memcmp(from, "..", 2) == 0)
            return NULL;
        bool skip = part == 0 || (part == 1 && *from == '.');
        if (!skip && ++depth > TREE_DEPTH_MAX)
            return NULL;
        if (!skip && to > clean)
            *to++ = '/';
        memcpy(to, from, skip ? 0 : part);
        to += skip ? 0 : part;
        from += part + (from[part] == '/');
    }
    *to = '\0';
    return take_ptr(&clean);
}

const char *dirtree_leaf(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

char *dirtree_join(const char *dir, const char *name)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s", dir, name) < 0 ? NULL : path;
}

char *dirtree_join_below(const char *dir, const char *name) { return dir[0] ? dirtree_join(dir, name) : strdup(name); }

bool dirtree_is_at_or_in(const char *path, const char *dir)
{
    const size_t len = strlen(dir);
    return strncmp(path, dir, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

char *dirtree_parent(const char *path) { return strndup(path, (size_t)(strrchr(path, '/') - path)); }

int dirtree_open(int root, const char *path, uint64_t flags)
{
    return open_below(root, path, flags, 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

/* Opens the directory `path` and makes it, and those above it, where missing. */
static int open_dirs(int root, const char *path)
{
    int dir = dirtree_open(root, path, O_PATH | O_DIRECTORY);
    if (dir >= 0 || errno != ENOENT)
        return dir;
    AUTO_FREE char *above = strdup(path);
    if (!above)
        return -1;
    char *slash = strrchr(above, '/');
    if (slash)
        *slash = '\0';
    AUTO_CLOSE int parent = slash ? open_dirs(root, above) : dirtree_open(root, "", O_PATH | O_DIRECTORY);
    if (parent < 0 || (mkdirat(parent, dirtree_leaf(path), 0755) < 0 && errno != EEXIST))
        return -1;
    return dirtree_open(root, path, O_PATH | O_DIRECTORY);
}

/* A directory must also let us in. */
static bool can_use(int fd, mode_t mode)
{
    struct stat ignored;
    return fd >= 0 && (!S_ISDIR(mode) || fstatat(fd, ".", &ignored, 0) == 0);
}

/* Those of other threads and processes who give rights to files there wait for its close. Where it cannot be, none do.
 */
static int lock_dir(int dir)
{
    const int lock = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (lock >= 0 && flock(lock, LOCK_EX) < 0 && errno == EINTR)
        continue;
    return lock;
}

/* `mode` is what it is to have afterwards: a directory at its dirtree_leave_own. */
static int open_with_rights(int held, int flags, mode_t mode)
{
    char link[64];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", held);
    if (chmod(link, (mode & 07777) | (S_ISDIR(mode) ? 0700 : 0400)) < 0)
        return -1;
    int opened = open(link, flags | O_CLOEXEC), error = errno;
    if (opened < 0 || !S_ISDIR(mode))
        chmod(link, mode & 07777);
    errno = error;
    return opened;
}

int dirtree_open_own(int dir, const char *name, int flags, mode_t mode)
{
    struct stat it;
    AUTO_CLOSE int fd = openat(dir, name, flags | O_NOFOLLOW | O_CLOEXEC);
    if (can_use(fd, mode) || errno != EACCES || (S_ISDIR(mode) && (mode & 0700) == 0700))
        return take_fd(&fd);
    AUTO_CLOSE int lock = S_ISDIR(mode) ? -1 : lock_dir(dir);
    AUTO_CLOSE int held = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (held < 0 || fstat(held, &it) < 0 || (it.st_mode & S_IFMT) != (mode & S_IFMT))
        return -1;
    return open_with_rights(held, flags, S_ISDIR(mode) ? mode : it.st_mode); /* `mode` may be what another gave it */
}

void dirtree_leave_own(int fd, mode_t mode)
{
    struct stat it;
    if (fd >= 0 && (mode & 0700) != 0700 && fstat(fd, &it) == 0 && (it.st_mode & 07777) == ((mode & 07777) | 0700))
        fchmod(fd, mode & 07777);
}

int dirtree_open_parent(int root, const char *path)
{
    const char *leaf = dirtree_leaf(path);
    if (leaf == path)
        return dirtree_open(root, "", O_PATH | O_DIRECTORY);
    AUTO_FREE char *above = strndup(path, (size_t)(leaf - path - 1));
    return above ? open_dirs(root, above) : -1;
}

/* ---- whiteouts ----------------------------------------------------------------------------- */

bool dirtree_is_opaque(int dir)
{
    char value;
    return fgetxattr(dir, TREE_OPAQUE_XATTR, &value, 1) == 1 && value == 'y';
}

int dirtree_set_opaque(int dir) { return fsetxattr(dir, TREE_OPAQUE_XATTR, "y", 1, 0); }

/* Where character devices are refused: an empty file, and a mark on its directory to look for it.
 */
static int mark_whiteout(int parent, const char *name)
{
    AUTO_CLOSE int dir = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -1;
    if (dirtree_is_opaque(dir)) /* nothing below is seen anyway */
        return 0;
    AUTO_CLOSE int file = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return -1;
    if (fsetxattr(file, TREE_WHITEOUT_XATTR, "y", 1, 0) < 0)
        return -1;
    return fsetxattr(dir, TREE_OPAQUE_XATTR, "x", 1, 0);
}

int dirtree_white_out(int parent, const char *name)
{
    if (mknodat(parent, name, S_IFCHR, makedev(0, 0)) == 0 || errno == EEXIST)
        return 0;
    if (errno != EPERM && errno != EOPNOTSUPP && errno != EINVAL)
        return -1;
    return mark_whiteout(parent, name);
}

bool dirtree_is_whiteout(int parent, const char *name, const struct stat *it)
{
    char value;
    if (S_ISCHR(it->st_mode))
        return it->st_rdev == makedev(0, 0);
    if (!S_ISREG(it->st_mode) || it->st_size > 0)
        return false;
    AUTO_CLOSE int file = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    return file >= 0 && fgetxattr(file, TREE_WHITEOUT_XATTR, &value, 1) == 1;
}

/* ---- files --------------------------------------------------------------------------------- */

int dirtree_write_at(int fd, const void *data, size_t len, int64_t offset)
{
    const uint8_t *at = data;
    while (len) {
        ssize_t wrote = pwrite(fd, at, len, offset);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return -1;
        at += wrote;
        offset += wrote;
        len -= (size_t)wrote;
    }
    return 0;
}

int dirtree_write(int root, const char *path, struct slice content, mode_t mode, struct fail *fail)
{
    AUTO_FREE char *clean = dirtree_clean_path(path);
    if (!clean || !clean[0])
        return fail_set(fail, -EINVAL, "no file can be at %.200s", path);
    AUTO_CLOSE int parent = dirtree_open_parent(root, clean);
    AUTO_CLOSE int file = parent < 0 ? -1
                                     : openat(parent, dirtree_leaf(clean),
                                              O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0 || dirtree_write_at(file, content.data, content.len, 0) < 0 || fchmod(file, mode & 0777) < 0)
        return dirtree_refuse(fail, "write", path);
    return 0;
}

int dirtree_hide(int root, const char *path, struct fail *fail)
{
    AUTO_FREE char *clean = dirtree_clean_path(path);
    if (!clean || !clean[0])
        return fail_set(fail, -EINVAL, "nothing can be at %.200s", path);
    AUTO_CLOSE int parent = dirtree_open_parent(root, clean);
    if (parent < 0 || dirtree_white_out(parent, dirtree_leaf(clean)) < 0)
        return dirtree_refuse(fail, "hide", path);
    return 0;
}

int dirtree_make_opaque(int root, const char *path, mode_t mode, struct fail *fail)
{
    AUTO_FREE char *clean = dirtree_clean_path(path);
    if (!clean || !clean[0])
        return fail_set(fail, -EINVAL, "no directory of its own can be at %.200s", path);
    AUTO_CLOSE int parent = dirtree_open_parent(root, clean);
    const char *leaf = dirtree_leaf(clean);
    if (parent < 0 || (mkdirat(parent, leaf, 0700) < 0 && errno != EEXIST))
        return dirtree_refuse(fail, "make", path);
    AUTO_CLOSE int dir = openat(parent, leaf, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 || dirtree_set_opaque(dir) < 0 || fchmod(dir, mode & 0777) < 0)
        return dirtree_refuse(fail, "make", path);
    return 0;
}
