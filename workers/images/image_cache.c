#include "workers/images/image_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/files/dirtree_remove.h"
#include "workers/files/locked_dir.h"
#include "workers/images/about.h"
#include "workers/images/config.h"
#include "workers/files/dirtree.h"
#include "workers/files/tree_index.h"

static bool is_key(const char *name)
{
    return strlen(name) == IMAGE_KEY_SIZE - 1 && strspn(name, "0123456789abcdef") == IMAGE_KEY_SIZE - 1;
}

/* ---- the directory -------------------------------------------------------------------------------- */

int image_cache_open(const char *cache, uint64_t bytes_max, struct image_cache *ret, struct image_trouble *trouble)
{
    AUTO_FREE char *directory = dirtree_join(cache, "images");
    if (!directory)
        return image_fail(trouble, -ENOMEM, "out of memory");
    for (char *at = directory + 1; *at; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        mkdir(directory, 0750); /* what matters shows at the end */
        *at = '/';
    }
    if (mkdir(directory, 0750) < 0 && errno != EEXIST)
        return image_fail_errno(trouble, "make", directory);
    char *real = realpath(directory, NULL);
    if (!real || access(real, R_OK | W_OK | X_OK) < 0) {
        free(real);
        return image_fail_errno(trouble, "use", directory);
    }
    *ret = (struct image_cache){.directory = real, .bytes_max = bytes_max};
    return 0;
}

void image_cache_close(struct image_cache *cache) { free(take_ptr(&cache->directory)); }

/* Calls `visit` for each name of the cache. */
static void for_each(const char *directory, void (*visit)(const char *directory, const char *name, void *arg),
                     void *arg)
{
    DIR *stream = opendir(directory);
    const struct dirent *entry;
    while (stream && (entry = readdir(stream)))
        visit(directory, entry->d_name, arg);
    if (stream)
        closedir(stream);
}

/* ---- listing ---------------------------------------------------------------------------------------- */

struct listing {
    struct image_about *items;
    size_t count, capacity;
    bool failed;
};

static void list_one(const char *directory, const char *name, void *arg)
{
    struct listing *listing = arg;
    AUTO_FREE char *path = is_key(name) ? dirtree_join(directory, name) : NULL;
    struct image_about about;
    if (!path || !image_about_read(path, &about))
        return;
    if (listing->count == listing->capacity) {
        size_t capacity = listing->capacity ? listing->capacity * 2 : 16;
        struct image_about *more = reallocarray(listing->items, capacity, sizeof(*more));
        if (!more) {
            listing->failed = true;
            image_about_finish(&about);
            return;
        }
        listing->items = more;
        listing->capacity = capacity;
    }
    listing->items[listing->count++] = about;
}

static int compare_used(const void *a, const void *b)
{
    const struct image_about *x = a, *y = b;
    return x->used_s != y->used_s ? (x->used_s < y->used_s ? 1 : -1) : strcmp(x->key, y->key);
}

static struct listing list(const struct image_cache *cache)
{
    struct listing listing = {0};
    for_each(cache->directory, list_one, &listing);
    if (listing.count)
        qsort(listing.items, listing.count, sizeof(*listing.items), compare_used);
    return listing;
}

static void listing_finish(struct listing *listing)
{
    for (size_t i = 0; i < listing->count; i++)
        image_about_finish(&listing->items[i]);
    free(listing->items);
}

/* Asks for more than whoever holds it would allow, for a moment. */
static bool is_held(const struct image_cache *cache, const char *key)
{
    AUTO_FREE char *path = dirtree_join(cache->directory, key);
    AUTO_CLOSE int dir = path ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    return dir >= 0 && flock(dir, LOCK_EX | LOCK_NB) < 0;
}

int image_cache_list(const struct image_cache *cache, struct image_about **ret, size_t *ret_count,
                     struct image_trouble *trouble)
{
    struct listing listing = list(cache);
    if (listing.failed) {
        listing_finish(&listing);
        return image_fail(trouble, -ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < listing.count; i++)
        listing.items[i].is_held = is_held(cache, listing.items[i].key);
    *ret = listing.items;
    *ret_count = listing.count;
    return 0;
}

bool image_cache_has(const char *cache, const char *name)
{
    AUTO_FREE char *directory = dirtree_join(cache, "images");
    if (!directory)
        return false;
    struct listing listing = list(&(struct image_cache){.directory = directory});
    bool has = false;
    for (size_t i = 0; i < listing.count && !has; i++)
        has = strcmp(listing.items[i].name, name) == 0;
    listing_finish(&listing);
    return has;
}

/* ---- removing ---------------------------------------------------------------------------------------- */

/* Half made or half removed: whoever makes one holds it. Locks without a maker go too. */
static void sweep_one(const char *directory, const char *name, void *arg)
{
    const int64_t *now_s = arg;
    struct stat it;
    AUTO_FREE char *path = strstr(name, HELD_DIR_TMP) ? dirtree_join(directory, name) : NULL;
    AUTO_CLOSE int dir = path ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (dir >= 0 && (strstr(name, HELD_DIR_GONE) || (fstat(dir, &it) == 0 && *now_s - it.st_mtime >= IMAGE_REMAINS_S)))
        locked_dir_remove(dir, path);
}

static bool remove_image(const struct image_cache *cache, const char *key)
{
    AUTO_FREE char *path = dirtree_join(cache->directory, key);
    AUTO_CLOSE int dir = path ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    return dir >= 0 && locked_dir_remove(dir, path);
}

size_t image_cache_prune(const struct image_cache *cache, int64_t idle_s, uint64_t bytes_max, uint64_t *ret_bytes)
{
    int64_t now_s = clock_wall_ms() / 1000;
    uint64_t left = 0;
    size_t removed = 0;
    for_each(cache->directory, sweep_one, &now_s);
    struct listing listing = list(cache);
    for (size_t i = 0; i < listing.count; i++)
        left += listing.items[i].bytes;
    *ret_bytes = 0;
    for (size_t i = listing.count; i-- > 0;) {
        const struct image_about *about = &listing.items[i];
        bool goes = now_s - about->used_s >= idle_s || left > bytes_max;
        if (!goes || !remove_image(cache, about->key))
            continue;
        removed++;
        left -= about->bytes;
        *ret_bytes += about->bytes;
    }
    listing_finish(&listing);
    return removed;
}

/* ---- holding -------------------------------------------------------------------------------------------- */

void image_prepared_finish(struct image_prepared *prepared)
{
    cleanup_close(&prepared->lock);
    free(take_ptr(&prepared->path));
    image_about_finish(&prepared->about);
    prepared->lock = -1;
}

/* False: it is not prepared. */
static bool hold(const struct image_cache *cache, const char *key, struct image_prepared *ret)
{
    AUTO_FREE char *path = dirtree_join(cache->directory, key);
    AUTO_CLOSE int lock = path ? locked_dir_hold(path) : -1;
    struct image_about about;
    if (lock < 0 || !tree_index_is_there(path) || !image_about_read(path, &about))
        return false;
    *ret = (struct image_prepared){.path = dirtree_join(path, "root"), .lock = take_fd(&lock), .about = about};
    return ret->path != NULL;
}

/* In the maker's hands: one of an earlier release gets an index of what is there, and what is left of one goes. */
static void mend(const struct image_cache *cache, const char *key)
{
    struct image_about about;
    AUTO_FREE char *path = dirtree_join(cache->directory, key);
    AUTO_CLOSE int dir = path ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (dir < 0)
        return;
    const bool is_described = image_about_read(path, &about);
    if (is_described)
        image_about_finish(&about);
    if (!is_described || (!tree_index_is_there(path) && tree_index_write(path, NULL) < 0))
        locked_dir_set_aside(dir, path);
}

/* The right to make `key`, or -1 with *trouble; the file goes with the one who made it. */
static int lock_making(const char *path, const struct image_order *order, struct image_trouble *trouble)
{
    for (;;) {
        AUTO_CLOSE int lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (lock < 0)
            return image_fail_errno(trouble, "make", path);
        if (atomic_load(order->stop))
            return image_fail(trouble, -ECANCELED, "stopped");
        if (flock(lock, LOCK_EX) < 0 && errno != EINTR)
            return image_fail_errno(trouble, "lock", path);
        if (locked_dir_is_at(lock, path) && flock(lock, LOCK_EX | LOCK_NB) == 0)
            return take_fd(&lock); /* else the one who made it removed it: once more */
    }
}

/* ---- making ----------------------------------------------------------------------------------------------- */

struct making {
    const struct image_cache *cache;
    struct image *image;
    const struct image_order *order;
    struct rootfs_counts total, done;
    struct image_trouble *trouble;
};

static void tell(void *arg, const struct rootfs_counts *counts)
{
    const struct making *making = arg;
    if (making->order->progress)
        making->order->progress(making->order->progress_arg, counts, &making->total);
}

static int count(struct making *making)
{
    struct rootfs rootfs;
    rootfs_init(&rootfs, -1, &making->order->limits, making->order->stop, making->trouble);
    int code = image_count(making->image, &rootfs);
    making->total = rootfs.counts;
    rootfs_finish(&rootfs);
    return code;
}

static int fill(struct making *making, int root)
{
    struct rootfs rootfs;
    rootfs_init(&rootfs, root, &making->order->limits, making->order->stop, making->trouble);
    rootfs.progress = tell;
    rootfs.progress_arg = making;
    int code = image_unpack(making->image, &rootfs);
    making->done = rootfs.counts;
    rootfs_finish(&rootfs);
    return code;
}

/* Blocks and inodes; what an entry takes beside its bytes is guessed. */
static bool has_space(const struct making *making, const char *directory)
{
    enum { ENTRY_BYTES = 1024 };
    struct statvfs disk;
    if (statvfs(directory, &disk) < 0)
        return true; /* writing will tell */
    uint64_t free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    bool has_inodes = disk.f_files == 0 || disk.f_favail >= making->total.entries;
    return has_inodes && free_bytes >= making->total.bytes + making->total.entries * ENTRY_BYTES;
}

static int make_space(const struct making *making)
{
    const struct image_cache *cache = making->cache;
    uint64_t need = making->total.bytes, max = cache->bytes_max, gone;
    int64_t now_s = clock_wall_ms() / 1000;
    for_each(cache->directory, sweep_one, &now_s);
    if (max && need > max)
        return image_fail(making->trouble, -ENOSPC, "it unpacks to %llu bytes, more than the cache may hold (%llu)",
                          (unsigned long long)need, (unsigned long long)max);
    if (max)
        image_cache_prune(cache, INT64_MAX, max - need, &gone);
    if (!has_space(making, cache->directory))
        image_cache_prune(cache, INT64_MAX, 0, &gone);
    if (!has_space(making, cache->directory))
        return image_fail(making->trouble, -ENOSPC, "the disk of %.200s has no room for %llu bytes in %llu files",
                          cache->directory, (unsigned long long)need, (unsigned long long)making->total.entries);
    return 0;
}

/* An empty directory `root` in the directory `path`; open. */
static int make_root(const char *path, struct image_trouble *trouble)
{
    AUTO_CLOSE int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || mkdirat(dir, "root", 0755) < 0 || fchmodat(dir, "root", 0755, 0) < 0)
        return image_fail_errno(trouble, "make", path);
    int root = openat(dir, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return root < 0 ? image_fail_errno(trouble, "open", path) : root;
}

/* Everything is on the disk before the name is that says so. */
static int fill_and_describe(struct making *making, const char *fresh)
{
    struct fail fail = {0};
    AUTO_CLOSE int root = make_root(fresh, making->trouble);
    int code = root < 0 ? root : fill(making, root);
    if (code == 0)
        code = image_about_write(fresh, making->image, &making->done, making->trouble);
    AUTO_FREE char *config = dirtree_join(fresh, IMAGE_CONFIG_NAME);
    if (code == 0)
        code = config ? image_write_config(making->image, config, making->trouble)
                      : image_fail(making->trouble, -ENOMEM, "out of memory");
    if (code == 0 && (code = tree_index_write(fresh, &fail)) < 0)
        image_fail(making->trouble, code, "%s", fail.text);
    if (code == 0 && syncfs(root) < 0)
        code = image_fail_errno(making->trouble, "sync", fresh);
    return code;
}

static int make(struct making *making)
{
    AUTO_FREE char *path = dirtree_join(making->cache->directory, making->image->key);
    int code = path ? count(making) : image_fail(making->trouble, -ENOMEM, "out of memory");
    if (code == 0)
        code = make_space(making);
    if (code < 0)
        return code;
    struct fail fail = {0};
    AUTO_FREE char *fresh = locked_dir_make(making->cache->directory, making->image->key, &fail);
    if (!fresh)
        return image_fail(making->trouble, fail.code, "%s", fail.text);
    AUTO_CLOSE int held = locked_dir_hold(fresh); /* so that nobody takes it for remains */
    code = held < 0 ? image_fail(making->trouble, -EBUSY, "cannot lock %s", fresh) : fill_and_describe(making, fresh);
    bool is_whole = code == 0 && rename(fresh, path) == 0;
    if (code == 0 && !is_whole && errno != ENOTEMPTY && errno != EEXIST)
        code = image_fail_errno(making->trouble, "make", path);
    if (!is_whole)
        dirtree_remove(fresh);
    return code;
}

int image_cache_prepare(const struct image_cache *cache, struct image *image, const struct image_order *order,
                        struct image_prepared *ret, struct image_trouble *trouble)
{
    struct making making = {.cache = cache, .image = image, .order = order, .trouble = trouble};
    AUTO_FREE char *lock_path = NULL;
    if (hold(cache, image->key, ret))
        return 0;
    if (asprintf(&lock_path, "%s/%s.lock", cache->directory, image->key) < 0) {
        lock_path = NULL;
        return image_fail(trouble, -ENOMEM, "out of memory");
    }
    AUTO_CLOSE int lock = lock_making(lock_path, order, trouble);
    if (lock < 0)
        return lock;
    mend(cache, image->key);
    bool is_new = !hold(cache, image->key, ret);
    int code = is_new ? make(&making) : 0;
    if (code == 0 && is_new && !hold(cache, image->key, ret))
        code = image_fail(trouble, -EBUSY, "the prepared image was removed at once");
    unlink(lock_path); /* while locked: those who wait see it and begin again */
    if (code == 0)
        ret->is_new = is_new;
    return code;
}

/* Without the slashes at its end. */
static size_t bare_length(const char *path)
{
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    return len;
}

int image_unpack_to(struct image *image, const char *path, const struct image_order *order, struct rootfs_counts *ret,
                    struct image_trouble *trouble)
{
    struct making making = {.image = image, .order = order, .trouble = trouble};
    int code = count(&making);
    if (code < 0)
        return code;
    if (mkdir(path, 0755) < 0)
        return image_fail_errno(trouble, "make", path);
    AUTO_CLOSE int root = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (root < 0)
        code = image_fail_errno(trouble, "open", path);
    else if (!has_space(&making, path))
        code = image_fail(trouble, -ENOSPC, "the disk of %.200s has no room for %llu bytes", path,
                          (unsigned long long)making.total.bytes);
    else
        code = fill(&making, root);
    AUTO_FREE char *config = NULL;
    if (code == 0 && asprintf(&config, "%.*s." IMAGE_CONFIG_NAME, (int)bare_length(path), path) >= 0)
        code = image_write_config(image, config, trouble);
    *ret = making.done;
    if (code < 0)
        dirtree_remove(path);
    return code;
}
