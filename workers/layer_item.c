/* One entry of a layer's tar becomes what it says, below its parent. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/xattr.h>

#include "common/cleanup.h"
#include "workers/layer_inside.h"
#include "workers/layer_name.h"
#include "workers/sandbox/pack.h"
#include "workers/tree.h"

enum { ATTRIBUTES_MAX = 65536 }; /* bytes of one entry's */

static mode_t item_mode(const struct item *item)
{
    return archive_entry_perm(item->entry) & 0777;
}

/* ---- attributes --------------------------------------------------------------------------- */

static bool is_attribute(const char *name)
{
    return strncmp(name, "user.", 5) == 0 && strncmp(name, "user.overlay.", 13) != 0;
}

static int set_attributes(struct tree *tree, const struct item *item, int fd)
{
    const char *name;
    const void *value;
    size_t len, total = 0;
    archive_entry_xattr_reset(item->entry);
    while (archive_entry_xattr_next(item->entry, &name, &value, &len) == ARCHIVE_OK) {
        if (!is_attribute(name) || (total += strlen(name) + len) > ATTRIBUTES_MAX)
            return layer_refuse(tree, item->path, "an attribute that no layer has");
        if (fsetxattr(fd, name, value, len, 0) < 0)
            return tree_refuse(tree->fail, "set an attribute of", item->path);
    }
    return 0;
}

static bool has_attributes(const struct item *item)
{
    return archive_entry_xattr_count(item->entry) > 0;
}

/* ---- names that come twice ---------------------------------------------------------------- */

/* Makes room for a name that comes twice. */
static int clear_name(struct tree *tree, const struct item *item)
{
    if (unlinkat(item->parent, item->leaf, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno == EISDIR || errno == EPERM)
        return layer_refuse(tree, item->path, "it replaces a directory of the same layer");
    return tree_refuse(tree->fail, "replace", item->path);
}

/* ---- each type of entry -------------------------------------------------------------------- */

static int make_dir(struct tree *tree, const struct item *item)
{
    bool is_new = mkdirat(item->parent, item->leaf, 0700) == 0;
    if (!is_new && errno != EEXIST)
        return tree_refuse(tree->fail, "make", item->path);
    if (!is_new || has_attributes(item)) {
        AUTO_CLOSE int dir =
            openat(item->parent, item->leaf, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (dir < 0)
            return layer_refuse(tree, item->path, "it comes twice, once as a directory");
        int code = set_attributes(tree, item, dir);
        if (code < 0)
            return code;
    }
    mode_t sticky = archive_entry_perm(item->entry) & S_ISVTX;
    struct pending pending = {.kind = PENDING_DIR, .mode = item_mode(item) | sticky};
    memcpy(pending.times, item->times, sizeof(pending.times));
    return layer_pending_add(tree, pending, item->path);
}

/* Up to its size: what lies between the blocks is a hole. */
static int write_data(struct tree *tree, const struct item *item, int file)
{
    const void *data;
    size_t len;
    int64_t offset, end = 0;
    for (;;) {
        int got = archive_read_data_block(tree->archive, &data, &len, &offset);
        if (got == ARCHIVE_EOF)
            break;
        if (got < ARCHIVE_WARN || offset < 0)
            return layer_refuse_archive(tree);
        tree->bytes += len;
        if (tree->bytes > LAYER_BYTES_MAX)
            return fail_set(tree->fail, -EFBIG, "the layer unpacks to too much");
        if (atomic_load(tree->stop))
            return fail_set(tree->fail, -ECANCELED, "stopped");
        if (tree_write_at(file, data, len, offset) < 0)
            return tree_refuse(tree->fail, "write", item->path);
        end = offset + (int64_t)len;
    }
    if (end != archive_entry_size(item->entry) &&
        ftruncate(file, archive_entry_size(item->entry)) < 0)
        return tree_refuse(tree->fail, "size", item->path);
    return 0;
}

static int open_new(const struct item *item)
{
    return openat(item->parent, item->leaf, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                  item_mode(item));
}

static int make_file(struct tree *tree, const struct item *item)
{
    if (archive_entry_size(item->entry) > (int64_t)PACK_FILE_MAX)
        return layer_refuse(tree, item->path, "it is too long");
    AUTO_CLOSE int file = open_new(item);
    if (file < 0 && errno == EEXIST) {
        int code = clear_name(tree, item);
        if (code < 0)
            return code;
        file = open_new(item);
    }
    if (file < 0)
        return tree_refuse(tree->fail, "make", item->path);
    int code = set_attributes(tree, item, file);
    if (code == 0)
        code = write_data(tree, item, file);
    if (code < 0)
        return code;
    if (((item_mode(item) & tree->umask) && fchmod(file, item_mode(item)) < 0) ||
        futimens(file, item->times) < 0)
        return tree_refuse(tree->fail, "set the mode of", item->path);
    return 0;
}

static bool is_missing(void)
{
    return errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EPERM;
}

static int make_hard_link(struct tree *tree, const struct item *item)
{
    AUTO_FREE char *target = tree_clean_path(archive_entry_hardlink(item->entry));
    if (!target || !target[0] || layer_name_read(target) != LAYER_NAME_FILE)
        return layer_refuse(tree, item->path, "a hard link that leads out");
    int code = clear_name(tree, item);
    if (code < 0)
        return code;
    AUTO_FREE char *above = strndup(target, (size_t)(tree_leaf(target) - target));
    AUTO_CLOSE int parent = above ? tree_open(tree->root, above, O_PATH | O_DIRECTORY) : -1;
    if (parent >= 0 && linkat(parent, tree_leaf(target), item->parent, item->leaf, 0) == 0)
        return 0;
    return is_missing() ? layer_refuse(tree, item->path, "a hard link to what is not in it")
                        : tree_refuse(tree->fail, "link", item->path);
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

int layer_item_make(struct tree *tree, const struct item *item)
{
    if (archive_entry_hardlink(item->entry))
        return make_hard_link(tree, item);
    if (has_attributes(item) && archive_entry_filetype(item->entry) != AE_IFREG &&
        archive_entry_filetype(item->entry) != AE_IFDIR)
        return layer_refuse(tree, item->path, "attributes of what is neither file nor directory");
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
        return layer_refuse(tree, item->path, "neither file, directory, symlink nor FIFO");
    }
}

