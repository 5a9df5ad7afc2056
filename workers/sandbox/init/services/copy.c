#include "workers/sandbox/init/services/copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "workers/files/dirtree.h"
#include "workers/sandbox/container/mounts.h"

enum { PIECE = 1 << 20 };

static int copy_entries(int from, int to, size_t depth, struct fail *fail);

static int refuse(struct fail *fail, const char *name)
{
    return fail_set(fail, -errno, "%.400s: %s", name, strerror(errno));
}

static int set_times(int fd, const struct stat *it)
{
    return futimens(fd, (const struct timespec[2]){{.tv_nsec = UTIME_OMIT}, it->st_mtim});
}

/* What is there and is no directory gives way. */
static int clear_name(int dir, const char *name) { return unlinkat(dir, name, 0) == 0 || errno == ENOENT ? 0 : -1; }

static int copy_data(int from, int to)
{
    for (;;) {
        ssize_t sent = sendfile(to, from, NULL, PIECE);
        if (sent == 0 || (sent < 0 && errno != EINTR))
            return (int)sent;
    }
}

static int copy_file(int from, const struct stat *it, int dir, const char *name, struct fail *fail)
{
    AUTO_CLOSE int to = clear_name(dir, name) < 0
                            ? -1
                            : openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to < 0 || copy_data(from, to) < 0 || fchmod(to, it->st_mode & 0777) < 0 || set_times(to, it) < 0)
        return refuse(fail, name);
    return 0;
}

static int copy_symlink(int from_dir, const struct stat *it, int dir, const char *name, struct fail *fail)
{
    char target[PATH_MAX];
    ssize_t len = readlinkat(from_dir, name, target, sizeof(target) - 1);
    target[len < 0 ? 0 : len] = '\0';
    if (len < 0 || clear_name(dir, name) < 0 || symlinkat(target, dir, name) < 0)
        return refuse(fail, name);
    utimensat(dir, name, (const struct timespec[2]){{.tv_nsec = UTIME_OMIT}, it->st_mtim}, AT_SYMLINK_NOFOLLOW);
    return 0;
}

/* The directory `name` of `dir`, behind a link too, which means what it means inside; -1 with errno. */
static int open_there(int dir, const char *name)
{
    char path[PATH_MAX], *end;
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 || (errno != ENOTDIR && errno != ELOOP))
        return fd;
    AUTO_CLOSE int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (container_name_of(dir, path, sizeof(path)) < 0 || strlen(path) + strlen(name) + 2 > sizeof(path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    end = path + strlen(path);
    *end++ = '/';
    strcpy(end, name);
    return container_open(root, path, O_RDONLY | O_DIRECTORY, 0);
}

/* One that is there keeps its mode. */
static int copy_directory(int from, const struct stat *it, int dir, const char *name, size_t depth, struct fail *fail)
{
    const bool is_new = mkdirat(dir, name, 0700) == 0;
    if (!is_new && errno != EEXIST)
        return refuse(fail, name);
    AUTO_CLOSE int to = open_there(dir, name);
    if (to < 0)
        return refuse(fail, name);
    int code = copy_entries(from, to, depth + 1, fail);
    if (code == 0 && is_new && (fchmod(to, it->st_mode & 01777) < 0 || set_times(to, it) < 0))
        return refuse(fail, name);
    return code;
}

static int copy_entry(int from_dir, const char *name, int to, size_t depth, struct fail *fail)
{
    struct stat it;
    if (fstatat(from_dir, name, &it, AT_SYMLINK_NOFOLLOW) < 0)
        return refuse(fail, name);
    if (S_ISLNK(it.st_mode))
        return copy_symlink(from_dir, &it, to, name, fail);
    if (!S_ISREG(it.st_mode) && !S_ISDIR(it.st_mode))
        return fail_set(fail, -EINVAL, "%.400s: neither a file, a directory nor a link", name);
    AUTO_CLOSE int from = dirtree_open_own(from_dir, name, O_RDONLY | O_NONBLOCK, it.st_mode);
    if (from < 0)
        return refuse(fail, name);
    return S_ISDIR(it.st_mode) ? copy_directory(from, &it, to, name, depth, fail)
                               : copy_file(from, &it, to, name, fail);
}

static int copy_entries(int from, int to, size_t depth, struct fail *fail)
{
    const struct dirent *entry;
    int code = depth > COPY_DEPTH_MAX ? fail_set(fail, -ENAMETOOLONG, "more than %d levels", COPY_DEPTH_MAX) : 0;
    int own = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = own < 0 ? NULL : fdopendir(own);
    if (!stream) {
        code = refuse(fail, "a directory");
        cleanup_close(&own);
        return code;
    }
    while (code == 0 && (entry = readdir(stream)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            code = copy_entry(from, entry->d_name, to, depth, fail);
    closedir(stream);
    return code;
}

/* ---- the whole ---------------------------------------------------------------------------------- */

/* The directory that `path` is in, made where it is missing. */
static int open_above(int root, const char *path)
{
    const char *slash = strrchr(path, '/');
    AUTO_FREE char *above = strndup(path, (size_t)(slash - path));
    if (!above) {
        errno = ENOMEM;
        return -1;
    }
    int code = above[strspn(above, "/")] ? container_make_dirs(root, above, 0755) : 0;
    errno = -code;
    return code < 0 ? -1 : container_open(root, above[0] ? above : "/", O_RDONLY | O_DIRECTORY, 0);
}

int copy_in(int from, const char *path, struct fail *fail)
{
    struct stat it;
    AUTO_CLOSE int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0 || fstat(from, &it) < 0)
        return refuse(fail, path);
    int code = 0;
    if (!S_ISDIR(it.st_mode)) {
        AUTO_CLOSE int above = open_above(root, path);
        code = above < 0 ? refuse(fail, path) : copy_file(from, &it, above, strrchr(path, '/') + 1, fail);
    } else {
        code = path[strspn(path, "/")] ? container_make_dirs(root, path, 0755) : 0;
        errno = -code;
        AUTO_CLOSE int to = code < 0 ? -1 : container_open(root, path, O_RDONLY | O_DIRECTORY, 0);
        code = to < 0 ? refuse(fail, path) : copy_entries(from, to, 0, fail);
    }
    return code;
}
