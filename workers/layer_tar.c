#include "workers/layer_tar.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "common/cleanup.h"
#include "workers/tree.h"

#define WHITEOUT ".wh."
#define OPAQUE ".wh..wh..opq"

/* What is done last, when no more entries can come between; in this order. */
enum pending_kind { PENDING_OPAQUE, PENDING_WHITEOUT, PENDING_DIR };

struct pending {
    enum pending_kind kind;
    char *path;
    mode_t mode;
    struct timespec times[2];
};

struct tree {
    int root;
    struct frame_reader *tar;
    struct archive *archive;
    const atomic_bool *stop;
    struct fail *fail;
    struct fail tar_fail; /* why the frame could not be read */
    uint64_t bytes, entries;
    struct pending *pending;
    size_t pending_count, pending_capacity;
    char *parent_path; /* of the directory that is open as `parent` */
    int parent;
};

static int refuse(struct tree *tree, const char *path, const char *why)
{
    return fail_set(tree->fail, -EBADMSG, "the layer holds %.200s: %s", path, why);
}

/* The same, kept open for the entries that follow; borrowed. */
static int tree_parent(struct tree *tree, const char *path)
{
    size_t len = (size_t)(tree_leaf(path) - path);
    if (tree->parent >= 0 && strlen(tree->parent_path) == len &&
        memcmp(tree->parent_path, path, len) == 0)
        return tree->parent;
    char *parent_path = strndup(path, len);
    int parent = parent_path ? tree_open_parent(tree->root, path) : -1;
    if (parent < 0) {
        free(parent_path);
        if (errno == ELOOP || errno == ENOTDIR)
            return refuse(tree, path, "its parent is not a directory");
        return tree_refuse(tree->fail, "make the parents of", path);
    }
    if (tree->parent >= 0)
        close(tree->parent);
    free(tree->parent_path);
    tree->parent = parent;
    tree->parent_path = parent_path;
    return parent;
}

static void forget_parent(struct tree *tree)
{
    if (tree->parent >= 0)
        close(tree->parent);
    tree->parent = -1;
    free(take_ptr(&tree->parent_path));
}

/* ---- what waits for the end ---------------------------------------------------------------- */

static int add_pending(struct tree *tree, struct pending pending, const char *path)
{
    if (tree->pending_count == tree->pending_capacity) {
        size_t capacity = tree->pending_capacity ? tree->pending_capacity * 2 : 64;
        struct pending *more = reallocarray(tree->pending, capacity, sizeof(*more));
        if (!more)
            return fail_set(tree->fail, -ENOMEM, "out of memory");
        tree->pending = more;
        tree->pending_capacity = capacity;
    }
    if (!(pending.path = strdup(path)))
        return fail_set(tree->fail, -ENOMEM, "out of memory");
    tree->pending[tree->pending_count++] = pending;
    return 0;
}

static int apply_opaque(struct tree *tree, const struct pending *pending)
{
    AUTO_CLOSE int dir = tree_open(tree->root, pending->path, O_RDONLY | O_DIRECTORY);
    if (dir < 0 || fsetxattr(dir, TREE_OPAQUE_XATTR, "y", 1, 0) < 0)
        return tree_refuse(tree->fail, "mark as opaque", pending->path);
    return 0;
}

static int apply_whiteout(struct tree *tree, const struct pending *pending)
{
    AUTO_CLOSE int parent = tree_open_parent(tree->root, pending->path);
    if (parent < 0 || tree_white_out(parent, tree_leaf(pending->path)) < 0)
        return tree_refuse(tree->fail, "make the whiteout", pending->path);
    return 0;
}

static int apply_dir(struct tree *tree, const struct pending *pending)
{
    AUTO_CLOSE int dir = tree_open(tree->root, pending->path, O_RDONLY | O_DIRECTORY);
    if (dir < 0)
        return errno == ENOTDIR || errno == ELOOP ? 0 /* a later entry replaced it */
                                                  : tree_refuse(tree->fail, "open", pending->path);
    if (futimens(dir, pending->times) < 0 || fchmod(dir, pending->mode) < 0)
        return tree_refuse(tree->fail, "set the mode of", pending->path);
    return 0;
}

/* By kind; modes of directories from below, so that none shuts us out of those within. */
static int compare_pending(const void *a, const void *b)
{
    const struct pending *x = a, *y = b;
    return x->kind != y->kind ? (int)x->kind - (int)y->kind : strcmp(y->path, x->path);
}

static int apply_pending(struct tree *tree)
{
    static int (*const apply[])(struct tree *, const struct pending *) = {
        [PENDING_OPAQUE] = apply_opaque,
        [PENDING_WHITEOUT] = apply_whiteout,
        [PENDING_DIR] = apply_dir,
    };
    if (tree->pending_count)
        qsort(tree->pending, tree->pending_count, sizeof(tree->pending[0]), compare_pending);
    int code = 0;
    for (size_t i = 0; i < tree->pending_count && code == 0; i++)
        code = atomic_load(tree->stop) ? fail_set(tree->fail, -ECANCELED, "stopped")
                                       : apply[tree->pending[i].kind](tree, &tree->pending[i]);
    return code;
}

/* ---- entries ------------------------------------------------------------------------------- */

struct item {
    struct archive_entry *entry;
    const char *path, *leaf;
    int parent;
    struct timespec times[2];
};

/* Makes room for a name that comes twice. */
static int clear_name(struct tree *tree, const struct item *item)
{
    if (unlinkat(item->parent, item->leaf, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno == EISDIR || errno == EPERM)
        return refuse(tree, item->path, "it replaces a directory of the same layer");
    return tree_refuse(tree->fail, "replace", item->path);
}

static mode_t item_mode(const struct item *item)
{
    return archive_entry_perm(item->entry) & 0777;
}

static int make_dir(struct tree *tree, const struct item *item)
{
    if (mkdirat(item->parent, item->leaf, 0700) < 0) {
        if (errno != EEXIST)
            return tree_refuse(tree->fail, "make", item->path);
        AUTO_CLOSE int there =
            openat(item->parent, item->leaf, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (there < 0)
            return refuse(tree, item->path, "it comes twice, once as a directory");
    }
    mode_t sticky = archive_entry_perm(item->entry) & S_ISVTX;
    struct pending pending = {.kind = PENDING_DIR, .mode = item_mode(item) | sticky};
    memcpy(pending.times, item->times, sizeof(pending.times));
    return add_pending(tree, pending, item->path);
}

static int refuse_archive(struct tree *tree)
{
    if (tree->tar_fail.code < 0)
        return fail_set(tree->fail, tree->tar_fail.code, "%s", tree->tar_fail.text);
    const char *why = archive_error_string(tree->archive);
    return fail_set(tree->fail, -EBADMSG, "the layer is damaged: tar: %.200s", why ? why : "?");
}

static int write_data(struct tree *tree, const struct item *item, int file)
{
    const void *data;
    size_t len;
    int64_t offset;
    for (;;) {
        int got = archive_read_data_block(tree->archive, &data, &len, &offset);
        if (got == ARCHIVE_EOF)
            break;
        if (got < ARCHIVE_WARN || offset < 0)
            return refuse_archive(tree);
        tree->bytes += len;
        if (tree->bytes > LAYER_BYTES_MAX)
            return fail_set(tree->fail, -EFBIG, "the layer unpacks to too much");
        if (atomic_load(tree->stop))
            return fail_set(tree->fail, -ECANCELED, "stopped");
        if (tree_write_at(file, data, len, offset) < 0)
            return tree_refuse(tree->fail, "write", item->path);
    }
    if (ftruncate(file, archive_entry_size(item->entry)) < 0)
        return tree_refuse(tree->fail, "size", item->path);
    return 0;
}

static int make_file(struct tree *tree, const struct item *item)
{
    int code = clear_name(tree, item);
    if (code < 0)
        return code;
    AUTO_CLOSE int file = openat(item->parent, item->leaf,
                                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return tree_refuse(tree->fail, "make", item->path);
    code = write_data(tree, item, file);
    if (code < 0)
        return code;
    if (fchmod(file, item_mode(item)) < 0 || futimens(file, item->times) < 0)
        return tree_refuse(tree->fail, "set the mode of", item->path);
    return 0;
}

static int make_hard_link(struct tree *tree, const struct item *item)
{
    AUTO_FREE char *target = tree_clean_path(archive_entry_hardlink(item->entry));
    if (!target || !target[0])
        return refuse(tree, item->path, "a hard link that leads out");
    int code = clear_name(tree, item);
    if (code < 0)
        return code;
    AUTO_FREE char *above = strndup(target, (size_t)(tree_leaf(target) - target));
    AUTO_CLOSE int parent = above ? tree_open(tree->root, above, O_PATH | O_DIRECTORY) : -1;
    if (parent < 0 || linkat(parent, tree_leaf(target), item->parent, item->leaf, 0) < 0)
        return refuse(tree, item->path, "a hard link to what is not in it");
    return 0;
}

static int make_symlink(struct tree *tree, const struct item *item)
{
    const char *target = archive_entry_symlink(item->entry);
    int code = clear_name(tree, item);
    if (code < 0)
        return code;
    if (!target || symlinkat(target, item->parent, item->leaf) < 0)
        return tree_refuse(tree->fail, "make the symlink", item->path);
    utimensat(item->parent, item->leaf, item->times, AT_SYMLINK_NOFOLLOW); /* nobody needs it */
    return 0;
}

static int make_fifo(struct tree *tree, const struct item *item)
{
    int code = clear_name(tree, item);
    if (code == 0 && (mkfifoat(item->parent, item->leaf, 0600) < 0 ||
                      fchmodat(item->parent, item->leaf, item_mode(item), 0) < 0))
        code = tree_refuse(tree->fail, "make the FIFO", item->path);
    return code;
}

static int make_item(struct tree *tree, const struct item *item)
{
    if (archive_entry_hardlink(item->entry))
        return make_hard_link(tree, item);
    switch (archive_entry_filetype(item->entry)) {
    case AE_IFREG:
        return make_file(tree, item);
    case AE_IFDIR:
        return make_dir(tree, item);
    case AE_IFLNK:
        return make_symlink(tree, item);
    case AE_IFIFO:
        return make_fifo(tree, item);
    default:
        return refuse(tree, item->path, "neither file, directory, symlink nor FIFO");
    }
}

/* A marker becomes something to do at the end. ".wh...", which names nothing, is passed over. */
static int make_marker(struct tree *tree, const struct item *item)
{
    size_t above = (size_t)(item->leaf - item->path);
    const char *name = item->leaf + strlen(WHITEOUT);
    AUTO_FREE char *path = strdup(item->path);
    if (!path)
        return fail_set(tree->fail, -ENOMEM, "out of memory");
    if (strcmp(item->leaf, OPAQUE) == 0) {
        path[above ? above - 1 : 0] = '\0';
        return add_pending(tree, (struct pending){.kind = PENDING_OPAQUE}, path);
    }
    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
        strncmp(name, WHITEOUT, 4) == 0)
        return 0;
    memmove(path + above, name, strlen(name) + 1);
    return add_pending(tree, (struct pending){.kind = PENDING_WHITEOUT}, path);
}

static int unpack_entry(struct tree *tree, struct archive_entry *entry)
{
    const char *name = archive_entry_pathname(entry);
    if (++tree->entries > LAYER_ENTRIES_MAX)
        return fail_set(tree->fail, -EFBIG, "the layer holds too many entries");
    AUTO_FREE char *path = name ? tree_clean_path(name) : NULL;
    if (!path)
        return refuse(tree, name ? name : "an entry", "its path leads out or is too long");
    if (!path[0]) /* the root itself */
        return 0;
    struct item item = {.entry = entry, .path = path, .leaf = tree_leaf(path)};
    item.times[0] = (struct timespec){.tv_nsec = UTIME_OMIT};
    item.times[1] = (struct timespec){archive_entry_mtime(entry), archive_entry_mtime_nsec(entry)};
    item.parent = tree_parent(tree, path);
    if (item.parent < 0)
        return item.parent;
    if (strncmp(item.leaf, WHITEOUT, strlen(WHITEOUT)) == 0)
        return make_marker(tree, &item);
    return make_item(tree, &item);
}

/* ---- the archive --------------------------------------------------------------------------- */

static ssize_t read_tar(struct archive *archive, void *arg, const void **ret)
{
    struct tree *tree = arg;
    struct slice piece;
    if (frame_read(tree->tar, &piece, &tree->tar_fail) < 0) {
        archive_set_error(archive, EIO, "%s", tree->tar_fail.text);
        return -1;
    }
    *ret = piece.data;
    return (ssize_t)piece.len;
}

static int unpack_entries(struct tree *tree)
{
    struct archive_entry *entry;
    for (;;) {
        int got = archive_read_next_header(tree->archive, &entry);
        if (got == ARCHIVE_EOF)
            return 0;
        if (got < ARCHIVE_WARN) /* warnings are about names that are not text, which is fine */
            return refuse_archive(tree);
        if (atomic_load(tree->stop))
            return fail_set(tree->fail, -ECANCELED, "stopped");
        int code = unpack_entry(tree, entry);
        if (code < 0)
            return code;
    }
}

/* What follows the tar's end must be the frame's end too. */
static int read_to_end(struct tree *tree)
{
    struct slice rest;
    int code;
    do
        code = frame_read(tree->tar, &rest, tree->fail);
    while (code == 0 && rest.len);
    return code;
}

static void tree_finish(struct tree *tree)
{
    forget_parent(tree);
    for (size_t i = 0; i < tree->pending_count; i++)
        free(tree->pending[i].path);
    free(tree->pending);
    if (tree->archive)
        archive_read_free(tree->archive);
}

int layer_tar_unpack(int root, struct frame_reader *tar, const atomic_bool *stop, struct fail *fail)
{
    struct tree tree = {.root = root, .tar = tar, .stop = stop, .fail = fail, .parent = -1};
    tree.archive = archive_read_new();
    int code = -ENOMEM;
    if (tree.archive && archive_read_support_format_tar(tree.archive) == ARCHIVE_OK) {
        int opened = archive_read_open(tree.archive, &tree, NULL, read_tar, NULL);
        code = opened == ARCHIVE_OK ? unpack_entries(&tree) : refuse_archive(&tree);
    } else
        fail_set(fail, code, "out of memory");
    if (code == 0)
        code = read_to_end(&tree);
    if (code == 0)
        code = apply_pending(&tree);
    tree_finish(&tree);
    return code;
}
