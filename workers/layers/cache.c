#include "workers/layers/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "workers/files/locked_dir.h"
#include "workers/layers/dir.h"
#include "workers/files/dirtree.h"

#define SIZE_XATTR "user.sluice.bytes"
#define BOOT_XATTR "user.sluice.boot"
#define LAYOUT                                                                                                         \
    "root+index " /* before the boot's name, so that who makes or knows layers of another form takes none of these */
enum {
    BOOT_SIZE = 64,   /* of a boot's name */
    NUMBER_SIZE = 24, /* of a number as text, always of this length, in the attribute and the file */
    DISK_SHARE = 5,
    TRIM_SHARE = 32 /* so much of the limit is freed beyond it, so that not every unpack trims */
};
#define LIMIT_MAX (UINT64_C(32) << 30)

uint64_t layer_cache_prepare(const char *cache)
{
    struct statvfs disk;
    int flags = 0;
    AUTO_CLOSE int dir = open(cache, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
#ifdef FS_TOPDIR_FL
    if (dir >= 0 && ioctl(dir, FS_IOC_GETFLAGS, &flags) == 0 && !(flags & FS_TOPDIR_FL)) {
        flags |= FS_TOPDIR_FL;
        ioctl(dir, FS_IOC_SETFLAGS, &flags); /* other file systems have no use for it */
    }
#endif
    if (dir < 0 || fstatvfs(dir, &disk) < 0)
        return LIMIT_MAX;
    uint64_t share = (uint64_t)disk.f_blocks * disk.f_frsize / DISK_SHARE;
    return share < LIMIT_MAX ? share : LIMIT_MAX;
}

/* ---- counting ----------------------------------------------------------------------------- */

static bool read_number(ssize_t len, char text[NUMBER_SIZE], uint64_t *ret)
{
    if (len < 1 || len >= NUMBER_SIZE)
        return false;
    text[len] = '\0';
    char *end;
    unsigned long long number = strtoull(text, &end, 10);
    bool is_number = end > text && number <= INT64_MAX;
    *ret = is_number ? number : 0;
    return is_number;
}

/* Of the file that counts all; an unreadable one begins again at 0, a sweep sets it right. */
static uint64_t change_usage(const char *cache, int64_t change, const uint64_t *set)
{
    char path[4096], text[NUMBER_SIZE];
    uint64_t bytes = 0;
    if (snprintf(path, sizeof(path), "%s/.usage", cache) >= (int)sizeof(path))
        return 0;
    AUTO_CLOSE int file = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (file < 0 || flock(file, LOCK_EX) < 0)
        return 0;
    read_number(pread(file, text, NUMBER_SIZE - 1, 0), text, &bytes);
    if (change == 0 && !set)
        return bytes;
    bytes = set ? *set : change < 0 && bytes < (uint64_t)-change ? 0 : bytes + (uint64_t)change;
    int len = snprintf(text, sizeof(text), "%-22llu\n", (unsigned long long)bytes);
    return pwrite(file, text, (size_t)len, 0) == len ? bytes : 0;
}

uint64_t layer_cache_bytes(const struct layers *layers) { return change_usage(layers->cache, 0, NULL); }

static bool read_size(int dir, uint64_t *ret)
{
    char text[NUMBER_SIZE];
    return read_number(fgetxattr(dir, SIZE_XATTR, text, NUMBER_SIZE - 1), text, ret);
}

/* The machine's own name of it; where it has none, all boots are one. */
static size_t read_boot(char ret[BOOT_SIZE])
{
    const size_t layout = strlen(LAYOUT);
    AUTO_CLOSE int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    memcpy(ret, LAYOUT, layout);
    ssize_t len = file < 0 ? -1 : read(file, ret + layout, BOOT_SIZE - layout);
    return layout + (len > 0 ? (size_t)len : 0);
}

bool layer_cache_is_of_this_boot(const char *path)
{
    char now[BOOT_SIZE], then[BOOT_SIZE];
    size_t now_len = read_boot(now);
    ssize_t len = lgetxattr(path, BOOT_XATTR, then, sizeof(then));
    if (len < 0)
        return errno == EOPNOTSUPP;
    return (size_t)len == now_len && memcmp(now, then, now_len) == 0;
}

int layer_cache_add(const struct layers *layers, int dir, uint64_t bytes)
{
    char boot[BOOT_SIZE], text[NUMBER_SIZE];
    if (fsetxattr(dir, BOOT_XATTR, boot, read_boot(boot), 0) < 0 && errno != EOPNOTSUPP)
        return -errno;
    int len = snprintf(text, sizeof(text), "%llu", (unsigned long long)bytes);
    if (fsetxattr(dir, SIZE_XATTR, text, (size_t)len, 0) == 0)
        change_usage(layers->cache, (int64_t)bytes, NULL);
    return 0;
}

bool layer_cache_remove(const struct layers *layers, int dir, const char *path)
{
    uint64_t bytes = 0;
    read_size(dir, &bytes);
    if (!locked_dir_remove(dir, path))
        return false;
    if (bytes)
        change_usage(layers->cache, -(int64_t)bytes, NULL);
    return true;
}

/* ---- the least recently used go ------------------------------------------------------------- */

struct kept { /* an unpacked layer */
    struct timespec used;
    uint64_t bytes;
    char name[65];
};

struct listing { /* all of them */
    struct kept *items;
    size_t count, capacity;
    uint64_t bytes;
};

static bool is_layer(const char *name) { return strlen(name) == 64 && strspn(name, "0123456789abcdef") == 64; }

static bool listing_add(struct listing *listing, const struct kept *kept)
{
    if (listing->count == listing->capacity) {
        size_t capacity = listing->capacity ? listing->capacity * 2 : 256;
        struct kept *more = reallocarray(listing->items, capacity, sizeof(*more));
        if (!more)
            return false;
        listing->items = more;
        listing->capacity = capacity;
    }
    listing->items[listing->count++] = *kept;
    listing->bytes += kept->bytes;
    return true;
}

/* What has no size noted (the file system keeps no attributes) counts nothing. */
static void listing_read(struct listing *listing, const char *cache)
{
    DIR *stream = opendir(cache);
    const struct dirent *entry;
    bool has_room = true;
    while (stream && has_room && (entry = readdir(stream))) {
        struct stat it;
        struct kept kept = {0};
        if (!is_layer(entry->d_name))
            continue;
        AUTO_CLOSE int dir = openat(dirfd(stream), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (dir < 0 || fstat(dir, &it) < 0)
            continue;
        kept.used = it.st_mtim;
        memcpy(kept.name, entry->d_name, sizeof(kept.name));
        read_size(dir, &kept.bytes);
        has_room = listing_add(listing, &kept);
    }
    if (stream)
        closedir(stream);
}

static int compare_used(const void *a, const void *b)
{
    const struct kept *x = a, *y = b;
    if (x->used.tv_sec != y->used.tv_sec)
        return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
    return x->used.tv_nsec < y->used.tv_nsec ? -1 : x->used.tv_nsec > y->used.tv_nsec;
}

/* Returns how many bytes went. */
static uint64_t remove_oldest(const struct layers *layers, const struct listing *listing, uint64_t down_to)
{
    uint64_t gone = 0;
    for (size_t i = 0; i < listing->count && listing->bytes - gone > down_to; i++) {
        AUTO_FREE char *path = dirtree_join(layers->cache, listing->items[i].name);
        if (!path)
            break;
        AUTO_CLOSE int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (dir >= 0 && layer_cache_remove(layers, dir, path))
            gone += listing->items[i].bytes;
    }
    return gone;
}

/* Reads what there is, sets the count right and removes what is beyond the limit, or the older
 * half. */
static uint64_t recount(const struct layers *layers, bool is_full, int lock_flags)
{
    uint64_t limit = layers->cache_bytes ? layers->cache_bytes : UINT64_MAX, gone = 0;
    struct listing listing = {0};
    AUTO_FREE char *path = dirtree_join(layers->cache, ".trim");
    if (!path)
        return 0;
    AUTO_CLOSE int lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (lock < 0 || flock(lock, LOCK_EX | lock_flags) < 0)
        return 0;
    listing_read(&listing, layers->cache);
    change_usage(layers->cache, 0, &listing.bytes);
    if (listing.count)
        qsort(listing.items, listing.count, sizeof(listing.items[0]), compare_used);
    if (is_full)
        gone = remove_oldest(layers, &listing, listing.bytes / 2);
    else if (listing.bytes > limit)
        gone = remove_oldest(layers, &listing, limit - limit / TRIM_SHARE);
    free(listing.items);
    return gone;
}

void layer_cache_trim(const struct layers *layers)
{
    if (layers->cache_bytes && layer_cache_bytes(layers) > layers->cache_bytes)
        recount(layers, false, LOCK_NB);
}

void layer_cache_recount(const struct layers *layers) { recount(layers, false, LOCK_NB); }

bool layer_cache_make_room(const struct layers *layers) { return recount(layers, true, 0) > 0; }
