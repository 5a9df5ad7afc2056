#include "workers/files/dirtree_keep.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/dir_stream.h"
#include "workers/files/dirtree.h"
#include "workers/files/dirtree_remove.h"

static int remove_entry(int parent, const char *name)
{
    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
        return 0;
    return errno == EISDIR || errno == EPERM ? dirtree_remove_at(parent, name) : -errno;
}

/* Calls `visit` for each entry of the directory, whose descriptor stays the caller's. */
static int each_entry(int dir, int (*visit)(int dir, const char *name, void *arg), void *arg)
{
    const struct dirent *entry;
    AUTO_DIR stream = dir_stream_open(dir);
    int code = stream ? 0 : -errno;
    while (stream && (code = dir_stream_next(stream, &entry)) > 0)
        if ((code = visit(dir, entry->d_name, arg)) < 0)
            break;
    return code;
}

/* A directory of ours, also one without rights; -ENOTDIR: it is none. *ret_mode is to be given back. */
static int enter(int parent, const char *name, mode_t *ret_mode)
{
    struct stat it;
    if (fstatat(parent, name, &it, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (!S_ISDIR(it.st_mode))
        return -ENOTDIR;
    *ret_mode = it.st_mode & 07777;
    const int dir = dirtree_open_own(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, *ret_mode);
    return dir < 0 ? -errno : dir;
}

/* ---- what is not to be in it -------------------------------------------------------------------- */

static int drop(int dir, const char *name, void *arg)
{
    const char *without = arg;
    mode_t mode;
    if (strcmp(name, without) == 0)
        return remove_entry(dir, name);
    const int inner = enter(dir, name, &mode);
    if (inner < 0)
        return inner == -ENOTDIR || inner == -ENOENT ? 0 : inner;
    const int code = each_entry(inner, drop, arg);
    dirtree_leave_own(inner, mode);
    close(inner);
    return code;
}

/* ---- the way to it --------------------------------------------------------------------------------- */

static int drop_other(int dir, const char *name, void *arg)
{
    return strcmp(name, arg) == 0 ? 0 : remove_entry(dir, name);
}

/* `path` is what is left of the way, and is written to. */
static int keep_in(int dir, char *path, const char *without)
{
    mode_t mode;
    path += strspn(path, "/");
    if (!*path)
        return each_entry(dir, drop, (void *)(uintptr_t)without);
    char *rest = path + strcspn(path, "/");
    if (*rest)
        *rest++ = '\0';
    int code = each_entry(dir, drop_other, path);
    if (code < 0)
        return code;
    const int inner = enter(dir, path, &mode);
    if (inner < 0)
        return inner == -ENOTDIR ? remove_entry(dir, path) : inner == -ENOENT ? 0 : inner;
    code = keep_in(inner, rest, without);
    dirtree_leave_own(inner, mode);
    close(inner);
    return code;
}

int dirtree_keep(int root, const char *path, const char *without, struct fail *fail)
{
    AUTO_FREE char *way = dirtree_clean_path(path + strspn(path, "/"));
    if (!way)
        return fail_set(fail, -EINVAL, "%.200s is no path below a root", path);
    const int code = keep_in(root, way, without);
    return code < 0 ? fail_set(fail, code, "cannot keep %.200s alone: %s", path, strerror(-code)) : 0;
}
