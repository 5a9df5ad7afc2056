#include "workers/stages/sandbox/real_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "workers/files/dirtree.h"
#include "workers/sandbox/container/host_image.h"

enum { LINKS_MAX = 40 };

/* ---- one name in all layers -------------------------------------------------------------------- */

/* O_PATH, also of a link; -1: it is not there. */
static int open_in(const char *root, const char *path)
{
    const bool is_host = host_image_is(root);
    if (is_host && !host_image_shows(path))
        return -1;
    AUTO_CLOSE int top = open(is_host ? "/" : root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return top < 0 ? -1 : dirtree_open(top, path, O_PATH | O_NOFOLLOW);
}

static bool is_whiteout(int fd, const struct stat *it)
{
    char link[64];
    if (!S_ISREG(it->st_mode))
        return S_ISCHR(it->st_mode) && it->st_rdev == makedev(0, 0);
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    return it->st_size == 0 && getxattr(link, TREE_WHITEOUT_XATTR, NULL, 0) >= 0;
}

static bool is_opaque(int fd)
{
    char link[64], value;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    return getxattr(link, TREE_OPAQUE_XATTR, &value, 1) == 1 && value == 'y';
}

/* The uppermost of the first *count roots that has it, if any; how many of them show what lies in it. */
static int look_up(const char *const *roots, size_t *count, const char *path, struct stat *ret)
{
    AUTO_CLOSE int found = -1;
    for (size_t i = 0; i < *count; i++) {
        struct stat it;
        AUTO_CLOSE int fd = open_in(roots[i], path);
        if (fd < 0 || fstat(fd, &it) < 0)
            continue;
        const bool is_gone = is_whiteout(fd, &it), is_dir = S_ISDIR(it.st_mode);
        if (is_gone || !is_dir || is_opaque(fd))
            *count = is_gone || (found >= 0 && !is_dir) ? i : i + 1;
        if (found < 0 && !is_gone) {
            *ret = it;
            found = take_fd(&fd);
        }
    }
    return take_fd(&found);
}

/* What a link says; false: it is none, or nothing is there. */
static bool read_link(const char *const *roots, size_t count, const char *path, char ret[static PATH_MAX])
{
    struct stat it = {0};
    char prefix[PATH_MAX];
    for (size_t len = 0; path[len]; len += path[len] == '/') {
        len += strcspn(path + len, "/");
        snprintf(prefix, sizeof(prefix), "%.*s", (int)len, path);
        AUTO_CLOSE int fd = look_up(roots, &count, prefix, &it);
        if (fd < 0)
            return false;
        if (S_ISLNK(it.st_mode)) {
            const ssize_t got = readlinkat(fd, "", ret, PATH_MAX - 1);
            ret[got < 0 ? 0 : got] = '\0';
            return got > 0;
        }
    }
    return false;
}

/* ---- the whole --------------------------------------------------------------------------------------- */

static void leave_last(char *path)
{
    char *slash = strrchr(path, '/');
    *(slash ? slash : path) = '\0';
}

/* What is left of the way comes behind what the link says. */
static int follow(char *done, char rest[static PATH_MAX], const char *link)
{
    char whole[2 * PATH_MAX];
    const int len = snprintf(whole, sizeof(whole), "%s/%s", link, rest);
    if (len >= PATH_MAX)
        return -ENAMETOOLONG;
    memcpy(rest, whole, (size_t)len + 1);
    if (link[0] == '/')
        done[0] = '\0';
    else
        leave_last(done);
    return 0;
}

/* The first name of `rest` goes behind `done`. False: that has no room for it. */
static bool take_name(char done[static PATH_MAX], char *rest)
{
    const char *from = rest + strspn(rest, "/");
    const size_t len = strcspn(from, "/"), had = strlen(done);
    const bool is_up = len == 2 && memcmp(from, "..", 2) == 0, is_here = len == 1 && *from == '.';
    if (is_up)
        leave_last(done);
    else if (!is_here && had + len + 2 > PATH_MAX)
        return false;
    else if (!is_here)
        sprintf(done + had, "%s%.*s", had ? "/" : "", (int)len, from);
    memmove(rest, from + len, strlen(from + len) + 1);
    return true;
}

int real_path_find(const char *const *roots, size_t count, const char *path, char ret[static PATH_MAX])
{
    char rest[PATH_MAX], link[PATH_MAX];
    if (snprintf(rest, sizeof(rest), "%s", path) >= (int)sizeof(rest))
        return -ENAMETOOLONG;
    ret[0] = '\0';
    for (int links = 0; rest[strspn(rest, "/")];) {
        if (!take_name(ret, rest))
            return -ENAMETOOLONG;
        if (!ret[0] || !read_link(roots, count, ret, link))
            continue;
        if (++links > LINKS_MAX)
            return -ELOOP;
        const int code = follow(ret, rest, link);
        if (code < 0)
            return code;
    }
    AUTO_FREE char *clean = dirtree_clean_path(ret);
    return clean && clean[0] ? 0 : -EINVAL;
}
