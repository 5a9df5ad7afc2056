#include "workers/files/dirtree_keep.h"

#include <errno.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/files/dirtree.h"
#include "workers/files/dirtree_walk.h"

/* ---- what is not to be in it -------------------------------------------------------------------- */

static int drop(int dir, const char *name, void *arg)
{
    const char *without = arg;
    mode_t mode;
    if (strcmp(name, without) == 0)
        return dirtree_remove_entry(dir, name);
    const int inner = dirtree_enter(dir, name, &mode);
    if (inner < 0)
        return inner == -ENOTDIR || inner == -ENOENT ? 0 : inner;
    const int code = dirtree_each(inner, drop, arg);
    dirtree_leave(inner, mode);
    return code;
}

/* ---- the way to it --------------------------------------------------------------------------------- */

static int drop_other(int dir, const char *name, void *arg)
{
    return strcmp(name, arg) == 0 ? 0 : dirtree_remove_entry(dir, name);
}

/* `path` is what is left of the way, and is written to. */
static int keep_in(int dir, char *path, const char *without)
{
    mode_t mode;
    path += strspn(path, "/");
    if (!*path)
        return dirtree_each(dir, drop, (void *)(uintptr_t)without);
    char *rest = path + strcspn(path, "/");
    if (*rest)
        *rest++ = '\0';
    int code = dirtree_each(dir, drop_other, path);
    if (code < 0)
        return code;
    const int inner = dirtree_enter(dir, path, &mode);
    if (inner < 0)
        return inner == -ENOTDIR ? dirtree_remove_entry(dir, path) : inner == -ENOENT ? 0 : inner;
    code = keep_in(inner, rest, without);
    dirtree_leave(inner, mode);
    return code;
}

int dirtree_keep(int root, const char *path, const char *without, struct fail *fail)
{
    AUTO_FREE char *way = dirtree_clean_path(path + strspn(path, "/"));
    if (!way)
        return fail_set(fail, -EINVAL, "%.200s is not a path below a root", path);
    const int code = keep_in(root, way, without);
    return code < 0 ? fail_set(fail, code, "cannot keep %.200s alone: %s", path, strerror(-code)) : 0;
}
