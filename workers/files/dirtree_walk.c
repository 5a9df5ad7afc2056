#include "workers/files/dirtree_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/files/dir_stream.h"
#include "workers/files/dirtree.h"
#include "common/files/dirtree_remove.h"

int dirtree_remove_entry(int parent, const char *name)
{
    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
        return 0;
    return errno == EISDIR || errno == EPERM ? dirtree_remove_at(parent, name) : -errno;
}

int dirtree_each(int dir, int (*visit)(int dir, const char *name, void *arg), void *arg)
{
    const struct dirent *entry;
    AUTO_DIR stream = dir_stream_open(dir);
    int code = stream ? 0 : -errno;
    while (stream && (code = dir_stream_next(stream, &entry)) > 0)
        if ((code = visit(dir, entry->d_name, arg)) < 0)
            break;
    return code;
}

int dirtree_enter(int parent, const char *name, mode_t *ret_mode)
{
    struct stat it;
    if (fstatat(parent, name, &it, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (!S_ISDIR(it.st_mode))
        return -ENOTDIR;
    *ret_mode = it.st_mode & 07777;
    const int dir = dirtree_open_own(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC, it.st_mode);
    if (dir >= 0 && (*ret_mode & 0700) != 0700 && fchmod(dir, *ret_mode | 0700) < 0) {
        const int code = -errno;
        close(dir);
        return code;
    }
    return dir < 0 ? -errno : dir;
}

void dirtree_leave(int dir, mode_t mode)
{
    dirtree_leave_own(dir, mode);
    close(dir);
}

/* What moves into another directory must let us write to it, where it is one. */
static int rename_to(int root, const char *name, int parent, const char *leaf)
{
    mode_t mode;
    const int moved = dirtree_enter(root, name, &mode);
    if (moved < 0 && moved != -ENOTDIR)
        return moved;
    int code = dirtree_remove_entry(parent, leaf);
    if (code == 0 && renameat(root, name, parent, leaf) < 0)
        code = -errno;
    if (moved >= 0)
        dirtree_leave(moved, mode);
    return code;
}

/* `way` is what is left of it, and is written to. */
static int put_below(int root, const char *name, int dir, char *way)
{
    mode_t mode;
    char *slash = strchr(way, '/');
    if (!slash)
        return rename_to(root, name, dir, way);
    *slash = '\0';
    if (mkdirat(dir, way, 0755) < 0 && errno != EEXIST)
        return -errno;
    const int inner = dirtree_enter(dir, way, &mode);
    if (inner < 0)
        return inner;
    const int code = put_below(root, name, inner, slash + 1);
    dirtree_leave(inner, mode);
    return code;
}

int dirtree_put(int root, const char *name, const char *to)
{
    struct stat ignored;
    if (fstatat(root, name, &ignored, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    AUTO_FREE char *way = strdup(to);
    return way ? put_below(root, name, root, way) : -ENOMEM;
}
