/*
 * Removing a tree whose depth is its maker's choice. LEVELS_MAX levels are walked down, each with a
 * descriptor and a stack frame; a directory below those is moved into the top of the tree, and the
 * next round finds it there.
 */
#include "common/files/dirtree_remove.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/files/dir_stream.h"

enum { LEVELS_MAX = 16 };

struct removal {
    int top;
    unsigned long moved; /* into it, or tried to */
};

static int remove_entries(struct removal *removal, int dir, int level);

/* Its modes may be anything. */
static int open_dir(int parent, const char *name)
{
    if (fchmodat(parent, name, 0700, 0) < 0)
        return -errno;
    int dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return dir < 0 ? -errno : dir;
}

/* An empty directory of that name is replaced, and so is gone; for anything else, another name. */
static int move_up(struct removal *removal, int parent, const char *name)
{
    if (fchmodat(parent, name, 0700, 0) < 0) /* its ".." is written, too */
        return -errno;
    for (;;) {
        char up[32];
        snprintf(up, sizeof(up), "deep.%lu", removal->moved++);
        if (renameat(parent, name, removal->top, up) == 0)
            return 0;
        if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR)
            return -errno;
    }
}

/* Some file systems move no directory (an overlay those of its lower ones): then down as far as
 * trees of our own making go. */
static int remove_dir(struct removal *removal, int parent, const char *name, int level)
{
    int code = level < LEVELS_MAX ? -EXDEV : move_up(removal, parent, name);
    if (code == 0 || level == DIRTREE_REMOVE_DEPTH)
        return code;
    int dir = open_dir(parent, name);
    code = dir < 0 ? dir : remove_entries(removal, dir, level + 1); /* closes it */
    if (code == 0 && unlinkat(parent, name, AT_REMOVEDIR) < 0)
        code = -errno;
    return code;
}

static int remove_entry(struct removal *removal, int dir, const struct dirent *entry, int level)
{
    struct stat it;
    if (entry->d_type != DT_DIR && unlinkat(dir, entry->d_name, 0) == 0)
        return 0;
    if (fstatat(dir, entry->d_name, &it, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    return S_ISDIR(it.st_mode) ? remove_dir(removal, dir, entry->d_name, level) : -EACCES;
}

static int remove_entries(struct removal *removal, int dir, int level)
{
    DIR *stream = fdopendir(dir);
    if (!stream) {
        close(dir);
        return -ENOMEM;
    }
    int code;
    const struct dirent *entry;
    while ((code = dir_stream_next(stream, &entry)) > 0)
        if ((code = remove_entry(removal, dir, entry, level)) < 0)
            break;
    closedir(stream);
    return code;
}

/* What is moved into a directory while it is read may or may not be seen: until a round moves nothing. */
static int empty_top(struct removal *removal)
{
    for (;;) {
        unsigned long moved = removal->moved;
        int dir = openat(removal->top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int code = dir < 0 ? -errno : remove_entries(removal, dir, 1);
        if (code < 0 || removal->moved == moved)
            return code;
    }
}

int dirtree_remove_at(int parent, const char *name)
{
    AUTO_CLOSE int top = open_dir(parent, name);
    if (top < 0)
        return top;
    int code = empty_top(&(struct removal){.top = top});
    return code == 0 && unlinkat(parent, name, AT_REMOVEDIR) < 0 ? -errno : code;
}

int dirtree_remove(const char *path) { return dirtree_remove_at(AT_FDCWD, path); }
