#include "workers/files/dirtree_gather.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "workers/files/dirtree.h"
#include "workers/files/dirtree_walk.h"
#include "workers/files/dirtree_within.h"

enum { PIECE = 256 * 1024 };

struct gathering {
    struct dirtree_stack *stack;
    struct dirtree_within within;
    bool links; /* of the tree in hand: files are linked */
    int into;
};

static const char gathered[] = ".sluice-gathered"; /* its name until it is whole */

static bool is_hidden(const struct dirtree_stack *stack, const struct stat *it)
{
    for (size_t i = 0; i < stack->hidden_count; i++)
        if (stack->hidden[i].ino == it->st_ino && stack->hidden[i].dev == it->st_dev)
            return true;
    return false;
}

/* ---- a file ------------------------------------------------------------------------------------------ */

/* From one end of what is no hole to the other. */
static int copy_piece(struct dirtree_stack *stack, int in, int out, off_t at, off_t end)
{
    AUTO_FREE uint8_t *piece = malloc(PIECE);
    while (piece && at < end) {
        const size_t want = end - at < PIECE ? (size_t)(end - at) : PIECE;
        const ssize_t got = pread(in, piece, want, at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : 0;
        stack->bytes += (uint64_t)got;
        if (stack->bytes > DIRTREE_GATHER_BYTES || atomic_load(stack->stop))
            return stack->bytes > DIRTREE_GATHER_BYTES ? -EFBIG : -ECANCELED;
        if (dirtree_write_at(out, piece, (size_t)got, at) < 0)
            return -errno;
        at += got;
    }
    return piece ? 0 : -ENOMEM;
}

static int copy_data(struct dirtree_stack *stack, int in, int out, off_t size)
{
    int code = 0;
    for (off_t at = 0, end; at < size && code == 0; at = end) {
        at = lseek(in, at, SEEK_DATA);
        if (at < 0)
            return errno == ENXIO ? 0 : -errno;
        end = lseek(in, at, SEEK_HOLE);
        code = end < 0 ? -errno : copy_piece(stack, in, out, at, end);
    }
    return code;
}

static int say_about(int fd, const struct stat *it)
{
    const struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, it->st_mtim};
    return futimens(fd, times) < 0 || fchmod(fd, it->st_mode & 01777) < 0 ? -errno : 0;
}

static int copy_file(struct dirtree_stack *stack, int dir, const char *name, const struct stat *it, int to,
                     const char *as)
{
    AUTO_CLOSE int in = dirtree_open_own(dir, name, O_RDONLY | O_NONBLOCK, it->st_mode);
    AUTO_CLOSE int out = in < 0 ? -1 : openat(to, as, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (out < 0 || ftruncate(out, it->st_size) < 0)
        return -errno;
    const int code = copy_data(stack, in, out, it->st_size);
    return code < 0 ? code : say_about(out, it);
}

static int copy_link(int dir, const char *name, int to, const char *as)
{
    char target[PATH_MAX];
    const ssize_t len = readlinkat(dir, name, target, sizeof(target) - 1);
    target[len < 0 ? 0 : len] = '\0';
    return len < 0 || symlinkat(target, to, as) < 0 ? -errno : 0;
}

/* ---- an entry, over what lower trees have of it --------------------------------------------------------- */

struct over {
    struct gathering *gathering;
    int to;
};

static int put_inside(int dir, const char *name, void *arg);

/* Its place in ours, made where it is not there, or is nothing to go on with; open, with all rights. */
static int open_place(const struct gathering *gathering, int from, int to, const char *as)
{
    struct stat there = {0};
    bool is_there = fstatat(to, as, &there, AT_SYMLINK_NOFOLLOW) == 0;
    if (is_there && (!S_ISDIR(there.st_mode) || dirtree_is_opaque(from))) {
        const int code = dirtree_remove_entry(to, as);
        if (code < 0)
            return code;
        is_there = false;
    }
    if (!is_there && mkdirat(to, as, 0700) < 0)
        return -errno;
    AUTO_CLOSE int place = dirtree_open_own(to, as, O_RDONLY | O_DIRECTORY, is_there ? there.st_mode : S_IFDIR | 0700);
    if (place < 0 || fchmod(place, 0700) < 0)
        return -errno;
    const bool is_whole = !is_there && gathering->within.depth == 0 && as == gathered;
    return is_whole && dirtree_set_opaque(place) < 0 ? -errno : take_fd(&place);
}

static int put_dir(struct gathering *gathering, int dir, const char *name, const struct stat *it, int to,
                   const char *as)
{
    const int from = dirtree_open_own(dir, name, O_RDONLY | O_DIRECTORY, it->st_mode);
    if (from < 0)
        return -errno;
    AUTO_CLOSE int place = open_place(gathering, from, to, as);
    struct over over = {gathering, place};
    int code = place < 0 ? place : dirtree_each(from, put_inside, &over);
    if (code == 0)
        code = say_about(place, it);
    dirtree_leave(from, it->st_mode);
    return code;
}

static int put(struct gathering *gathering, int dir, const char *name, const struct stat *it, int to, const char *as)
{
    const bool is_link = S_ISLNK(it->st_mode) && as != gathered && dirtree_within_leads(&gathering->within, dir, name);
    const bool is_file = S_ISREG(it->st_mode) && !dirtree_is_whiteout(dir, name, it);
    if (S_ISDIR(it->st_mode))
        return put_dir(gathering, dir, name, it, to, as);
    const int code = dirtree_remove_entry(to, as);
    if (code < 0 || (!is_link && !is_file))
        return code;
    if (is_link)
        return copy_link(dir, name, to, as);
    if (gathering->links && linkat(dir, name, to, as, 0) == 0)
        return 0;
    return copy_file(gathering->stack, dir, name, it, to, as);
}

static int put_inside(int dir, const char *name, void *arg)
{
    const struct over *over = arg;
    struct gathering *gathering = over->gathering;
    struct stat it;
    if (dirtree_within_excludes(&gathering->within, name))
        return 0;
    if (atomic_load(gathering->stack->stop) || ++gathering->stack->entries > DIRTREE_GATHER_ENTRIES)
        return atomic_load(gathering->stack->stop) ? -ECANCELED : -EFBIG;
    if (fstatat(dir, name, &it, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (is_hidden(gathering->stack, &it))
        return 0;
    if (!S_ISDIR(it.st_mode))
        return put(gathering, dir, name, &it, over->to, name);
    if (!dirtree_within_enter(&gathering->within, name))
        return -ENAMETOOLONG;
    const int code = put(gathering, dir, name, &it, over->to, name);
    dirtree_within_leave(&gathering->within, name);
    return code;
}

/* ---- a tree -------------------------------------------------------------------------------------------------- */

static int hide(const struct gathering *gathering) { return dirtree_remove_entry(gathering->into, gathered); }

/* `way` is what is left of it, and is written to. */
static int put_from(struct gathering *gathering, int dir, char *way)
{
    struct stat it;
    char *slash = strchr(way, '/');
    if (slash)
        *slash = '\0';
    if (fstatat(dir, way, &it, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (is_hidden(gathering->stack, &it))
        return 0;
    if (!slash)
        return put(gathering, dir, way, &it, gathering->into, gathered);
    if (!S_ISDIR(it.st_mode))
        return hide(gathering);
    const int inner = dirtree_open_own(dir, way, O_RDONLY | O_DIRECTORY, it.st_mode);
    if (inner < 0)
        return -errno;
    int code = dirtree_is_opaque(inner) ? hide(gathering) : 0;
    if (code == 0)
        code = put_from(gathering, inner, slash + 1);
    dirtree_leave(inner, it.st_mode);
    return code;
}

static int put_tree(struct gathering *gathering, const char *root, const char *path)
{
    AUTO_CLOSE int top = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO_FREE char *way = top < 0 ? NULL : strdup(path);
    return way ? put_from(gathering, top, way) : top < 0 ? -errno : -ENOMEM;
}

/* Only where there is anything, and what was put before is not in the way. */
static int move_to(const struct gathering *gathering, const char *to)
{
    const int code = dirtree_put(gathering->into, gathered, to);
    if (code == -ENOTDIR)
        return hide(gathering);
    return code == -ENOENT ? 0 : code;
}

int dirtree_gather(struct dirtree_stack *stack, const struct dirtree_place *place, int into, const char *to,
                   struct fail *fail)
{
    struct gathering gathering = {.stack = stack, .within = dirtree_within_of(place), .into = into};
    int code = 0;
    for (size_t i = stack->count; i-- > 0 && code == 0;) {
        gathering.links = i < stack->linked;
        code = put_tree(&gathering, stack->roots[i], place->path);
    }
    if (code == 0)
        code = move_to(&gathering, to);
    return code < 0 ? fail_set(fail, code, "cannot gather %.200s: %s", place->path, strerror(-code)) : 0;
}
