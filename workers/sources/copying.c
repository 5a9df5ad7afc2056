#include "workers/sources/copying.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "workers/files/dirtree.h"
#include "workers/sources/source.h"

char *copying_place(struct copying *copying, const char *path)
{
    size_t levels = 0;
    AUTO_FREE char *joined = dirtree_join(copying->place, path);
    AUTO_FREE char *clean = joined ? dirtree_clean_path(joined + strspn(joined, "/")) : NULL;
    for (const char *at = path; (at = strchr(at, '/')); at++)
        levels++;
    if (levels >= SOURCE_DEPTH_MAX) {
        image_refuse(copying->rootfs->trouble, IMAGE_REFUSAL_TOO_LARGE, "it holds %.200s..., more than %d levels deep",
                     path, SOURCE_DEPTH_MAX);
        return NULL;
    }
    if (!clean)
        image_refuse(copying->rootfs->trouble, IMAGE_REFUSAL_TOO_LARGE, "it holds %.200s: its path is too long", path);
    return take_ptr(&clean);
}

int copying_changed(struct copying *copying, const char *path)
{
    return image_refuse(copying->rootfs->trouble, IMAGE_REFUSAL_CHANGED, "%.200s changed while it was read",
                        path[0] ? path : "it");
}

bool copying_is_same(int fd, const struct stat *before)
{
    struct stat now;
    return fstat(fd, &now) == 0 && now.st_size == before->st_size && now.st_mtim.tv_sec == before->st_mtim.tv_sec &&
           now.st_mtim.tv_nsec == before->st_mtim.tv_nsec && now.st_ctim.tv_sec == before->st_ctim.tv_sec &&
           now.st_ctim.tv_nsec == before->st_ctim.tv_nsec;
}

static int copy_data(struct copying *copying, int from, int to, const struct stat *it, const char *path)
{
    for (off_t at = 0; at < it->st_size;) {
        ssize_t got = pread(from, copying->chunk, COPYING_CHUNK, at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return image_fail_errno(copying->rootfs->trouble, "read", path);
        if (got == 0 || at + got > it->st_size)
            return copying_changed(copying, path);
        int code = rootfs_write(copying->rootfs, to, copying->chunk, (size_t)got, (uint64_t)at);
        if (code < 0)
            return code;
        at += got;
    }
    return copying_is_same(from, it) ? 0 : copying_changed(copying, path);
}

int copying_file(struct copying *copying, int fd, const struct stat *it, const char *path)
{
    AUTO_FREE char *place = copying_place(copying, path);
    if (!place)
        return copying->rootfs->trouble->fail.code;
    const struct rootfs_entry entry = {.path = place, .mode = it->st_mode, .mtime = it->st_mtim};
    AUTO_CLOSE int to = rootfs_open_file(copying->rootfs, &entry, (uint64_t)it->st_size);
    if (to < 0)
        return to;
    int code = copy_data(copying, fd, to, it, path);
    return code < 0 ? code : rootfs_end_file(copying->rootfs, to, &entry, (uint64_t)it->st_size);
}
