#include "workers/sandbox/init/services/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "common/base/cleanup.h"
#include "workers/files/open_below.h"
#include "workers/sandbox/container/mounts.h"

static const uint64_t file_flags = O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC | O_APPEND | O_DIRECTORY | O_NOFOLLOW;

static int say(struct fail *fail, int code, const char *path)
{
    return fail_set(fail, code, "%.400s: %s", path, strerror(-code));
}

/* The one right that pid 1 keeps where it may have one, in use or not. */
static void use_right(bool on)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct rights[2] = {0};
    if (syscall(SYS_capget, &header, rights) < 0 || !(rights[0].permitted & (1u << CAP_DAC_OVERRIDE)))
        return;
    rights[0].permitted = 1u << CAP_DAC_OVERRIDE;
    rights[0].effective = on ? rights[0].permitted : 0;
    if (syscall(SYS_capset, &header, rights) < 0)
        _exit(1);
}

/* ---- opening -------------------------------------------------------------------------- */

static int make_parents(int root, const char *path)
{
    AUTO_FREE char *parent = strdup(path);
    char *slash = parent ? strrchr(parent, '/') : NULL;
    if (!parent)
        return -ENOMEM;
    if (slash)
        *slash = '\0';
    return slash && *parent ? container_make_dirs(root, parent, 0755) : 0;
}

static int open_it(const char *path, uint64_t flags, mode_t mode, struct fail *fail)
{
    AUTO_CLOSE int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int made = flags & O_CREAT ? make_parents(root, path) : 0;
    if (made < 0)
        return say(fail, made, path);
    int fd = open_in_root(root, path, (flags & file_flags) | O_NONBLOCK | O_NOCTTY, mode);
    return fd < 0 ? say(fail, -errno, path) : fd;
}

static int check_kind(int fd, const char *path, struct fail *fail)
{
    struct stat it;
    struct statfs on;
    if (fstat(fd, &it) < 0 || fstatfs(fd, &on) < 0)
        return say(fail, -errno, path);
    if (on.f_type == PROC_SUPER_MAGIC)
        return fail_set(fail, -EINVAL, "%.400s: files of /proc are only for processes inside", path);
    if (!S_ISREG(it.st_mode) && !S_ISDIR(it.st_mode))
        return fail_set(fail, -EINVAL, "%.400s: neither a file nor a directory", path);
    return 0;
}

int files_open(const char *path, uint64_t flags, mode_t mode, bool as_user, struct fail *fail)
{
    use_right(!as_user);
    AUTO_CLOSE int fd = open_it(path, flags, mode, fail);
    use_right(true);
    if (fd < 0)
        return take_fd(&fd);
    int code = check_kind(fd, path, fail);
    return code < 0 ? code : take_fd(&fd);
}

/* ---- names ----------------------------------------------------------------------------- */

/* The directory that `path` is in, and its name there. */
static int open_parent(const char *path, const char **ret_name)
{
    char parent[PATH_MAX];
    AUTO_CLOSE int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    const char *slash = strrchr(path, '/');
    *ret_name = slash + 1;
    snprintf(parent, sizeof(parent), "%.*s/", (int)(slash - path), path);
    return open_in_root(root, parent, O_PATH | O_DIRECTORY, 0);
}

static int rename_it(const char *from, const char *to)
{
    const char *from_name, *to_name;
    AUTO_CLOSE int from_dir = open_parent(from, &from_name);
    if (from_dir < 0)
        return -errno;
    if (!to)
        return unlinkat(from_dir, from_name, 0) < 0 ? -errno : 0;
    AUTO_CLOSE int to_dir = open_parent(to, &to_name);
    return to_dir < 0 || renameat(from_dir, from_name, to_dir, to_name) < 0 ? -errno : 0;
}

int files_rename(const char *from, const char *to, struct fail *fail)
{
    use_right(false);
    int code = rename_it(from, to);
    use_right(true);
    return code < 0 ? say(fail, code, to ? to : from) : 0;
}

/* ---- whether it is all there ------------------------------------------------------------- */

/* What a file system says whose process, disk or server is gone. */
static bool is_gone(int error)
{
    static const int gone[] = {ENOTCONN, ECONNABORTED, ECONNRESET, ECONNREFUSED, ESHUTDOWN, EIO,
                               ESTALE,   ENODEV,       ENXIO,      EREMOTEIO,    ETIMEDOUT, EUCLEAN};
    for (size_t i = 0; i < sizeof(gone) / sizeof(*gone); i++)
        if (error == gone[i])
            return true;
    return false;
}

/* Who serves it is asked for its container, and all its layers for a name. 0, or the errno. */
static int ask_directory(const char *path, uint64_t number)
{
    struct statfs on;
    char name[48];
    snprintf(name, sizeof(name), ".sluice-%llx", (unsigned long long)number);
    AUTO_CLOSE int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || fstatfs(dir, &on) < 0 || faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return errno;
    return 0;
}

int files_confirm(int upper, uint64_t number, struct fail *fail)
{
    static const char *const paths[] = {"/", "/usr", "/etc"}; /* on the image "host" each a mount of its own */
    struct stat it;
    for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
        int error = ask_directory(paths[i], number);
        if (is_gone(error))
            return fail_set(fail, -EIO, "the sandbox's file system at %s does not answer any more: %s", paths[i],
                            strerror(error));
    }
    if (upper >= 0 && (fstat(upper, &it) < 0 || it.st_nlink == 0))
        return fail_set(fail, -EIO, "what was written in the sandbox was removed under it");
    return 0;
}

/* ---- terminals --------------------------------------------------------------------------- */

int files_open_terminal(int *ret_number, struct fail *fail)
{
    int locked = 0;
    AUTO_CLOSE int fd = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || ioctl(fd, TIOCSPTLCK, &locked) < 0 || ioctl(fd, TIOCGPTN, ret_number) < 0)
        return fail_set(fail, -errno, "a terminal: %s", strerror(errno));
    return take_fd(&fd);
}
