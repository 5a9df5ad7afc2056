#include "workers/files/dirtree_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/dir_stream.h"
#include "workers/files/dirtree.h"
#include "common/base/dirtree_remove.h"

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
