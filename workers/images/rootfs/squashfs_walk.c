/* One walk over all of a SquashFS: it counts, or it writes. */
#include "workers/images/rootfs/squashfs_walk.h"

#include <errno.h>
#include <limits.h>
#include <sqfs/dir.h>
#include <sqfs/error.h>
#include <sqfs/inode.h>
#include <sqfs/xattr.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/images/rootfs/squashfs_inside.h"
#include "workers/files/dirtree.h"

struct walk {
    struct squashfs *squashfs;
    struct rootfs *rootfs;
    bool writes;   /* else it counts only */
    uint8_t *seen; /* a bit an inode number: directories that came */
    char **first;  /* by inode number: where a file with several names came first */
};

struct place {
    const struct walk *walk;
    const char *path;
    const sqfs_inode_generic_t *inode;
};

static int refuse_at(const struct place *place, int error, const char *what)
{
    char words[256];
    snprintf(words, sizeof(words), "%s of %.200s", what, place->path);
    return squashfs_refuse(place->walk->squashfs, place->walk->rootfs->trouble, error, words);
}

static int refuse_corrupt(const struct place *place, const char *why)
{
    return image_refuse(place->walk->rootfs->trouble, IMAGE_REFUSAL_CORRUPT, "%.200s: %s", place->path, why);
}

static struct rootfs_entry entry_of(const struct place *place)
{
    return (struct rootfs_entry){
        .path = place->path, .mode = place->inode->base.mode, .mtime = {.tv_sec = place->inode->base.mod_time}};
}

/* ---- attributes --------------------------------------------------------------------------------- */

static int set_attribute(const struct place *place, const sqfs_xattr_entry_t *key)
{
    sqfs_xattr_value_t *value = NULL;
    int error = sqfs_xattr_reader_read_value(place->walk->squashfs->attributes, key, &value);
    if (error)
        return refuse_at(place, error, "an attribute");
    int code = rootfs_set_attribute(place->walk->rootfs, place->path, (const char *)key->key,
                                    slice_of(value->value, value->size));
    sqfs_free(value);
    return code;
}

static int set_attributes(const struct place *place)
{
    sqfs_xattr_reader_t *reader = place->walk->squashfs->attributes;
    sqfs_xattr_id_t found;
    sqfs_u32 index;
    if (!reader || sqfs_inode_get_xattr_index(place->inode, &index) || index == UINT32_MAX)
        return 0;
    int error = sqfs_xattr_reader_get_desc(reader, index, &found);
    if (!error)
        error = sqfs_xattr_reader_seek_kv(reader, &found);
    for (sqfs_u32 i = 0; !error && i < found.count; i++) {
        sqfs_xattr_entry_t *key = NULL;
        error = sqfs_xattr_reader_read_key(reader, &key);
        int code = error ? 0 : set_attribute(place, key);
        sqfs_free(key);
        if (code < 0)
            return code;
    }
    return error ? refuse_at(place, error, "the attributes") : 0;
}

/* ---- files -------------------------------------------------------------------------------------- */

static int write_piece(const struct place *place, int file, sqfs_u8 *data, size_t len, uint64_t offset)
{
    int code = rootfs_write(place->walk->rootfs, file, data, len, offset);
    sqfs_free(data);
    return code;
}

static int write_data(const struct place *place, int file, uint64_t size)
{
    sqfs_data_reader_t *reader = place->walk->squashfs->data;
    uint64_t offset = 0, block_size = place->walk->squashfs->super.block_size;
    size_t blocks = sqfs_inode_get_file_block_count(place->inode), len;
    sqfs_u8 *data;
    for (size_t i = 0; i < blocks; i++, offset += block_size) {
        if (place->inode->extra[i] == 0) /* a hole */
            continue;
        int error = sqfs_data_reader_get_block(reader, place->inode, i, &len, &data);
        int code = error ? refuse_at(place, error, "the data") : write_piece(place, file, data, len, offset);
        if (code < 0)
            return code;
    }
    if (offset >= size)
        return 0;
    int error = sqfs_data_reader_get_fragment(reader, place->inode, &len, &data);
    return error ? refuse_at(place, error, "the data") : write_piece(place, file, data, len, offset);
}

/* Bytes that are stored, not holes. Also checks that there are as many blocks as the size says. */
static int measure(const struct place *place, uint64_t *ret_size, uint64_t *ret_stored)
{
    uint64_t block_size = place->walk->squashfs->super.block_size, size;
    sqfs_u32 fragment, at;
    if (sqfs_inode_get_file_size(place->inode, &size) || sqfs_inode_get_frag_location(place->inode, &fragment, &at))
        return refuse_corrupt(place, "a file without a size");
    size_t blocks = sqfs_inode_get_file_block_count(place->inode);
    uint64_t tail = size % block_size, expected = size / block_size;
    bool has_fragment = fragment != UINT32_MAX;
    if (blocks != expected + (tail && !has_fragment))
        return refuse_corrupt(place, "its blocks do not make up its size");
    *ret_size = size;
    *ret_stored = has_fragment ? tail : 0;
    for (size_t i = 0; i < blocks; i++)
        if (place->inode->extra[i] != 0)
            *ret_stored += i == expected ? tail : block_size;
    return 0;
}

static int make_file(const struct place *place, uint64_t size)
{
    struct rootfs *rootfs = place->walk->rootfs;
    const struct rootfs_entry entry = entry_of(place);
    AUTO_CLOSE int file = rootfs_open_file(rootfs, &entry, size);
    if (file < 0)
        return file;
    int code = write_data(place, file, size);
    if (code == 0)
        code = set_attributes(place);
    return code < 0 ? code : rootfs_end_file(rootfs, file, &entry, size);
}

static uint32_t link_count(const sqfs_inode_generic_t *inode)
{
    return inode->base.type == SQFS_INODE_EXT_FILE    ? inode->data.file_ext.nlink
           : inode->base.type == SQFS_INODE_SLINK     ? inode->data.slink.nlink
           : inode->base.type == SQFS_INODE_EXT_SLINK ? inode->data.slink_ext.nlink
                                                      : 1;
}

/* Remembers a file of several names, or gives the name it had; NULL: it is new here. */
static int find_first(const struct place *place, const char **ret_first)
{
    char **first = &place->walk->first[place->inode->base.inode_number];
    *ret_first = *first;
    if (*first || link_count(place->inode) < 2)
        return 0;
    *first = strdup(place->path);
    return *first ? 0 : image_fail(place->walk->rootfs->trouble, -ENOMEM, "out of memory");
}

static int take_file(const struct place *place)
{
    struct rootfs *rootfs = place->walk->rootfs;
    uint64_t size = 0, stored = 0;
    int code = measure(place, &size, &stored);
    if (code < 0 || place->walk->writes)
        return code < 0 ? code : make_file(place, size);
    if (stored > rootfs->limits.bytes - rootfs->counts.bytes)
        return image_refuse(rootfs->trouble, IMAGE_REFUSAL_TOO_LARGE,
                            "it unpacks to more than %llu bytes (limit: bytes)",
                            (unsigned long long)rootfs->limits.bytes);
    rootfs->counts.bytes += stored;
    return 0;
}

static int take_symlink(const struct place *place)
{
    const char *target = (const char *)place->inode->extra;
    const struct rootfs_entry entry = entry_of(place);
    size_t len = strnlen(target, place->inode->payload_bytes_used);
    if (len == 0 || len >= PATH_MAX || len == place->inode->payload_bytes_available)
        return refuse_corrupt(place, "a symlink to nothing, or to too long a name");
    return place->walk->writes ? rootfs_add_symlink(place->walk->rootfs, &entry, target) : 0;
}

static int take_node(const struct place *place)
{
    struct rootfs *rootfs = place->walk->rootfs;
    mode_t type = place->inode->base.mode & S_IFMT;
    const char *first = NULL;
    if (!S_ISREG(type) && !S_ISLNK(type)) {
        rootfs_leave_out(rootfs, type);
        return 0;
    }
    int code = find_first(place, &first);
    if (code < 0)
        return code;
    if (first) {
        const struct rootfs_entry entry = entry_of(place);
        return place->walk->writes ? rootfs_add_link(rootfs, &entry, first) : 0;
    }
    return S_ISREG(type) ? take_file(place) : take_symlink(place);
}

/* ---- directories ------------------------------------------------------------------------------- */

/* Directories of the one that is read, visited after it: the reader reads one at a time. */
struct subdir {
    struct subdir *next;
    char *name;
    sqfs_inode_generic_t inode; /* without its payload, which only look-ups by name need */
};

static bool is_file_name(const char *name, size_t len)
{
    bool is_dots = (len == 1 && name[0] == '.') || (len == 2 && name[0] == '.' && name[1] == '.');
    return len > 0 && !is_dots && !memchr(name, '/', len) && !memchr(name, '\0', len);
}

static int check_inode(const struct place *place, bool is_dir)
{
    const sqfs_inode_t *base = &place->inode->base;
    if (base->inode_number == 0 || base->inode_number > place->walk->squashfs->super.inode_count)
        return refuse_corrupt(place, "its inode's number is not one of this file system");
    uint8_t *seen = &place->walk->seen[base->inode_number / 8];
    uint8_t bit = (uint8_t)(1 << base->inode_number % 8);
    if (is_dir && *seen & bit)
        return refuse_corrupt(place, "a directory that came before, or that is within itself");
    *seen |= is_dir ? bit : 0;
    return 0;
}

static int push_subdir(const struct place *place, const sqfs_dir_entry_t *found, struct subdir **subdirs)
{
    struct subdir *subdir = calloc(1, sizeof(*subdir));
    if (!subdir || !(subdir->name = strndup((const char *)found->name, (size_t)found->size + 1))) {
        free(subdir);
        return image_fail(place->walk->rootfs->trouble, -ENOMEM, "out of memory");
    }
    subdir->inode = *place->inode;
    subdir->inode.payload_bytes_used = subdir->inode.payload_bytes_available = 0;
    subdir->next = *subdirs;
    *subdirs = subdir;
    return 0;
}

static char *join(const char *dir, const char *name, size_t len)
{
    char *path = NULL;
    int wrote = asprintf(&path, "%s%s%.*s", dir, *dir ? "/" : "", (int)len, name);
    return wrote < 0 ? NULL : path;
}

/* One entry of the directory that is being read. */
static int take_entry(const struct place *dir, const sqfs_dir_entry_t *found, struct subdir **subdirs)
{
    const struct walk *walk = dir->walk;
    sqfs_inode_generic_t *inode = NULL;
    int code = rootfs_step(walk->rootfs);
    if (code < 0)
        return code;
    if (!is_file_name((const char *)found->name, (size_t)found->size + 1))
        return refuse_corrupt(dir, "it holds a name that no file can have");
    int error = sqfs_dir_reader_get_inode(walk->squashfs->dirs, &inode);
    if (error)
        return refuse_at(dir, error, "an inode");
    AUTO_FREE char *path = join(dir->path, (const char *)found->name, (size_t)found->size + 1);
    const struct place place = {walk, path, inode};
    bool is_dir = S_ISDIR(inode->base.mode);
    if (!path)
        code = image_fail(walk->rootfs->trouble, -ENOMEM, "out of memory");
    else if ((code = check_inode(&place, is_dir)) == 0)
        code = is_dir ? push_subdir(&place, found, subdirs) : take_node(&place);
    sqfs_free(inode);
    return code;
}

static int take_dir(const struct place *place, int depth);

static int take_subdir(const struct place *dir, const struct subdir *subdir, int depth)
{
    AUTO_FREE char *path = join(dir->path, subdir->name, strlen(subdir->name));
    if (!path)
        return image_fail(dir->walk->rootfs->trouble, -ENOMEM, "out of memory");
    return take_dir(&(struct place){dir->walk, path, &subdir->inode}, depth);
}

static int make_dir(const struct place *place)
{
    const struct rootfs_entry entry = entry_of(place);
    if (!place->walk->writes || !place->path[0])
        return 0;
    int code = rootfs_add_dir(place->walk->rootfs, &entry);
    return code < 0 ? code : set_attributes(place);
}

static int take_dir(const struct place *place, int depth)
{
    sqfs_dir_reader_t *reader = place->walk->squashfs->dirs;
    struct subdir *subdirs = NULL;
    sqfs_dir_entry_t *found = NULL;
    if (depth > TREE_DEPTH_MAX || strlen(place->path) >= PATH_MAX)
        return image_refuse(place->walk->rootfs->trouble, IMAGE_REFUSAL_TOO_LARGE,
                            "its directories are more than %d levels deep (limit: levels)", TREE_DEPTH_MAX);
    int code = make_dir(place);
    int error = code < 0 ? 1 : sqfs_dir_reader_open_dir(reader, place->inode, 0);
    while (code == 0 && !error && (error = sqfs_dir_reader_read(reader, &found)) == 0) {
        code = take_entry(place, found, &subdirs);
        sqfs_free(found);
    }
    if (code == 0 && error < 0)
        code = refuse_at(place, error, "the directory");
    while (subdirs) {
        struct subdir *subdir = subdirs;
        subdirs = subdir->next;
        code = code < 0 ? code : take_subdir(place, subdir, depth + 1);
        free(subdir->name);
        free(subdir);
    }
    return code;
}

/* ---- whole walks ---------------------------------------------------------------------------------- */

static int walk_root(struct walk *walk)
{
    sqfs_inode_generic_t *inode = NULL;
    int error = sqfs_dir_reader_get_root_inode(walk->squashfs->dirs, &inode);
    const struct place place = {walk, "", inode};
    if (error)
        return squashfs_refuse(walk->squashfs, walk->rootfs->trouble, error, "the root directory");
    int code = S_ISDIR(inode->base.mode) ? check_inode(&place, true)
                                         : refuse_corrupt(&place, "the root is not a directory");
    if (code == 0)
        code = take_dir(&place, 0);
    sqfs_free(inode);
    return code;
}

static int run_walk(struct squashfs *squashfs, struct rootfs *rootfs, bool writes)
{
    size_t inodes = (size_t)squashfs->super.inode_count + 1;
    if (inodes > rootfs->limits.entries + 1)
        return image_refuse(rootfs->trouble, IMAGE_REFUSAL_TOO_LARGE,
                            "it holds %zu inodes, more than %llu (limit: entries)", inodes - 1,
                            (unsigned long long)rootfs->limits.entries);
    struct walk walk = {.squashfs = squashfs, .rootfs = rootfs, .writes = writes};
    walk.seen = calloc(1, inodes / 8 + 1);
    walk.first = calloc(inodes, sizeof(*walk.first));
    int code = walk.seen && walk.first ? walk_root(&walk) : image_fail(rootfs->trouble, -ENOMEM, "out of memory");
    for (size_t i = 0; walk.first && i < inodes; i++)
        free(walk.first[i]);
    free(walk.first);
    free(walk.seen);
    return code;
}

int squashfs_count(struct squashfs *squashfs, struct rootfs *rootfs) { return run_walk(squashfs, rootfs, false); }

int squashfs_unpack(struct squashfs *squashfs, struct rootfs *rootfs)
{
    int code = run_walk(squashfs, rootfs, true);
    return code < 0 ? code : rootfs_complete(rootfs);
}
