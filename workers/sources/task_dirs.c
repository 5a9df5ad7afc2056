#include "workers/sources/task_dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "workers/files/dirtree.h"
#include "workers/files/open_below.h"

/* Without doubled slashes and "."; NULL: no absolute path, one with "..", or no memory. */
static char *clean_absolute(const char *path)
{
    AUTO_FREE char *clean = path[0] == '/' ? dirtree_clean_path(path + strspn(path, "/")) : NULL;
    return clean ? dirtree_join("", clean) : NULL;
}

void task_dirs_finish(struct task_dirs *dirs)
{
    while (dirs->count > 0) {
        struct task_dir *last = &dirs->each[--dirs->count];
        free(last->named);
        free(last->real);
    }
}

int task_dirs_add(struct task_dirs *dirs, const char *path, struct fail *fail)
{
    struct stat it;
    AUTO_FREE char *real = realpath(path, NULL);
    if (!real || stat(real, &it) < 0)
        return fail_set(fail, -EINVAL, "--task-dir %s: %s", path, strerror(errno));
    if (!S_ISDIR(it.st_mode))
        return fail_set(fail, -EINVAL, "--task-dir %s: it is not a directory", path);
    int code = image_list_check(dirs->own, "--task-dir", path, real, fail);
    if (code < 0)
        return code;
    if (dirs->count == TASK_DIRS_MAX)
        return fail_set(fail, -EINVAL, "--task-dir: more than %d directories", TASK_DIRS_MAX);
    char *named = clean_absolute(path);
    dirs->each[dirs->count++] = (struct task_dir){named ? named : strdup(real), take_ptr(&real)};
    return dirs->each[dirs->count - 1].named ? 0 : fail_memory(fail);
}

/* ---- opening ---------------------------------------------------------------------------------- */

/* The rest of `source` below `dir`; NULL: it does not lie there. */
static const char *rest_below(const char *source, const char *dir)
{
    size_t len = strlen(dir);
    if (strncmp(source, dir, len) != 0 || (source[len] != '/' && source[len] != '\0'))
        return NULL;
    return source + len + strspn(source + len, "/");
}

/* The directory that it lies in, and its rest there. */
static const struct task_dir *find_dir(const struct task_dirs *dirs, const char *source, const char **ret_rest)
{
    for (size_t i = 0; dirs && i < dirs->count; i++)
        if ((*ret_rest = rest_below(source, dirs->each[i].named)) ||
            (*ret_rest = rest_below(source, dirs->each[i].real)))
            return &dirs->each[i];
    return NULL;
}

static int open_beneath(const char *dir, const char *rest)
{
    AUTO_CLOSE int root = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return root < 0 ? -1 : open_below(root, rest, O_PATH, 0, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
}

static int refuse_open(const struct task_dir *dir, const char *source, struct fail *fail)
{
    if (errno == EXDEV)
        return fail_set(fail, -EINVAL, "the source %.400s: a symbolic link on the way leads out of %.200s", source,
                        dir->named);
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == ENAMETOOLONG)
        return fail_set(fail, -EINVAL, "the source %.400s is not there: %s", source, strerror(errno));
    return fail_set(fail, -EIO, "cannot open the source %.400s: %s", source, strerror(errno));
}

/* By where the kernel says that it is. */
static bool is_own(const struct task_dirs *dirs, int fd)
{
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof(path) - 1);
    path[len < 0 ? 0 : len] = '\0';
    return len <= 0 || image_list_is_own(dirs->own, path);
}

int task_dirs_open(const struct task_dirs *dirs, const char *source, struct fail *fail)
{
    const char *rest = NULL;
    AUTO_FREE char *clean = clean_absolute(source);
    const struct task_dir *dir = clean ? find_dir(dirs, clean, &rest) : NULL;
    if (!dir)
        return fail_set(fail, -EINVAL,
                        "the source %.400s is not one that this worker offers: its operator lists directories of tasks "
                        "with --task-dir DIR",
                        source);
    AUTO_CLOSE int fd = open_beneath(dir->real, rest);
    if (fd < 0)
        return refuse_open(dir, source, fail);
    if (is_own(dirs, fd))
        return fail_set(
            fail, -EINVAL,
            "the source %.400s is, holds or lies in what is the host's or the worker's own, which no source "
            "may, whatever --task-dir lists",
            source);
    return take_fd(&fd);
}
