#include "workers/sandbox/proto/usage.h"

#include <errno.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

struct usage *usages_map(int fd, void *near)
{
    void *usages = mmap(near, USAGE_COUNT * sizeof(struct usage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                        fd, 0);
    return usages == MAP_FAILED ? NULL : usages;
}

/* Before Linux 6.3 there is no such flag; from then on some machines want it. */
static int open_memory(void)
{
    int fd = memfd_create("sluice-usages", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
    return fd < 0 && errno == EINVAL ? memfd_create("sluice-usages", MFD_CLOEXEC) : fd;
}

struct usage *usages_create(int *fd)
{
    *fd = open_memory();
    if (*fd < 0 || ftruncate(*fd, USAGE_COUNT * sizeof(struct usage)) < 0)
        return NULL;
    return usages_map(*fd, NULL);
}

void usages_destroy(struct usage **usages)
{
    if (*usages)
        munmap(*usages, USAGE_COUNT * sizeof(struct usage));
    *usages = NULL;
}

/* The one given back last is taken last: whoever still watched a dead sandbox has looked away. */
struct usage *usage_take(struct usage *usages, uint32_t *last)
{
    for (uint32_t tried = 0; tried < USAGE_COUNT; tried++) {
        *last = (*last + 1) % USAGE_COUNT;
        struct usage *usage = &usages[*last];
        if (usage->taken)
            continue;
        memset(usage, 0, sizeof(*usage));
        usage->taken = true;
        return usage;
    }
    return NULL;
}

void usage_give_back(struct usage *usage) { usage->taken = false; }

void usage_peak(_Atomic uint64_t *peak, uint64_t seen)
{
    uint64_t most = atomic_load(peak);
    while (seen > most && !atomic_compare_exchange_weak(peak, &most, seen))
        ;
}

void usage_see(struct usage *usage, enum limit_id limit, bool is_beyond)
{
    if (atomic_exchange(&usage->is_beyond[limit], is_beyond) < is_beyond)
        atomic_fetch_add(&usage->breaches[limit], 1);
}

/* False where the file system is not the sandbox's own. */
static bool read_disk(int dir, struct statfs *disk, uint64_t *bytes, uint64_t *inodes)
{
    if (dir < 0 || fstatfs(dir, disk) < 0 || disk->f_type != TMPFS_MAGIC)
        return false;
    *bytes = (disk->f_blocks - disk->f_bfree) * (uint64_t)disk->f_bsize;
    *inodes = disk->f_files - disk->f_ffree;
    return true;
}

void usage_start_disk(struct usage *usage, int dir)
{
    struct statfs disk;
    uint64_t bytes, inodes;
    if (!read_disk(dir, &disk, &bytes, &inodes))
        return;
    atomic_store(&usage->container_bytes, bytes);
    atomic_store(&usage->container_inodes, inodes);
}

void usage_see_disk(struct usage *usage, int dir)
{
    struct statfs disk;
    uint64_t bytes, inodes;
    if (!read_disk(dir, &disk, &bytes, &inodes))
        return;
    atomic_store(&usage->disk_now, bytes);
    uint64_t container_bytes = atomic_load(&usage->container_bytes), container = atomic_load(&usage->container_inodes);
    usage_peak(&usage->disk_bytes, bytes > container_bytes ? bytes - container_bytes : 0);
    usage_peak(&usage->inodes, inodes > container ? inodes - container : 0);
    usage_see(usage, LIMIT_DISK, disk.f_bfree == 0);
    usage_see(usage, LIMIT_INODES, disk.f_ffree == 0);
}
