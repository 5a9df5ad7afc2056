#include "workers/files/tree_index.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/files/dir_stream.h"
#include "common/base/clock.h"
#include "workers/files/dirtree.h"

#define INDEX_NAME "index"
#define INDEX_BEGIN "sluice index 1\n" /* then a mark and a path with its NUL, for each entry; directories first */
#define INDEX_END "end\n"
enum { READ_MAX = 1 << 28, LOOK_STEP = 64 };

struct mark {
    int64_t s, ns;
    int64_t size; /* -1: a directory */
};

static struct mark mark_of(const struct stat *it)
{
    const bool is_dir = S_ISDIR(it->st_mode);
    const struct timespec *when = is_dir ? &it->st_ctim : &it->st_mtim;
    return (struct mark){when->tv_sec, when->tv_nsec, is_dir ? -1 : it->st_size};
}

char *tree_index_holder(const char *root) { return dirtree_parent(root); }

static int open_in(const char *holder, const char *name, int flags)
{
    AUTO_FREE char *path = dirtree_join(holder, name);
    return path ? open(path, flags | O_NOFOLLOW | O_CLOEXEC, 0600) : -1;
}

bool tree_index_is_there(const char *holder)
{
    AUTO_FREE char *path = dirtree_join(holder, INDEX_NAME);
    return path && access(path, F_OK) == 0;
}

/* ---- writing -------------------------------------------------------------------------------- */

struct indexing {
    int root;
    struct buffer dirs, files;
    size_t file_count;
};

static void add(struct buffer *to, const char *path, const struct stat *it)
{
    const struct mark mark = mark_of(it);
    buffer_append(to, &mark, sizeof(mark));
    buffer_append(to, path, strlen(path) + 1);
}

static bool may_enter(mode_t mode) { return (mode & 0500) == 0500; }

static void add_entry(struct indexing *indexing, int dir, const char *above, const struct dirent *entry)
{
    char path[PATH_MAX];
    struct stat it;
    const bool may_be_dir = entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN;
    if (!may_be_dir && ++indexing->file_count > TREE_INDEX_FILES)
        return;
    int len = strcmp(above, ".") == 0 ? snprintf(path, sizeof(path), "%s", entry->d_name)
                                      : snprintf(path, sizeof(path), "%s/%s", above, entry->d_name);
    if (len >= (int)sizeof(path) || fstatat(dir, entry->d_name, &it, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    if (!S_ISDIR(it.st_mode) && may_be_dir && ++indexing->file_count > TREE_INDEX_FILES)
        return;
    if (!S_ISDIR(it.st_mode))
        add(&indexing->files, path, &it);
    else if (may_enter(it.st_mode))
        add(&indexing->dirs, path, &it);
}

static int list(struct indexing *indexing, const char *path)
{
    const struct dirent *entry;
    int fd = openat(indexing->root, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    if (!stream && (errno == EACCES || errno == ENAMETOOLONG))
        return 0;
    if (!stream) {
        int code = -errno;
        cleanup_close(&fd);
        return code;
    }
    int code;
    while ((code = dir_stream_next(stream, &entry)) > 0)
        add_entry(indexing, fd, path, entry);
    closedir(stream);
    return code;
}

/* Those that are found are listed in their turn: what is above comes before what is below. */
static int walk(struct indexing *indexing)
{
    char path[PATH_MAX];
    struct stat it;
    int code = fstat(indexing->root, &it) < 0 ? -errno : 0;
    if (code == 0)
        add(&indexing->dirs, ".", &it);
    for (size_t at = 0; at < indexing->dirs.len && code == 0; at += sizeof(struct mark) + strlen(path) + 1) {
        snprintf(path, sizeof(path), "%s", (const char *)indexing->dirs.data + at + sizeof(struct mark));
        code = list(indexing, path);
    }
    return code;
}

static int write_whole(int file, struct indexing *indexing)
{
    AUTO_BUFFER all = {0};
    buffer_append_str(&all, INDEX_BEGIN);
    buffer_append(&all, indexing->dirs.data, indexing->dirs.len);
    if (indexing->file_count <= TREE_INDEX_FILES)
        buffer_append(&all, indexing->files.data, indexing->files.len);
    buffer_append_str(&all, INDEX_END);
    if (all.failed || indexing->dirs.failed || indexing->files.failed)
        return -ENOMEM;
    return dirtree_write_at(file, all.data, all.len, 0) < 0 ? -errno : 0;
}

int tree_index_write(const char *holder, struct fail *fail)
{
    AUTO_CLOSE int root = open_in(holder, TREE_INDEX_ROOT, O_RDONLY | O_DIRECTORY);
    struct indexing indexing = {.root = root};
    int code = root < 0 ? -errno : walk(&indexing);
    AUTO_CLOSE int file = code < 0 ? -1 : open_in(holder, INDEX_NAME, O_WRONLY | O_CREAT | O_TRUNC);
    if (code == 0)
        code = file < 0 ? -errno : write_whole(file, &indexing);
    buffer_finish(&indexing.dirs);
    buffer_finish(&indexing.files);
    return code < 0 ? fail_set(fail, code, "cannot make an index of %s: %s", holder, strerror(-code)) : 0;
}

/* ---- looking ---------------------------------------------------------------------------------- */

static int stale(struct fail *fail, const char *holder, const char *path, const char *why)
{
    return fail_set(fail, -ESTALE, "%s is not what was unpacked there: %.200s %s", holder, path, why);
}

static int look_at(int root, const struct mark *mark, const char *path, const char *holder, struct fail *fail)
{
    struct stat it;
    if (fstatat(root, path, &it, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == EACCES ? 0 : stale(fail, holder, path, errno == ENOENT ? "is gone" : strerror(errno));
    const struct mark now = mark_of(&it);
    if (now.s == mark->s && now.ns == mark->ns && now.size == mark->size)
        return 0;
    return stale(fail, holder, path, mark->size < 0 ? "has other entries" : "was written to");
}

static int look_at_all(int root, struct slice entries, const char *holder, struct fail *fail)
{
    const int64_t until_ms = clock_ms() + TREE_INDEX_LOOK_MS;
    struct mark mark;
    int code = 0;
    for (size_t at = 0, n = 1; at + sizeof(mark) < entries.len && code == 0; n++) {
        const uint8_t *path = entries.data + at + sizeof(mark);
        memcpy(&mark, entries.data + at, sizeof(mark));
        code = look_at(root, &mark, (const char *)path, holder, fail);
        at += sizeof(mark) + strlen((const char *)path) + 1;
        if (n % LOOK_STEP == 0 && clock_ms() > until_ms)
            break;
    }
    return code;
}

/* Whole, with all that it says it is; *ret within *all. */
static bool read_index(const char *holder, struct buffer *all, struct slice *ret)
{
    const size_t begin = strlen(INDEX_BEGIN), end = strlen(INDEX_END);
    struct stat it;
    AUTO_CLOSE int file = open_in(holder, INDEX_NAME, O_RDONLY | O_NONBLOCK);
    if (file < 0 || fstat(file, &it) < 0 || it.st_size < (off_t)(begin + end) || it.st_size > READ_MAX)
        return false;
    uint8_t *data = buffer_reserve(all, (size_t)it.st_size);
    const size_t len = (size_t)it.st_size;
    if (!data || read(file, data, len) != (ssize_t)len || memcmp(data, INDEX_BEGIN, begin) != 0 ||
        memcmp(data + len - end, INDEX_END, end) != 0)
        return false;
    *ret = slice_of(data + begin, len - begin - end);
    return ret->len > sizeof(struct mark) && ret->data[ret->len - 1] == '\0';
}

int tree_index_look(const char *holder, struct fail *fail)
{
    AUTO_BUFFER all = {0};
    struct slice entries;
    AUTO_CLOSE int root = open_in(holder, TREE_INDEX_ROOT, O_PATH | O_DIRECTORY);
    if (root < 0)
        return stale(fail, holder, TREE_INDEX_ROOT, strerror(errno));
    if (!read_index(holder, &all, &entries))
        return stale(fail, holder, INDEX_NAME, "cannot be read");
    return look_at_all(root, entries, holder, fail);
}
