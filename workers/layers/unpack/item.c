/* One entry of a layer's tar becomes what it says, below its parent. */
#include "workers/layers/unpack/item.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/xattr.h>

#include "common/base/cleanup.h"
#include "workers/layers/unpack/unpack.h"
#include "workers/layers/unpack/name.h"
#include "workers/layers/unpack/pending.h"
#include "workers/sandbox/init/services/pack.h"
#include "workers/files/dirtree.h"

enum { ATTRIBUTES_MAX = 65536 }; /* bytes of one entry's */

static mode_t item_mode(const struct item *item) { return archive_entry_perm(item->entry) & 0777; }

/* ---- attributes --------------------------------------------------------------------------- */

static bool is_attribute(const char *name)
{
    return strncmp(name, "user.", 5) == 0 && strncmp(name, "user.overlay.", 13) != 0;
}

static int set_attributes(struct unpack *unpack, const struct item *item, int fd)
{
    const char *name;
    const void *value;
    size_t len, total = 0;
    archive_entry_xattr_reset(item->entry);
    while (archive_entry_xattr_next(item->entry, &name, &value, &len) == ARCHIVE_OK) {
        if (!is_attribute(name) || (total += strlen(name) + len) > ATTRIBUTES_MAX)
            return layer_refuse(unpack, item->path, "an attribute that no layer has");
        if (fsetxattr(fd, name, value, len, 0) < 0)
            return dirtree_refuse(unpack->fail, "set an attribute of", item->path);
    }
    return 0;
}

static bool has_attributes(const struct item *item) { return archive_entry_xattr_count(item->entry) > 0; }

/* A name that is taken: only a directory may come twice, or after what lies in it. */
static int refuse_item(struct unpack *unpack, const struct item *item, const char *what)
{
    return errno == EEXIST ? layer_refuse(unpack, item->path, "it comes twice")
                           : dirtree_refuse(unpack->fail, what, item->path);
}

/* ---- each type of entry -------------------------------------------------------------------- */

static int make_dir(struct unpack *unpack, const struct item *item)
{
    bool is_new = mkdirat(item->parent, item->leaf, 0700) == 0;
    if (!is_new && errno != EEXIST)
        return dirtree_refuse(unpack->fail, "make", item->path);
    if (!is_new || has_attributes(item)) {
        AUTO_CLOSE int dir = openat(item->parent, item->leaf, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (dir < 0)
            return layer_refuse(unpack, item->path, "it comes twice, once as a directory");
        int code = set_attributes(unpack, item, dir);
        if (code < 0)
            return code;
    }
    mode_t sticky = archive_entry_perm(item->entry) & S_ISVTX;
    struct pending pending = {.kind = PENDING_DIR, .mode = item_mode(item) | sticky};
    memcpy(pending.times, item->times, sizeof(pending.times));
    return layer_pending_add(unpack, pending, item->path);
}

/* Hands each block of data to `take`, which may say no. */
static int read_data(struct unpack *unpack, const struct item *item, int file,
                     int (*take)(struct unpack *unpack, const struct item *item, int file, struct slice data,
                                 int64_t offset))
{
    const void *data;
    size_t len;
    int64_t offset;
    for (;;) {
        int got = archive_read_data_block(unpack->archive, &data, &len, &offset);
        if (got == ARCHIVE_EOF)
            return 0;
        if (got < ARCHIVE_WARN || offset < 0)
            return layer_refuse_archive(unpack);
        unpack->bytes += len;
        if (unpack->bytes > LAYER_BYTES_MAX)
            return fail_set(unpack->fail, -EFBIG, "the layer unpacks to too much");
        if (atomic_load(unpack->stop))
            return fail_set(unpack->fail, -ECANCELED, "stopped");
        int code = take(unpack, item, file, slice_of(data, len), offset);
        if (code < 0)
            return code;
    }
}

static int write_block(struct unpack *unpack, const struct item *item, int file, struct slice data, int64_t offset)
{
    return dirtree_write_at(file, data.data, data.len, offset) < 0 ? dirtree_refuse(unpack->fail, "write", item->path)
                                                                   : 0;
}

/* A long file, or one with holes or attributes. What lies between its blocks is a hole. */
static int make_long_file(struct unpack *unpack, const struct item *item)
{
    AUTO_CLOSE int file = openat(item->parent, item->leaf, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return refuse_item(unpack, item, "make");
    int code = set_attributes(unpack, item, file);
    if (code == 0)
        code = read_data(unpack, item, file, write_block);
    if (code < 0)
        return code;
    if (ftruncate(file, archive_entry_size(item->entry)) < 0)
        return dirtree_refuse(unpack->fail, "size", item->path);
    if (fchmod(file, item_mode(item)) < 0 || futimens(file, item->times) < 0)
        return dirtree_refuse(unpack->fail, "set the mode of", item->path);
    return 0;
}

/* Between what came before and this there may be a hole. */
static int keep_block(struct unpack *unpack, const struct item *item, int file, struct slice data, int64_t offset)
{
    size_t end = (size_t)offset + data.len;
    (void)file;
    if (offset > CREW_FILE_MAX || end > CREW_FILE_MAX || (size_t)offset < unpack->content.len)
        return layer_refuse(unpack, item->path, "it is not as long as it says");
    size_t gap = (size_t)offset - unpack->content.len;
    uint8_t *at = buffer_reserve(&unpack->content, gap + data.len);
    if (!at)
        return fail_memory(unpack->fail);
    memset(at, 0, gap);
    memcpy(at + gap, data.data, data.len);
    unpack->content.len = end;
    return 0;
}

/* The helpers make it while the next is read. */
static int make_short_file(struct unpack *unpack, const struct item *item)
{
    buffer_clear(&unpack->content);
    int code = read_data(unpack, item, -1, keep_block);
    if (code == 0 && (int64_t)unpack->content.len != archive_entry_size(item->entry))
        code = layer_refuse(unpack, item->path, "it is not as long as it says");
    if (code < 0)
        return code;
    struct pool_file file = {.dir = unpack->parent_path,
                             .leaf = item->leaf,
                             .parent = item->parent,
                             .content = buffer_peek(&unpack->content),
                             .mode = item_mode(item),
                             .times = {item->times[0], item->times[1]}};
    return pool_add(unpack->pool, &file, unpack->fail);
}

static int make_file(struct unpack *unpack, const struct item *item)
{
    int64_t size = archive_entry_size(item->entry);
    if (size > (int64_t)PACK_FILE_MAX)
        return layer_refuse(unpack, item->path, "it is too long");
    bool is_short = size <= CREW_FILE_MAX && archive_entry_sparse_count(item->entry) == 0 && !has_attributes(item);
    return is_short ? make_short_file(unpack, item) : make_long_file(unpack, item);
}

static bool is_missing(void) { return errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EPERM; }

static int make_hard_link(struct unpack *unpack, const struct item *item)
{
    AUTO_FREE char *target = dirtree_clean_path(archive_entry_hardlink(item->entry));
    if (!target || !target[0] || layer_name_read(target) != LAYER_NAME_FILE)
        return layer_refuse(unpack, item->path, "a hard link that leads out");
    int code = pool_wait(unpack->pool, unpack->fail); /* perhaps it links to one of theirs */
    if (code < 0)
        return code;
    AUTO_FREE char *above = strndup(target, (size_t)(dirtree_leaf(target) - target));
    AUTO_CLOSE int parent = above ? dirtree_open(unpack->root, above, O_PATH | O_DIRECTORY) : -1;
    if (parent >= 0 && linkat(parent, dirtree_leaf(target), item->parent, item->leaf, 0) == 0)
        return 0;
    return is_missing() ? layer_refuse(unpack, item->path, "a hard link to what is not in it")
                        : refuse_item(unpack, item, "link");
}

static int make_symlink(struct unpack *unpack, const struct item *item)
{
    const char *target = archive_entry_symlink(item->entry);
    if (!target || symlinkat(target, item->parent, item->leaf) < 0)
        return refuse_item(unpack, item, "make the symlink");
    utimensat(item->parent, item->leaf, item->times, AT_SYMLINK_NOFOLLOW); /* nobody needs it */
    return 0;
}

static int make_fifo(struct unpack *unpack, const struct item *item)
{
    if (mkfifoat(item->parent, item->leaf, 0600) < 0 || fchmodat(item->parent, item->leaf, item_mode(item), 0) < 0)
        return refuse_item(unpack, item, "make the FIFO");
    return 0;
}

int layer_item_make(struct unpack *unpack, const struct item *item)
{
    if (archive_entry_hardlink(item->entry))
        return make_hard_link(unpack, item);
    if (has_attributes(item) && archive_entry_filetype(item->entry) != AE_IFREG &&
        archive_entry_filetype(item->entry) != AE_IFDIR)
        return layer_refuse(unpack, item->path, "attributes of what is neither file nor directory");
    switch (archive_entry_filetype(item->entry)) {
    case AE_IFREG: return make_file(unpack, item);
    case AE_IFDIR: return make_dir(unpack, item);
    case AE_IFLNK: return make_symlink(unpack, item);
    case AE_IFIFO: return make_fifo(unpack, item);
    default: return layer_refuse(unpack, item->path, "neither file, directory, symlink nor FIFO");
    }
}
