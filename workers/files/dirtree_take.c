#include "workers/files/dirtree_take.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "workers/files/dirtree.h"
#include "workers/files/dirtree_walk.h"

/* ---- what lies in a directory that was taken ------------------------------------------------------ */

struct within {
    const struct dirtree_place *place;
    char path[PATH_MAX]; /* of the directory in hand, from the place on: "." or "./a/b" */
    size_t len, depth;
};

/* By any part of its path that begins with a name, "./" at its front included. */
static bool is_excluded(const struct within *within, const char *name)
{
    char path[PATH_MAX + NAME_MAX + 2];
    snprintf(path, sizeof(path), "%s/%s", within->path, name);
    for (size_t i = 0; i < within->place->exclude_count; i++)
        for (const char *at = path; at; at = strchr(at, '/'), at += at != NULL)
            if (fnmatch(within->place->exclude[i], at, 0) == 0)
                return true;
    return false;
}

/* Up at its beginning alone, and no further than the place: so it cannot lead out by way of other links, either. */
static bool leads_within(const char *target, size_t depth)
{
    bool has_name = false;
    if (target[0] == '/')
        return false;
    for (size_t len; *target; target += len + (target[len] == '/')) {
        len = strcspn(target, "/");
        const bool is_up = len == 2 && memcmp(target, "..", 2) == 0;
        if (is_up && (has_name || depth-- == 0))
            return false;
        has_name |= !is_up && len > 0 && !(len == 1 && *target == '.');
    }
    return true;
}

static bool is_kept(const struct within *within, int dir, const char *name, const struct stat *it)
{
    char target[PATH_MAX];
    if (S_ISREG(it->st_mode) || (S_ISCHR(it->st_mode) && it->st_rdev == makedev(0, 0)))
        return true;
    const ssize_t len = S_ISLNK(it->st_mode) ? readlinkat(dir, name, target, sizeof(target) - 1) : -1;
    target[len < 0 ? 0 : len] = '\0';
    return len >= 0 && leads_within(target, within->depth);
}

static int clean(int dir, const char *name, void *arg);

static int clean_dir(int dir, const char *name, struct within *within)
{
    const size_t len = within->len;
    mode_t mode;
    if (len + 1 + strlen(name) >= sizeof(within->path))
        return -ENAMETOOLONG;
    const int inner = dirtree_enter(dir, name, &mode);
    if (inner < 0)
        return inner;
    within->len += (size_t)sprintf(within->path + len, "/%s", name);
    within->depth++;
    const int code = dirtree_each(inner, clean, within);
    within->depth--;
    within->len = len;
    within->path[len] = '\0';
    dirtree_leave(inner, mode);
    return code;
}

static int clean(int dir, const char *name, void *arg)
{
    struct within *within = arg;
    struct stat it;
    if (fstatat(dir, name, &it, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (is_excluded(within, name))
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
    struct within within = {.place = place, .path = ".", .len = 1};
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

static bool is_at_or_in(const char *path, const char *dir)
{
    const size_t len = strlen(dir);
    return strncmp(path, dir, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

static bool is_covered(const struct dirtree_place *places, size_t count, size_t i)
{
    for (size_t k = 0; k < count; k++)
        if (k != i && is_at_or_in(places[i].path, places[k].path) &&
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
