#include "workers/stages/build/build_ignore.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "workers/dockerfile/glob.h"
#include "workers/files/dir_names.h"
#include "workers/files/dirtree.h"
#include "common/files/dirtree_remove.h"
#include "workers/sources/source.h"

enum { IGNORE_BYTES_MAX = 64 << 10 };

struct dropping {
    struct ignore ignore;
    const atomic_bool *stop;
};

static int drop_below(const struct dropping *dropping, int dir, const char *path, int decided);

/* A directory that is left out stays as long as what is taken back from it is in it; without the right to write, things
 * go all the same. */
static int drop_in_part(const struct dropping *dropping, int dir, const char *path, mode_t mode, int decided)
{
    const char *name = dirtree_leaf(path);
    AUTO_CLOSE int inner = dirtree_open_own(dir, name, O_RDONLY | O_DIRECTORY, mode);
    int code = inner < 0 || fchmod(inner, (mode & 07777) | 0700) < 0 ? -errno : 0;
    if (code == 0)
        code = drop_below(dropping, inner, path, decided);
    dirtree_leave_own(inner, mode);
    if (code == 0 && ignore_names(&dropping->ignore, decided) && unlinkat(dir, name, AT_REMOVEDIR) < 0 &&
        errno != ENOTEMPTY)
        code = -errno;
    return code;
}

/* `above` is what decided about `dir`. */
static int drop_entry(const struct dropping *dropping, int dir, const char *path, int above)
{
    struct stat it;
    const char *name = dirtree_leaf(path);
    if (fstatat(dir, name, &it, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    const int decided = ignore_decide(&dropping->ignore, path, above);
    const bool is_out = ignore_names(&dropping->ignore, decided);
    if (S_ISDIR(it.st_mode))
        return is_out && !dropping->ignore.has_exceptions ? dirtree_remove_at(dir, name)
                                                          : drop_in_part(dropping, dir, path, it.st_mode, decided);
    return is_out && unlinkat(dir, name, 0) < 0 ? -errno : 0;
}

static int drop_below(const struct dropping *dropping, int dir, const char *path, int decided)
{
    struct dir_names names;
    int code = dir_names_read(dir, SOURCE_ENTRIES_MAX, &names);
    for (size_t i = 0; i < names.count && code == 0; i++) {
        AUTO_FREE char *inner = dirtree_join_below(path, names.each[i]);
        code = atomic_load(dropping->stop) ? -ECANCELED : inner ? drop_entry(dropping, dir, inner, decided) : -ENOMEM;
    }
    dir_names_finish(&names);
    return code;
}

/* 0, -ENOENT, -EINVAL: a link or such, or another negative errno, which errno has, too. */
static int open_ignore(int root, int *ret)
{
    struct stat it;
    if (fstatat(root, ".dockerignore", &it, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (!S_ISREG(it.st_mode))
        return -EINVAL;
    *ret = dirtree_open_own(root, ".dockerignore", O_RDONLY | O_NONBLOCK, it.st_mode);
    return *ret < 0 ? -errno : 0;
}

int build_ignore_apply(int root, const atomic_bool *stop, struct fail *fail)
{
    struct stat it;
    struct dropping dropping = {.stop = stop};
    AUTO_CLOSE int file = -1;
    int code = open_ignore(root, &file);
    if (code == -ENOENT)
        return 0;
    if (code == -EINVAL)
        return fail_set(fail, code, "the .dockerignore is not a file");
    if (code < 0 || fstat(file, &it) < 0)
        return dirtree_refuse(fail, "read", ".dockerignore");
    if (it.st_size > IGNORE_BYTES_MAX)
        return fail_set(fail, -EINVAL, "the .dockerignore has more than %d bytes", IGNORE_BYTES_MAX);
    AUTO_FREE char *text = malloc((size_t)it.st_size + 1);
    ssize_t len = text ? pread(file, text, (size_t)it.st_size, 0) : -1;
    if (len < 0)
        return text ? dirtree_refuse(fail, "read", ".dockerignore") : fail_memory(fail);
    code = ignore_parse(slice_of(text, (size_t)len), &dropping.ignore);
    if (code == -E2BIG)
        fail_set(fail, -EINVAL, "the .dockerignore has more than %d patterns, or one of more than %d bytes",
                 IGNORE_PATTERNS_MAX, PATH_MAX - 1);
    else if (code < 0)
        fail_memory(fail);
    if (code == 0 && dropping.ignore.count > 0 && (code = drop_below(&dropping, root, "", IGNORE_NOTHING)) < 0)
        fail_set(fail, code == -ECANCELED || code == -ENOMEM ? code : -EIO,
                 "cannot remove what the .dockerignore names: %s", strerror(-code));
    ignore_finish(&dropping.ignore);
    return code < 0 ? fail->code : 0;
}
