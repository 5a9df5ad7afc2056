#include "workers/tools/edit/edit_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "workers/runtime/offload.h"
#include "workers/sandbox/requests.h"

static int say(struct fail *fail, int code, const char *path)
{
    return fail_set(fail, code, "%.400s: %s", path, strerror(-code));
}

/* ---- opening ---------------------------------------------------------------------------- */

/* Its path inside, as the kernel knows it. */
static int learn(struct edit_file *file, struct sandbox *sandbox, struct fail *fail)
{
    struct stat it;
    char link[64], real[PATH_MAX];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", file->fd);
    ssize_t len = readlink(link, real, sizeof(real) - 1);
    if (len <= 0)
        return say(fail, len < 0 ? -errno : -EIO, file->path);
    int code = sandbox_stat_file(sandbox, file->fd, &it, fail);
    if (code < 0)
        return code;
    real[len] = '\0';
    if (real[0] == '/')
        memcpy(file->path, real, (size_t)len + 1);
    file->is_dir = S_ISDIR(it.st_mode);
    file->mode = it.st_mode & 07777;
    file->links = it.st_nlink;
    file->size = (uint64_t)it.st_size;
    return 0;
}

int edit_file_open(struct edit_file *file, struct sandbox *sandbox, const char *path, bool to_write, struct fail *fail)
{
    *file = (struct edit_file){.fd = -1, .mode = 0644};
    const bool is_whole = *path == '/';
    int len = snprintf(file->path, sizeof(file->path), "%s%s%s", is_whole ? "" : sandbox_workdir(sandbox),
                       is_whole ? "" : "/", path);
    if ((size_t)len >= sizeof(file->path))
        return fail_set(fail, -ENAMETOOLONG, "a path of %d bytes", len);
    file->fd = sandbox_open_file(sandbox, path, (to_write ? O_RDWR : O_RDONLY) | SANDBOX_AS_USER, 0, fail);
    if (file->fd == -ENOENT || file->fd < 0) {
        int code = file->fd;
        file->fd = -1;
        return code == -ENOENT ? 0 : code;
    }
    return learn(file, sandbox, fail);
}

void edit_file_close(struct edit_file *file)
{
    cleanup_close(&file->fd);
    file->fd = -1;
    buffer_finish(&file->bytes);
}

/* ---- reading ---------------------------------------------------------------------------- */

static int read_work(void *arg, const atomic_bool *stop)
{
    struct edit_file *file = arg;
    for (;;) {
        uint8_t *room = buffer_reserve(&file->bytes, 65536);
        if (!room)
            return -ENOMEM;
        ssize_t got = pread(file->fd, room, 65536, (off_t)file->bytes.len);
        if (got < 0 && errno != EINTR)
            return -errno;
        if (got == 0)
            return 0;
        file->bytes.len += got > 0 ? (size_t)got : 0;
        if (file->bytes.len > EDIT_FILE_MAX)
            return -EFBIG;
        if (*stop)
            return -ECANCELED;
    }
}

int edit_file_read(struct edit_file *file, struct fail *fail)
{
    int code = file->size > EDIT_FILE_MAX ? -EFBIG : offload_run(read_work, file, fail);
    if (code == -EFBIG)
        return fail_set(fail, code, "%.400s: more than the %d bytes that can be edited", file->path, EDIT_FILE_MAX);
    return code < 0 ? say(fail, code, file->path) : 0;
}

/* ---- writing ---------------------------------------------------------------------------- */

enum { NOT_THE_SAME = 1, NAMES_MAX = 65536, VALUE_MAX = 65536 };

struct writing {
    int fd;
    struct slice bytes;
    int like;      /* the file whose place it is to take; -1: none */
    bool is_there; /* with bytes of before */
};

/* Of security.* and trusted.* nothing is the sandbox's to set. */
static bool is_to_keep(const char *name) { return strncmp(name, "user.", 5) == 0 || strncmp(name, "system.", 7) == 0; }

static bool copy_attributes(int from, int to, char *names, char *value)
{
    ssize_t len = flistxattr(from, names, NAMES_MAX);
    bool is_same = len >= 0 || errno == ENOTSUP;
    for (const char *name = names; is_same && name < names + len; name += strlen(name) + 1) {
        if (!is_to_keep(name))
            continue;
        ssize_t size = fgetxattr(from, name, value, VALUE_MAX);
        is_same = size >= 0 && fsetxattr(to, name, value, (size_t)size, 0) == 0;
    }
    return is_same;
}

/* Gives the new file what the old one has beside its bytes and mode: 0, or NOT_THE_SAME. A file system in
 * a process (tier fuse-overlayfs) shows that to those inside alone: there it is lost. */
static int become_like(int fd, int like)
{
    struct stat old, new;
    AUTO_FREE char *room = malloc(NAMES_MAX + VALUE_MAX);
    if (!room)
        return -ENOMEM;
    if (fstat(like, &old) < 0 && errno == EACCES)
        return 0;
    if (fstat(like, &old) < 0 || fstat(fd, &new) < 0 || old.st_uid != new.st_uid || old.st_gid != new.st_gid)
        return NOT_THE_SAME;
    return copy_attributes(like, fd, room, room + NAMES_MAX) ? 0 : NOT_THE_SAME;
}

static int write_work(void *arg, const atomic_bool *stop)
{
    struct writing *writing = arg;
    int code = writing->like < 0 ? 0 : become_like(writing->fd, writing->like);
    if (code != 0)
        return code;
    for (size_t done = 0; done < writing->bytes.len;) {
        size_t left = writing->bytes.len - done;
        ssize_t wrote = pwrite(writing->fd, writing->bytes.data + done, left < 1 << 20 ? left : 1 << 20, (off_t)done);
        if (wrote < 0 && errno != EINTR)
            return -errno;
        done += wrote > 0 ? (size_t)wrote : 0;
        if (*stop)
            return -ECANCELED;
    }
    return writing->is_there && ftruncate(writing->fd, (off_t)writing->bytes.len) < 0 ? -errno : 0;
}

static int write_all(struct writing *writing, const char *path, struct fail *fail)
{
    int code = offload_run(write_work, writing, fail);
    return code < 0 ? say(fail, code, path) : code;
}

/* Only those inside can shorten a file of a file system in a process: opening it anew does. */
static int write_in_place(struct sandbox *sandbox, const struct edit_file *file, struct slice bytes, struct fail *fail)
{
    struct writing over = {.fd = file->fd, .bytes = bytes, .like = -1, .is_there = true};
    int code = write_all(&over, file->path, fail);
    if (code != -EACCES)
        return code;
    AUTO_CLOSE int fd = sandbox_open_file(sandbox, file->path, O_WRONLY | O_TRUNC | SANDBOX_AS_USER, 0, fail);
    struct writing anew = {.fd = fd, .bytes = bytes, .like = -1};
    return fd < 0 ? say(fail, fd, file->path) : write_all(&anew, file->path, fail);
}

/* A name in the same directory that nothing has. */
static bool name_beside(char ret[PATH_MAX], const char *path, uint64_t number)
{
    int folder = (int)(strrchr(path, '/') + 1 - path);
    return snprintf(ret, PATH_MAX, "%.*s.sluice-edit-%lu", folder, path, (unsigned long)number) < PATH_MAX;
}

/* Fills in the new file and puts it in the old one's place; or removes it: then negative errno, or
 * NOT_THE_SAME where it would have another owner or fewer attributes than the old one. */
static int finish(struct sandbox *sandbox, const struct edit_file *file, int fd, const char *beside, struct slice bytes,
                  struct fail *fail)
{
    struct writing writing = {.fd = fd, .bytes = bytes, .like = file->fd};
    int code = write_all(&writing, file->path, fail);
    if (code == 0)
        code = sandbox_chmod_file(sandbox, fd, file->mode, fail);
    if (code == 0)
        code = sandbox_rename(sandbox, beside, file->path, fail);
    if (code != 0)
        sandbox_remove(sandbox, beside, NULL);
    return code;
}

static bool takes_no_files(int code) { return code == -EACCES || code == -EPERM || code == -EROFS || code == -EEXIST; }

int edit_file_replace(struct edit_file *file, struct sandbox *sandbox, struct slice bytes, struct fail *fail)
{
    char beside[PATH_MAX];
    const bool is_there = file->fd >= 0;
    if (is_there && file->links > 1)
        return write_in_place(sandbox, file, bytes, fail);
    if (!name_beside(beside, file->path, (uint64_t)clock_us()))
        return say(fail, -ENAMETOOLONG, file->path);
    AUTO_CLOSE int fd = sandbox_open_file(sandbox, beside, O_WRONLY | O_CREAT | O_EXCL | SANDBOX_AS_USER, 0600, fail);
    if (fd < 0 && is_there && takes_no_files(fd))
        return write_in_place(sandbox, file, bytes, fail);
    if (fd < 0)
        return say(fail, fd, file->path);
    int code = finish(sandbox, file, fd, beside, bytes, fail);
    return code == NOT_THE_SAME ? write_in_place(sandbox, file, bytes, fail) : code;
}
