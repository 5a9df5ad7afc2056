#include "workers/sandbox/init/services/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/files/dir_stream.h"
#include "workers/files/dirtree.h"
#include "workers/files/open_below.h"
#include "workers/sandbox/container/mounts.h"

enum { PIECE = 1 << 20 };

struct copy {
    dev_t device; /* of the directories that are copied: what is mounted on them stays out */
    mode_t mode;  /* of all that is made; 0: as it is */
    size_t depth;
    struct fail *fail;
};

static int copy_entries(struct copy *copy, int from, int to);

static int refuse(const struct copy *copy, const char *name)
{
    return fail_set(copy->fail, -errno, "%.400s: %s", name, strerror(errno));
}

static mode_t mode_of(const struct copy *copy, const struct stat *it) { return copy->mode ? copy->mode : it->st_mode; }

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

static int copy_file(struct copy *copy, int from, const struct stat *it, int dir, const char *name)
{
    AUTO_CLOSE int to = clear_name(dir, name) < 0
                            ? -1
                            : openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to < 0 || copy_data(from, to) < 0 || fchmod(to, mode_of(copy, it) & 0777) < 0 || set_times(to, it) < 0)
        return refuse(copy, name);
    return 0;
}

static int copy_symlink(struct copy *copy, int from_dir, const struct stat *it, int dir, const char *name)
{
    char target[PATH_MAX];
    ssize_t len = readlinkat(from_dir, name, target, sizeof(target) - 1);
    target[len < 0 ? 0 : len] = '\0';
    if (len < 0 || clear_name(dir, name) < 0 || symlinkat(target, dir, name) < 0)
        return refuse(copy, name);
    utimensat(dir, name, (const struct timespec[2]){{.tv_nsec = UTIME_OMIT}, it->st_mtim}, AT_SYMLINK_NOFOLLOW);
    return 0;
}

/* The directory `name` of `dir`, behind a link too, which means what it means inside; -1 with errno. */
static int open_there(int dir, const char *name)
{
    char path[PATH_MAX];
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 || (errno != ENOTDIR && errno != ELOOP))
        return fd;
    AUTO_CLOSE int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (container_name_of(dir, path, sizeof(path)) < 0 || strlen(path) + strlen(name) + 2 > sizeof(path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcat(path, "/");
    strcat(path, name);
    return open_in_root(root, path, O_RDONLY | O_DIRECTORY, 0);
}

/* One that is there keeps its mode. */
static int copy_directory(struct copy *copy, int from, const struct stat *it, int dir, const char *name)
{
    const bool is_new = mkdirat(dir, name, 0700) == 0;
    if (!is_new && errno != EEXIST)
        return refuse(copy, name);
    AUTO_CLOSE int to = open_there(dir, name);
    if (to < 0)
        return refuse(copy, name);
    copy->depth++;
    int code = it->st_dev == copy->device ? copy_entries(copy, from, to) : 0;
    copy->depth--;
    if (code == 0 && is_new && (fchmod(to, mode_of(copy, it) & 01777) < 0 || set_times(to, it) < 0))
        return refuse(copy, name);
    return code;
}

static int copy_entry(struct copy *copy, int from_dir, const char *name, int to)
{
    struct stat it;
    if (fstatat(from_dir, name, &it, AT_SYMLINK_NOFOLLOW) < 0)
        return refuse(copy, name);
    if (S_ISLNK(it.st_mode))
        return copy_symlink(copy, from_dir, &it, to, name);
    if (!S_ISREG(it.st_mode) && !S_ISDIR(it.st_mode))
        return fail_set(copy->fail, -EINVAL, "%.400s: neither a file, a directory nor a link", name);
    AUTO_CLOSE int from = dirtree_open_own(from_dir, name, O_RDONLY | O_NONBLOCK, it.st_mode);
    if (from < 0)
        return refuse(copy, name);
    return S_ISDIR(it.st_mode) ? copy_directory(copy, from, &it, to, name) : copy_file(copy, from, &it, to, name);
}

static int copy_entries(struct copy *copy, int from, int to)
{
    const struct dirent *entry;
    int code;
    if (copy->depth > COPY_DEPTH_MAX)
        return fail_set(copy->fail, -ENAMETOOLONG, "more than %d levels", COPY_DEPTH_MAX);
    AUTO_DIR stream = dir_stream_open(from);
    if (!stream)
        return refuse(copy, "a directory");
    while ((code = dir_stream_next(stream, &entry)) > 0)
        if ((code = copy_entry(copy, from, entry->d_name, to)) < 0)
            return code;
    return code < 0 ? refuse(copy, "a directory") : 0;
}

/* ---- the whole ---------------------------------------------------------------------------------- */

/* A directory by its path, made where it is missing; -1 with errno. */
static int open_directory(int root, const char *path)
{
    int code = path[strspn(path, "/")] ? container_make_dirs(root, path, 0755) : 0;
    errno = -code;
    return code < 0 ? -1 : open_in_root(root, path[0] ? path : "/", O_RDONLY | O_DIRECTORY, 0);
}

int copy_in(int from, const char *path, mode_t mode, struct fail *fail)
{
    struct stat it;
    struct copy copy = {.mode = mode, .fail = fail};
    const char *slash = strrchr(path, '/');
    AUTO_CLOSE int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0 || fstat(from, &it) < 0)
        return refuse(&copy, path);
    copy.device = it.st_dev;
    AUTO_FREE char *into = S_ISDIR(it.st_mode) ? strdup(path) : strndup(path, (size_t)(slash - path));
    AUTO_CLOSE int to = into ? open_directory(root, into) : -1;
    if (to < 0)
        return refuse(&copy, path);
    return S_ISDIR(it.st_mode) ? copy_entries(&copy, from, to) : copy_file(&copy, from, &it, to, slash + 1);
}
