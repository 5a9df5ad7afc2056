/* Layers without an overlay: their files are copied. */
#include "workers/sandbox/backends/landlock/landlock_layers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "common/base/cleanup.h"
#include "common/files/dir_stream.h"
#include "common/files/dirtree_remove.h"
#include "workers/sandbox/proto/usage.h"
#include "workers/sandbox/backends/landlock/landlock_container.h"
#include "workers/files/dirtree.h"

enum { BLOCK_BYTES = 512, COPY_MAX = 1 << 30 };

struct copy {
    struct usage *usage;
    unsigned depth;
    const char *layer;
    struct fail *fail;
};

static int copy_dir(struct copy *copy, int from, int to);

static int refuse(struct copy *copy, const char *name)
{
    return fail_set(copy->fail, -errno, "copying %s of the layer %s: %s", name, copy->layer, strerror(errno));
}

/* ---- what lies below is hidden ------------------------------------------------------ */

/* As the kernel notes it, and as dirtree_white_out where it may not. */
static bool is_whiteout(int dir, const char *name, const struct stat *it)
{
    char value;
    if (S_ISCHR(it->st_mode))
        return it->st_rdev == makedev(0, 0);
    if (!S_ISREG(it->st_mode) || it->st_size > 0)
        return false;
    AUTO_CLOSE int fd = dirtree_open_own(dir, name, O_RDONLY | O_NONBLOCK, it->st_mode);
    return fd >= 0 && fgetxattr(fd, TREE_WHITEOUT_XATTR, &value, 1) >= 0;
}

/* Whatever is there: 0 when it is gone. */
static int clear(int to, const char *name)
{
    if (unlinkat(to, name, 0) == 0 || errno == ENOENT)
        return 0;
    return errno == EISDIR ? dirtree_remove_at(to, name) : -errno;
}

/* ---- one entry ---------------------------------------------------------------------- */

static int copy_bytes(int from, int to)
{
    for (;;) {
        ssize_t got = copy_file_range(from, NULL, to, NULL, COPY_MAX, 0);
        if (got == 0)
            return 0;
        if (got < 0 && errno != EINTR)
            return -1;
    }
}

/* Between file systems that cannot copy for us. */
static int copy_plainly(int from, int to)
{
    uint8_t block[65536];
    for (;;) {
        ssize_t got = read(from, block, sizeof(block));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return (int)got;
        if (write(to, block, (size_t)got) != got)
            return -1;
    }
}

static int copy_file(struct copy *copy, int from, int to, const char *name, const struct stat *it)
{
    const struct timespec times[] = {it->st_atim, it->st_mtim};
    AUTO_CLOSE int in = dirtree_open_own(from, name, O_RDONLY | O_NONBLOCK, it->st_mode);
    AUTO_CLOSE int out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (in < 0 || out < 0)
        return refuse(copy, name);
    if (copy_bytes(in, out) < 0 && copy_plainly(in, out) < 0)
        return refuse(copy, name);
    return fchmod(out, it->st_mode & 07777) < 0 || futimens(out, times) < 0 ? refuse(copy, name) : 0;
}

static int copy_symlink(struct copy *copy, int from, int to, const char *name)
{
    char target[PATH_MAX + 1];
    ssize_t len = readlinkat(from, name, target, sizeof(target) - 1);
    if (len >= 0)
        target[len] = '\0';
    return len < 0 || symlinkat(target, to, name) < 0 ? refuse(copy, name) : 0;
}

/* A directory is merged with one that is there, and takes the place of anything else. */
static int copy_open_dir(struct copy *copy, int in, int to, const char *name, const struct stat *it)
{
    struct stat there = {.st_mode = 0};
    bool is_merged = fstatat(to, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(there.st_mode) &&
                     !dirtree_is_opaque(in);
    errno = is_merged ? 0 : -clear(to, name);
    if (errno != 0 || (!is_merged && mkdirat(to, name, 0700) < 0))
        return refuse(copy, name);
    mode_t mode = S_IFDIR | (is_merged ? there.st_mode & 07777 : 0700);
    AUTO_CLOSE int out = dirtree_open_own(to, name, O_RDONLY | O_DIRECTORY, mode);
    if (out < 0)
        return refuse(copy, name);
    int code = copy_dir(copy, in, out);
    return code == 0 && fchmod(out, it->st_mode & 07777) < 0 ? refuse(copy, name) : code;
}

static int copy_subdir(struct copy *copy, int from, int to, const char *name, const struct stat *it)
{
    AUTO_CLOSE int in = dirtree_open_own(from, name, O_RDONLY | O_DIRECTORY, it->st_mode);
    int code = in < 0 ? refuse(copy, name) : copy_open_dir(copy, in, to, name, it);
    dirtree_leave_own(in, it->st_mode);
    return code;
}

/* What it takes is the container's own before it is written. */
static void note(const struct copy *copy, const struct stat *it)
{
    atomic_fetch_add(&copy->usage->container_inodes, 1);
    if (!S_ISDIR(it->st_mode))
        atomic_fetch_add(&copy->usage->container_bytes, (uint64_t)it->st_blocks * BLOCK_BYTES);
}

static int copy_one(struct copy *copy, int from, int to, const char *name)
{
    struct stat it;
    if (fstatat(from, name, &it, AT_SYMLINK_NOFOLLOW) < 0)
        return refuse(copy, name);
    if (S_ISDIR(it.st_mode)) {
        note(copy, &it);
        return copy_subdir(copy, from, to, name, &it);
    }
    errno = -clear(to, name);
    if (errno != 0)
        return refuse(copy, name);
    if (is_whiteout(from, name, &it))
        return 0;
    note(copy, &it);
    return S_ISREG(it.st_mode)   ? copy_file(copy, from, to, name, &it)
           : S_ISLNK(it.st_mode) ? copy_symlink(copy, from, to, name)
                                 : 0;
}

/* ---- directories -------------------------------------------------------------------- */

static int copy_dir(struct copy *copy, int from, int to)
{
    const struct dirent *entry;
    int code;
    AUTO_DIR stream = dir_stream_open(from);
    if (!stream)
        return refuse(copy, ".");
    if (copy->depth == TREE_DEPTH_MAX)
        return fail_set(copy->fail, -ENAMETOOLONG, "directories more than %d deep", TREE_DEPTH_MAX);
    copy->depth++;
    while ((code = dir_stream_next(stream, &entry)) > 0)
        if ((code = copy_one(copy, from, to, entry->d_name)) < 0)
            return code;
    copy->depth--;
    return code < 0 ? refuse(copy, ".") : 0;
}

/* 0, or -ENOTSUP with the first name that has no place in a container of Landlock's. */
static int check_top(const char *layer, int from, enum tier tier, struct fail *fail)
{
    const struct dirent *entry;
    AUTO_DIR stream = dir_stream_open(from);
    int code = stream ? 0 : -errno;
    while (stream && (code = dir_stream_next(stream, &entry)) > 0)
        if (strcmp(entry->d_name, "workspace") != 0 && strcmp(entry->d_name, "tmp") != 0)
            return fail_set(fail, -ENOTSUP,
                            "the files of an earlier stage change /%.64s: sandboxes of the tier %s have "
                            "/workspace and /tmp alone; workers with user namespaces have more (sluice doctor)",
                            entry->d_name, tier_word(tier));
    return code < 0 ? fail_set(fail, code, "the layer %s: %s", layer, strerror(-code)) : 0;
}

static int copy_all(const char *path, int to, const enum tier *checked, struct usage *usage, struct fail *fail)
{
    struct copy copy = {.usage = usage, .layer = path, .fail = fail};
    AUTO_CLOSE int from = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (from < 0)
        return fail_set(fail, -errno, "lower directory %s: %s", path, strerror(errno));
    int code = checked ? check_top(path, from, *checked, fail) : 0;
    return code < 0 ? code : copy_dir(&copy, from, to);
}

int landlock_layers_copy(const char *layer, int upper, enum tier tier, struct usage *usage, struct fail *fail)
{
    return copy_all(layer, upper, &tier, usage, fail);
}

int landlock_layers_copy_dir(const char *path, int to, struct usage *usage, struct fail *fail)
{
    return copy_all(path, to, NULL, usage, fail);
}

static int refuse_dir(const char *name, struct fail *fail)
{
    return fail_set(fail, -errno, "%s: %s", name, strerror(errno));
}

int landlock_layers_need_dir(int at, const char *name, struct fail *fail)
{
    struct stat it;
    if (fstatat(at, name, &it, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(it.st_mode))
        unlinkat(at, name, 0);
    if (mkdirat(at, name, 0755) < 0 && errno != EEXIST)
        return refuse_dir(name, fail);
    AUTO_CLOSE int dir = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return dir < 0 ? refuse_dir(name, fail) : 0;
}
