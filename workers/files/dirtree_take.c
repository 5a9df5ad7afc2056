#include "workers/files/dirtree_take.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
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

/* To a name of `into`, which is the path of `place`. `hides`: a directory above it covers what lies below. */
static int take_dir(int from, const char *name, int into, const struct dirtree_place *place, bool hides)
{
    struct dirtree_within within = dirtree_within_of(place);
    mode_t mode;
    const int dir = dirtree_enter(from, name, &mode);
    if (dir < 0)
        return dir;
    int code = renameat(from, name, into, place->path) < 0 ? -errno : 0;
    if (code == 0 && hides && dirtree_set_opaque(dir) < 0)
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
    const bool is_file = S_ISREG(it.st_mode) && !is_whiteout(from, name);
    return is_file && renameat(from, name, into, place->path) < 0 ? -errno : 0;
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
    const int code = take_from(inner, slash + 1, into, place, hides || dirtree_is_opaque(inner));
    dirtree_leave(inner, mode);
    return code;
}

/* ---- several of them ---------------------------------------------------------------------------------- */

enum { NAME_SIZE = 40 };

static void name_taken(char name[NAME_SIZE], size_t i) { snprintf(name, NAME_SIZE, ".sluice-taken-%zu", i); }

/* Under a name of its own at first: what lies in another place is gone from there before that is taken. */
static int take_apart(int from, int into, const struct dirtree_place *place, size_t i)
{
    char name[NAME_SIZE];
    AUTO_FREE char *way = strdup(place->path);
    const struct dirtree_place apart = {name, place->exclude, place->exclude_count};
    name_taken(name, i);
    return way ? take_from(from, way, into, &apart, false) : -ENOMEM;
}

static int put_back(int into, const struct dirtree_place *place, size_t i)
{
    char name[NAME_SIZE];
    name_taken(name, i);
    const int code = dirtree_put(into, name, place->path);
    return code == -ENOENT ? 0 : code;
}

static int refuse(const struct dirtree_place *place, int code, struct fail *fail)
{
    return fail_set(fail, code, "cannot take %.200s: %s", place->path, strerror(-code));
}

int dirtree_take(int from, int into, const struct dirtree_place *places, size_t count, struct fail *fail)
{
    AUTO_FREE size_t *order = calloc(count + 1, sizeof(*order));
    if (!order)
        return fail_memory(fail);
    const size_t chosen = dirtree_places_choose(places, NULL, count, order);
    for (size_t i = chosen; i-- > 0;) {
        const int code = take_apart(from, into, &places[order[i]], i);
        if (code < 0)
            return refuse(&places[order[i]], code, fail);
    }
    for (size_t i = 0; i < chosen; i++) {
        const int code = put_back(into, &places[order[i]], i);
        if (code < 0)
            return refuse(&places[order[i]], code, fail);
    }
    return 0;
}
