#include "workers/files/dirtree_take.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "workers/files/dirtree.h"
#include "workers/files/dirtree_walk.h"
#include "workers/files/dirtree_within.h"

/* ---- what lies in a directory that was taken ------------------------------------------------------ */

static bool is_kept(const struct dirtree_within *within, int dir, const char *name, const struct stat *it)
{
    if (S_ISREG(it->st_mode) || (S_ISCHR(it->st_mode) && it->st_rdev == makedev(0, 0)))
        return true;
    return S_ISLNK(it->st_mode) && dirtree_within_leads(within, dir, name);
}

static int clean(int dir, const char *name, void *arg);

static int clean_dir(int dir, const char *name, struct dirtree_within *within)
{
    mode_t mode;
    if (!dirtree_within_enter(within, name))
        return -ENAMETOOLONG;
    const int inner = dirtree_enter(dir, name, &mode);
    const int code = inner < 0 ? inner : dirtree_each(inner, clean, within);
    dirtree_within_leave(within, name);
    if (inner >= 0)
        dirtree_leave(inner, mode);
    return code;
}

static int clean(int dir, const char *name, void *arg)
{
    struct dirtree_within *within = arg;
    struct stat it;
    if (fstatat(dir, name, &it, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (dirtree_within_excludes(within, name))
        return dirtree_remove_entry(dir, name);
    if (S_ISDIR(it.st_mode))
        return clean_dir(dir, name, within);
    if (is_kept(within, dir, name, &it))
        return 0;
    const int code = dirtree_remove_entry(dir, name);
    return code < 0 || dirtree_white_out(dir, name) == 0 ? code : -errno;
}

/* ---- the way to it ---------------------------------------------------------------------------------- */

static bool is_whiteout(int dir, const char *name)
{
    AUTO_CLOSE int file = openat(dir, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    return file >= 0 && fgetxattr(file, TREE_WHITEOUT_XATTR, NULL, 0) >= 0;
}

static bool is_opaque(int dir)
{
    char value;
    return fgetxattr(dir, TREE_OPAQUE_XATTR, &value, 1) == 1 && value == 'y';
}

static int move(int from, const char *name, int into, const char *path)
{
    AUTO_CLOSE int parent = dirtree_open_parent(into, path);
    return parent < 0 || renameat(from, name, parent, dirtree_leaf(path)) < 0 ? -errno : 0;
}

/* `hides`: a directory above it covers what lies below. */
static int take_dir(int from, const char *name, int into, const struct dirtree_place *place, bool hides)
{
    struct dirtree_within within = dirtree_within_of(place);
    mode_t mode;
    const int dir = dirtree_enter(from, name, &mode);
    if (dir < 0)
        return dir;
    int code = move(from, name, into, place->path);
    if (code == 0 && hides && fsetxattr(dir, TREE_OPAQUE_XATTR, "y", 1, 0) < 0)
        code = -errno;
    if (code == 0)
        code = dirtree_each(dir, clean, &within);
    dirtree_leave(dir, mode);
    return code;
}

static int take_entry(int from, const char *name, int into, const struct dirtree_place *place, bool hides)
{
    struct stat it;
    if (fstatat(from, name, &it, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (S_ISDIR(it.st_mode))
        return take_dir(from, name, into, place, hides);
    return S_ISREG(it.st_mode) && !is_whiteout(from, name) ? move(from, name, into, place->path) : 0;
}

/* `path` is what is left of the way, and is written to. */
static int take_from(int from, char *path, int into, const struct dirtree_place *place, bool hides)
{
    mode_t mode;
    char *slash = strchr(path, '/');
    if (!slash)
        return take_entry(from, path, into, place, hides);
    *slash = '\0';
    const int inner = dirtree_enter(from, path, &mode);
    if (inner < 0)
        return inner == -ENOTDIR || inner == -ENOENT ? 0 : inner;
    const int code = take_from(inner, slash + 1, into, place, hides || is_opaque(inner));
    dirtree_leave(inner, mode);
    return code;
}

static bool is_covered(const struct dirtree_place *places, size_t count, size_t i)
{
    for (size_t k = 0; k < count; k++)
        if (k != i && dirtree_is_at_or_in(places[i].path, places[k].path) &&
            (k < i || strcmp(places[i].path, places[k].path) != 0))
            return true;
    return false;
}

int dirtree_take(int from, int into, const struct dirtree_place *places, size_t count, struct fail *fail)
{
    for (size_t i = 0; i < count; i++) {
        AUTO_FREE char *way = strdup(places[i].path);
        const int code = way ? is_covered(places, count, i) ? 0 : take_from(from, way, into, &places[i], false)
                             : -ENOMEM;
        if (code < 0)
            return fail_set(fail, code, "cannot take %.200s: %s", places[i].path, strerror(-code));
    }
    return 0;
}
