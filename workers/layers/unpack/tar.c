#include "workers/layers/unpack/tar.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/layers/unpack/unpack.h"
#include "workers/layers/unpack/item.h"
#include "workers/layers/unpack/name.h"
#include "workers/files/dirtree.h"
#include "workers/layers/unpack/pending.h"

enum { DISK_BLOCK = 4096 }; /* an entry takes about one more than its bytes */

/* ---- the directory in hand ------------------------------------------------------------------ */

/* The same, kept open for the entries that follow; borrowed. */
static int tree_parent(struct unpack *unpack, const char *path)
{
    size_t len = (size_t)(dirtree_leaf(path) - path);
    if (unpack->parent >= 0 && strlen(unpack->parent_path) == len && memcmp(unpack->parent_path, path, len) == 0)
        return unpack->parent;
    char *parent_path = strndup(path, len);
    int parent = parent_path ? dirtree_open_parent(unpack->root, path) : -1;
    if (parent < 0) {
        free(parent_path);
        if (errno == ELOOP || errno == ENOTDIR)
            return layer_refuse(unpack, path, "its parent is not a directory");
        return dirtree_refuse(unpack->fail, "make the parents of", path);
    }
    if (unpack->parent >= 0)
        close(unpack->parent);
    free(unpack->parent_path);
    unpack->parent = parent;
    unpack->parent_path = parent_path;
    return parent;
}

static void forget_parent(struct unpack *unpack)
{
    if (unpack->parent >= 0)
        close(unpack->parent);
    unpack->parent = -1;
    free(take_ptr(&unpack->parent_path));
}

/* ---- entries ------------------------------------------------------------------------------- */

static int make_named(struct unpack *unpack, struct archive_entry *entry, const char *path, enum layer_name name)
{
    struct item item = {.entry = entry, .path = path, .leaf = dirtree_leaf(path)};
    item.times[0] = (struct timespec){.tv_nsec = UTIME_OMIT};
    item.times[1] = (struct timespec){archive_entry_mtime(entry), archive_entry_mtime_nsec(entry)};
    item.parent = tree_parent(unpack, path);
    if (item.parent < 0)
        return item.parent;
    if (name == LAYER_NAME_FILE)
        return layer_item_make(unpack, &item);
    return layer_pending_add(unpack, (struct pending){.kind = PENDING_WHITEOUT}, path);
}

/* The directory at `path`, made if need be, is to be marked. */
static int make_opaque(struct unpack *unpack, const char *path)
{
    AUTO_FREE char *within = NULL;
    if (asprintf(&within, "%s/.", path) < 0) {
        within = NULL;
        return fail_memory(unpack->fail);
    }
    int dir = path[0] ? tree_parent(unpack, within) : 0;
    return dir < 0 ? dir : layer_pending_add(unpack, (struct pending){.kind = PENDING_OPAQUE}, path);
}

static int unpack_entry(struct unpack *unpack, struct archive_entry *entry)
{
    const char *name = archive_entry_pathname(entry);
    if (++unpack->entries > LAYER_ENTRIES_MAX)
        return fail_set(unpack->fail, -EFBIG, "the layer holds too many entries");
    AUTO_FREE char *path = name ? dirtree_clean_path(name) : NULL;
    if (!path)
        return layer_refuse(unpack, name ? name : "an entry", "its path leads out or is too long");
    enum layer_name meant = layer_name_read(path);
    if (meant == LAYER_NAME_BAD)
        return layer_refuse(unpack, name, "its name is escaped for nothing");
    if (meant == LAYER_NAME_OPAQUE)
        return make_opaque(unpack, path);
    if (meant == LAYER_NAME_NOTHING || !path[0]) /* or the root itself */
        return 0;
    return make_named(unpack, entry, path, meant);
}

/* ---- the archive --------------------------------------------------------------------------- */

static ssize_t read_tar(struct archive *archive, void *arg, const void **ret)
{
    struct unpack *unpack = arg;
    struct slice piece;
    if (lz4_read(unpack->tar, &piece, &unpack->tar_fail) < 0) {
        archive_set_error(archive, EIO, "%s", unpack->tar_fail.text);
        return -1;
    }
    *ret = piece.data;
    return (ssize_t)piece.len;
}

static int unpack_entries(struct unpack *unpack)
{
    struct archive_entry *entry;
    for (;;) {
        int got = archive_read_next_header(unpack->archive, &entry);
        if (got == ARCHIVE_EOF)
            return 0;
        if (got < ARCHIVE_WARN) /* warnings are about names that are not text, which is fine */
            return layer_refuse_archive(unpack);
        if (atomic_load(unpack->stop))
            return fail_set(unpack->fail, -ECANCELED, "stopped");
        int code = unpack_entry(unpack, entry);
        if (code < 0)
            return code;
    }
}

/* What follows the tar's end must be the frame's end too. */
static int read_to_end(struct unpack *unpack)
{
    struct slice rest;
    int code;
    do
        code = lz4_read(unpack->tar, &rest, unpack->fail);
    while (code == 0 && rest.len);
    return code;
}

/* All of it when it cannot be known: then every mode is set once more. */
static mode_t own_umask(void)
{
    unsigned mask = 0777;
    char line[128];
    FILE *status = fopen("/proc/self/status", "re");
    while (status && fgets(line, sizeof(line), status) && sscanf(line, "Umask: %o", &mask) != 1)
        ;
    if (status)
        fclose(status);
    return mask;
}

static void json_doc_finish(struct unpack *unpack)
{
    pool_destroy(&unpack->pool);
    buffer_finish(&unpack->content);
    forget_parent(unpack);
    layer_pending_finish(unpack);
    if (unpack->archive)
        archive_read_free(unpack->archive);
}

int layer_tar_unpack(int root, struct lz4_reader *tar, const atomic_bool *stop, uint64_t *ret_bytes, struct fail *fail)
{
    struct unpack unpack = {.root = root, .umask = own_umask(), .tar = tar, .stop = stop, .fail = fail, .parent = -1};
    unpack.archive = archive_read_new();
    unpack.pool = pool_create(unpack.umask, stop);
    int code = -ENOMEM;
    if (unpack.archive && unpack.pool && archive_read_support_format_tar(unpack.archive) == ARCHIVE_OK) {
        int opened = archive_read_open(unpack.archive, &unpack, NULL, read_tar, NULL);
        code = opened == ARCHIVE_OK ? unpack_entries(&unpack) : layer_refuse_archive(&unpack);
    } else
        fail_set(fail, code, "out of memory");
    if (code == 0)
        code = read_to_end(&unpack);
    if (code == 0)
        code = pool_wait(unpack.pool, fail);
    if (code == 0)
        code = layer_pending_apply(&unpack);
    *ret_bytes = unpack.bytes + unpack.entries * DISK_BLOCK;
    json_doc_finish(&unpack);
    return code;
}
