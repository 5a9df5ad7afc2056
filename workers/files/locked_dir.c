#include "workers/files/locked_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "workers/files/dirtree.h"
#include "common/files/dirtree_remove.h"

bool locked_dir_is_at(int dir, const char *path)
{
    struct stat open_one, named;
    return fstat(dir, &open_one) == 0 && lstat(path, &named) == 0 && open_one.st_ino == named.st_ino &&
           open_one.st_dev == named.st_dev;
}

int locked_dir_hold(const char *path)
{
    AUTO_CLOSE int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 || flock(dir, LOCK_SH | LOCK_NB) < 0 || !locked_dir_is_at(dir, path))
        return -1;
    futimens(dir, NULL); /* asked for now */
    return take_fd(&dir);
}

/* The caller frees it. NULL: out of memory. */
static char *gone_name(const char *path)
{
    char *gone = NULL;
    return asprintf(&gone, "%s" HELD_DIR_GONE "%lx", path, (unsigned long)clock_us()) < 0 ? NULL : gone;
}

bool locked_dir_set_aside(int dir, const char *path)
{
    AUTO_FREE char *gone = gone_name(path);
    return gone && locked_dir_is_at(dir, path) && rename(path, gone) == 0;
}

bool locked_dir_remove(int dir, const char *path)
{
    if (flock(dir, LOCK_EX | LOCK_NB) < 0 || !locked_dir_is_at(dir, path))
        return false;
    if (strstr(dirtree_leaf(path), HELD_DIR_GONE)) /* a longer name each time would be too long in the end */
        return dirtree_remove(path) == 0;
    AUTO_FREE char *gone = gone_name(path);
    return gone && rename(path, gone) == 0 && dirtree_remove(gone) == 0;
}

char *locked_dir_make(const char *parent, const char *name, struct fail *fail)
{
    AUTO_FREE char *path = NULL;
    if (asprintf(&path, "%s/%s" HELD_DIR_TMP "XXXXXX", parent, name) < 0) {
        path = NULL;
        fail_memory(fail);
        return NULL;
    }
    if (!mkdtemp(path)) {
        dirtree_refuse(fail, "make", path);
        return NULL;
    }
    return take_ptr(&path);
}
