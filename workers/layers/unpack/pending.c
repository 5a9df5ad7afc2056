/* What an unpacked layer's tree gets last: marks of the overlay, and modes and times of directories. */
#include "workers/layers/unpack/pending.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/layers/unpack/unpack.h"
#include "workers/files/dirtree.h"

int layer_pending_add(struct unpack *unpack, struct pending pending, const char *path)
{
    if (unpack->pending_count == unpack->pending_capacity) {
        size_t capacity = unpack->pending_capacity ? unpack->pending_capacity * 2 : 64;
        struct pending *more = reallocarray(unpack->pending, capacity, sizeof(*more));
        if (!more)
            return fail_memory(unpack->fail);
        unpack->pending = more;
        unpack->pending_capacity = capacity;
    }
    if (!(pending.path = strdup(path)))
        return fail_memory(unpack->fail);
    pending.order = unpack->pending_count;
    unpack->pending[unpack->pending_count++] = pending;
    return 0;
}

static int apply_opaque(struct unpack *unpack, const struct pending *pending)
{
    AUTO_CLOSE int dir = dirtree_open(unpack->root, pending->path, O_RDONLY | O_DIRECTORY);
    if (dir < 0 || dirtree_set_opaque(dir) < 0)
        return dirtree_refuse(unpack->fail, "mark as opaque", pending->path);
    return 0;
}

static int apply_whiteout(struct unpack *unpack, const struct pending *pending)
{
    AUTO_CLOSE int parent = dirtree_open_parent(unpack->root, pending->path);
    if (parent < 0 || dirtree_white_out(parent, dirtree_leaf(pending->path)) < 0)
        return dirtree_refuse(unpack->fail, "make the whiteout", pending->path);
    return 0;
}

static int apply_dir(struct unpack *unpack, const struct pending *pending)
{
    AUTO_CLOSE int dir = dirtree_open(unpack->root, pending->path, O_RDONLY | O_DIRECTORY);
    if (dir < 0)
        return errno == ENOTDIR || errno == ELOOP ? 0 /* a later entry replaced it */
                                                  : dirtree_refuse(unpack->fail, "open", pending->path);
    if (futimens(dir, pending->times) < 0 || fchmod(dir, pending->mode) < 0)
        return dirtree_refuse(unpack->fail, "set the mode of", pending->path);
    return 0;
}

/* By kind; modes of directories from below, so that none shuts us out of those within; of what
 * comes twice the later one last. */
static int compare_pending(const void *a, const void *b)
{
    const struct pending *x = a, *y = b;
    int paths = strcmp(y->path, x->path);
    if (x->kind != y->kind || paths != 0)
        return x->kind != y->kind ? (int)x->kind - (int)y->kind : paths;
    return x->order < y->order ? -1 : 1;
}

int layer_pending_apply(struct unpack *unpack)
{
    static int (*const apply[])(struct unpack *, const struct pending *) = {
        [PENDING_OPAQUE] = apply_opaque,
        [PENDING_WHITEOUT] = apply_whiteout,
        [PENDING_DIR] = apply_dir,
    };
    if (unpack->pending_count)
        qsort(unpack->pending, unpack->pending_count, sizeof(unpack->pending[0]), compare_pending);
    int code = 0;
    for (size_t i = 0; i < unpack->pending_count && code == 0; i++)
        code = atomic_load(unpack->stop) ? fail_set(unpack->fail, -ECANCELED, "stopped")
                                         : apply[unpack->pending[i].kind](unpack, &unpack->pending[i]);
    return code;
}

void layer_pending_finish(struct unpack *unpack)
{
    for (size_t i = 0; i < unpack->pending_count; i++)
        free(unpack->pending[i].path);
    free(unpack->pending);
}
