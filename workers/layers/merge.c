#include "workers/layers/merge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "common/base/cleanup.h"
#include "common/files/dir_stream.h"
#include "workers/files/dirtree.h"
#include "common/files/dirtree_remove.h"
#include "workers/layers/dir.h"
#include "workers/runtime/offload.h"
#include "workers/sandbox/init/services/pack.h"

enum { NAMES_MAX = 65536 }; /* bytes of a file's attributes' names: the kernel's own bound */

struct merging {
    const struct layers *layers;
    const char *below;
    struct layer_dir *each, into;
    size_t count;
    int root; /* of `into` */
    size_t depth;
    const atomic_bool *stop;
    struct fail *fail;
};

/* What lies below the directory in hand: its descriptor, or one of these. */
enum { BELOW_UNKNOWN = -2, BELOW_NOTHING = -1 };

static int merge_entries(struct merging *merging, DIR *from, int to, int below);

static int refuse_entry(struct merging *merging, const char *name)
{
    return dirtree_refuse(merging->fail, "merge", name);
}

/* ---- attributes of directories: those of the highest layer that has it --------------------------- */

static bool is_kept(const char *name)
{
    return strncmp(name, "user.", 5) == 0 && strncmp(name, "user.overlay.", 13) != 0;
}

/* Calls `visit` for each attribute that a layer keeps. -1 with errno. */
static int each_attribute(int dir, int (*visit)(int dir, const char *name, int to), int to)
{
    AUTO_FREE char *names = malloc(NAMES_MAX);
    ssize_t len = names ? flistxattr(dir, names, NAMES_MAX) : -1;
    int code = len < 0 ? -1 : 0;
    for (const char *name = names; code == 0 && name < names + len; name += strlen(name) + 1)
        if (is_kept(name))
            code = visit(dir, name, to);
    return code;
}

static int drop_attribute(int dir, const char *name, int to)
{
    (void)to;
    return fremovexattr(dir, name);
}

static int copy_attribute(int dir, const char *name, int to)
{
    uint8_t value[PACK_ATTRIBUTES_MAX];
    ssize_t len = fgetxattr(dir, name, value, sizeof(value));
    return len < 0 ? -1 : fsetxattr(to, name, value, (size_t)len, 0);
}

/* ---- one entry of a layer, over what those below have ---------------------------------------------- */

/* 0 also where nothing is there. */
static int clear_name(int dir, const char *name)
{
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 0;
    return errno == EISDIR ? dirtree_remove_at(dir, name) : -errno;
}

/* Something else than a directory is there already, or what `from` hides: a new one, that hides it, too. */
static int make_place(int from, int to, const char *name)
{
    struct stat there;
    const bool is_there = fstatat(to, name, &there, AT_SYMLINK_NOFOLLOW) == 0;
    const bool hides = dirtree_is_opaque(from) || (is_there && !S_ISDIR(there.st_mode));
    if (is_there && !hides)
        return 0;
    int code = clear_name(to, name);
    if (code < 0)
        return code;
    AUTO_CLOSE int dir = mkdirat(to, name, 0700) < 0 ? -1 : dirtree_open(to, name, O_RDONLY | O_DIRECTORY);
    return dir < 0 || (hides && dirtree_set_opaque(dir) < 0) ? -errno : 0;
}

/* What is said of a directory comes last: making entries changes its times. */
static int merge_opened(struct merging *merging, DIR *from, const struct stat *it, int to, int below, const char *name)
{
    int code = ++merging->depth > PACK_DEPTH_MAX
                   ? fail_set(merging->fail, -ENAMETOOLONG, "directories more than %d deep", PACK_DEPTH_MAX)
                   : merge_entries(merging, from, to, below);
    merging->depth--;
    if (code < 0)
        return code;
    const struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, it->st_mtim};
    return each_attribute(to, drop_attribute, -1) < 0 || each_attribute(dirfd(from), copy_attribute, to) < 0 ||
                   futimens(to, times) < 0 || fchmod(to, it->st_mode & 01777) < 0
               ? refuse_entry(merging, name)
               : 0;
}

/* *ret_mode is for dirtree_leave_own: overlayfs sees also what is in directories without rights. */
static int go_below(int below, const char *name, int to, mode_t *ret_mode)
{
    struct stat it;
    if (dirtree_is_opaque(to) || below < 0)
        return dirtree_is_opaque(to) ? BELOW_NOTHING : below;
    if (fstatat(below, name, &it, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? BELOW_NOTHING : BELOW_UNKNOWN;
    if (!S_ISDIR(it.st_mode))
        return BELOW_NOTHING;
    *ret_mode = it.st_mode;
    const int dir = dirtree_open_own(below, name, O_RDONLY | O_DIRECTORY, it.st_mode);
    return dir < 0 ? BELOW_UNKNOWN : dir;
}

static int merge_directory(struct merging *merging, int from_dir, const struct stat *it, int to_dir, int below,
                           const char *name)
{
    struct stat there;
    mode_t below_mode = 0;
    int code, opened = dirtree_open_own(from_dir, name, O_RDONLY | O_DIRECTORY, it->st_mode);
    DIR *from = opened < 0 ? NULL : fdopendir(opened);
    if (!from) {
        code = refuse_entry(merging, name);
        cleanup_close(&opened);
        return code;
    }
    errno = -make_place(opened, to_dir, name);
    AUTO_CLOSE int to = errno != 0 || fstatat(to_dir, name, &there, AT_SYMLINK_NOFOLLOW) < 0
                            ? -1
                            : dirtree_open_own(to_dir, name, O_RDONLY | O_DIRECTORY, there.st_mode);
    AUTO_CLOSE int its_below = to < 0 ? BELOW_NOTHING : go_below(below, name, to, &below_mode);
    code = to < 0 || fchmod(to, 0700) < 0 ? refuse_entry(merging, name)
                                          : merge_opened(merging, from, it, to, its_below, name);
    dirtree_leave_own(opened, it->st_mode);
    dirtree_leave_own(its_below, below_mode);
    closedir(from);
    return code;
}

static int hide(int to, int below, const char *name)
{
    struct stat it;
    const bool is_there = below == BELOW_UNKNOWN ||
                          (below >= 0 && (fstatat(below, name, &it, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT));
    return is_there ? dirtree_white_out(to, name) : 0;
}

static int merge_entry(struct merging *merging, int from, const char *name, int to, int below)
{
    struct stat it;
    if (atomic_load(merging->stop))
        return fail_set(merging->fail, -ECANCELED, "stopped");
    if (fstatat(from, name, &it, AT_SYMLINK_NOFOLLOW) < 0)
        return refuse_entry(merging, name);
    if (S_ISDIR(it.st_mode))
        return merge_directory(merging, from, &it, to, below, name);
    errno = -clear_name(to, name);
    if (errno != 0)
        return refuse_entry(merging, name);
    const bool is_file = (S_ISREG(it.st_mode) || S_ISLNK(it.st_mode)) && !dirtree_is_whiteout(from, name, &it);
    const int code = is_file ? linkat(from, name, to, name, 0) : hide(to, below, name);
    return code < 0 ? refuse_entry(merging, name) : 0;
}

static int merge_entries(struct merging *merging, DIR *from, int to, int below)
{
    const struct dirent *entry;
    int code, got;
    for (code = 0; code == 0 && (got = dir_stream_next(from, &entry)) != 0;) {
        errno = -got;
        code = got < 0 ? refuse_entry(merging, "a directory")
                       : merge_entry(merging, dirfd(from), entry->d_name, to, below);
    }
    return code;
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

static int merge_each(struct merging *merging, int below)
{
    int code = 0;
    for (size_t i = 0; i < merging->count && code == 0; i++) {
        DIR *from = opendir(merging->each[i].path);
        code = from ? merge_entries(merging, from, merging->root, below) : refuse_entry(merging, merging->each[i].path);
        if (from)
            closedir(from);
    }
    return code;
}

static int merge_work(void *arg, const atomic_bool *stop)
{
    struct merging *merging = arg;
    int code = layer_dir_make(merging->layers->cache, &merging->into, merging->fail);
    if (code < 0)
        return code;
    merging->stop = stop;
    AUTO_CLOSE int below = merging->below ? open(merging->below, O_PATH | O_DIRECTORY | O_CLOEXEC) : BELOW_NOTHING;
    if (merging->below && below < 0)
        return refuse_entry(merging, merging->below);
    merging->root = open(merging->into.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return merging->root < 0 ? refuse_entry(merging, merging->into.path) : merge_each(merging, below);
}

/* They have to be, still, what was unpacked. */
static int look_work(void *arg, const atomic_bool *stop)
{
    const struct merging *merging = arg;
    int code = 0;
    (void)stop;
    for (size_t i = 0; i < merging->count && code == 0; i++)
        code = layer_dir_look(&merging->each[i], merging->fail);
    return code;
}

static int hold_all(struct merging *merging, const char (*digests)[DIGEST_SIZE], size_t count, enum fault *fault)
{
    int code = 0;
    while (merging->count < count && code == 0) {
        code = layer_dir_hold(merging->layers, digests[merging->count], (struct slice){0},
                              &merging->each[merging->count], merging->fail);
        if (code < 0)
            *fault = layer_fault(code);
        else
            merging->count++;
    }
    return code;
}

static int merge_held(struct merging *merging, struct layer *ret)
{
    int code = offload_run(merge_work, merging, merging->fail);
    if (code < 0)
        ret->fault = FAULT_NODE;
    else
        code = layer_pack_tree(merging->layers, merging->root, ret, merging->fail);
    if (code < 0)
        return code;
    code = offload_run(look_work, merging, merging->fail);
    if (code < 0) {
        layer_finish(ret);
        ret->fault = FAULT_NODE;
    }
    return code;
}

int layer_merge(const struct layers *layers, const char *below, const char (*digests)[DIGEST_SIZE], size_t count,
                struct layer *ret, struct fail *fail)
{
    AUTO_FREE struct layer_dir *each = calloc(count, sizeof(*each));
    struct merging merging = {.layers = layers, .below = below, .each = each, .root = -1, .fail = fail};
    *ret = (struct layer){.fault = FAULT_NODE};
    int code = each ? hold_all(&merging, digests, count, &ret->fault) : fail_memory(fail);
    if (code == 0)
        code = merge_held(&merging, ret);
    cleanup_close(&merging.root);
    layer_dir_discard(&merging.into);
    for (size_t i = 0; i < merging.count; i++)
        layer_dir_release(&each[i]);
    return code;
}
