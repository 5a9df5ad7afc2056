#include "workers/sources/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/files/dirtree.h"
#include "workers/sources/copying.h"
#include "workers/sources/directory.h"
#include "workers/sources/tar.h"

/* Whether it is unpacked, by its name. */
static bool is_tar_name(const char *path)
{
    static const char *const ends[] = {".tar", ".tar.gz", ".tgz", ".tar.zst", ".tar.xz"};
    const size_t len = strlen(path);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        const size_t end = strlen(ends[i]);
        if (len > end && strcmp(path + len - end, ends[i]) == 0)
            return true;
    }
    return false;
}

/* It was opened by its place (O_PATH), and is what it was then. */
static int open_to_read(int held, int flags)
{
    char link[64];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", held);
    return open(link, O_RDONLY | O_NONBLOCK | O_CLOEXEC | flags);
}

static int make_place(struct copying *copying)
{
    const struct rootfs_entry entry = {.path = copying->place, .mode = 0755};
    return copying->place[0] ? rootfs_add_dir(copying->rootfs, &entry) : 0;
}

static int copy(const struct source_order *order, int held, struct copying *copying, bool *ret_is_file)
{
    struct stat it;
    struct image_trouble *trouble = copying->rootfs->trouble;
    if (fstat(held, &it) < 0)
        return image_fail(trouble, -errno, "%s", strerror(errno));
    if (!S_ISDIR(it.st_mode) && !S_ISREG(it.st_mode))
        return image_refuse(trouble, IMAGE_REFUSAL_UNREADABLE, "it is neither a file nor a directory");
    AUTO_CLOSE int from = open_to_read(held, S_ISDIR(it.st_mode) ? O_DIRECTORY : 0);
    if (from < 0)
        return image_fail(trouble, -errno, "cannot open it: %s", strerror(errno));
    const bool is_tar = !S_ISDIR(it.st_mode) && is_tar_name(order->source);
    *ret_is_file = S_ISREG(it.st_mode) && !is_tar;
    int code = *ret_is_file ? rootfs_step(copying->rootfs) : make_place(copying);
    if (code < 0)
        return code;
    if (*ret_is_file)
        return copying_file(copying, from, &it, "");
    code = is_tar ? source_tar_copy(copying, from, &it) : source_directory_copy(copying, from);
    return code < 0 ? code : rootfs_complete(copying->rootfs);
}

/* What else the system may say is of the source, which this node cannot read. */
static bool is_nodes(int code) { return code == -ENOSPC || code == -EDQUOT || code == -ENOMEM || code == -ECANCELED; }

static int say(const struct source_order *order, const struct image_trouble *trouble, struct fail *fail)
{
    if (trouble->refusal == IMAGE_REFUSAL_NONE)
        return fail_set(fail, is_nodes(trouble->fail.code) ? trouble->fail.code : -EIO, "the source %.400s: %s",
                        order->source, trouble->fail.text);
    if (trouble->refusal != IMAGE_REFUSAL_TOO_LARGE)
        return fail_set(fail, -EINVAL, "the source %.400s: %s", order->source, trouble->fail.text);
    return fail_set(fail, -EINVAL,
                    "the source %.400s: %s; a source has at most %d entries and, by limits.disk_mib, %llu MiB",
                    order->source, trouble->fail.text, SOURCE_ENTRIES_MAX, (unsigned long long)order->disk_mib);
}

int source_copy(const struct source_order *order, int root, const char *place, bool *ret_is_file, struct fail *fail)
{
    struct image_trouble trouble = {0};
    struct rootfs rootfs;
    const struct rootfs_limits limits = {.bytes = order->disk_mib << 20, .entries = SOURCE_ENTRIES_MAX};
    AUTO_CLOSE int held = task_dirs_open(order->dirs, order->source, fail);
    if (held < 0)
        return take_fd(&held);
    AUTO_FREE uint8_t *chunk = malloc(COPYING_CHUNK);
    if (!chunk)
        return fail_memory(fail);
    rootfs_init(&rootfs, root, &limits, order->stop, &trouble);
    struct copying copying = {.rootfs = &rootfs, .place = place, .chunk = chunk};
    int code = copy(order, held, &copying, ret_is_file);
    rootfs_finish(&rootfs);
    return code < 0 ? say(order, &trouble, fail) : 0;
}

bool source_is_tar(int from) { return source_tar_is(from); }

int source_unpack(int from, int root, uint64_t disk_mib, const atomic_bool *stop, struct fail *fail)
{
    struct image_trouble trouble = {0};
    struct rootfs rootfs;
    struct stat it;
    const struct rootfs_limits limits = {.bytes = disk_mib << 20, .entries = SOURCE_ENTRIES_MAX};
    const struct source_order order = {.source = "archive", .disk_mib = disk_mib};
    if (fstat(from, &it) < 0 || lseek(from, 0, SEEK_SET) < 0)
        return fail_set(fail, -EIO, "cannot read it: %s", strerror(errno));
    rootfs_init(&rootfs, root, &limits, stop, &trouble);
    struct copying copying = {.rootfs = &rootfs, .place = ""};
    int code = source_tar_copy(&copying, from, &it);
    if (code == 0)
        code = rootfs_complete(&rootfs);
    rootfs_finish(&rootfs);
    return code < 0 ? say(&order, &trouble, fail) : 0;
}
