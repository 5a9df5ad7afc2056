#include "workers/sandbox/proto/gauge.h"

#include <errno.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

struct gauge *gauges_map(int fd, void *near)
{
    void *gauges = mmap(near, GAUGE_COUNT * sizeof(struct gauge), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    return gauges == MAP_FAILED ? NULL : gauges;
}

/* Before Linux 6.3 there is no such flag; from then on some machines want it. */
static int open_memory(void)
{
    int fd = memfd_create("sluice-gauges", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
    return fd < 0 && errno == EINVAL ? memfd_create("sluice-gauges", MFD_CLOEXEC) : fd;
}

struct gauge *gauges_create(int *fd)
{
    *fd = open_memory();
    if (*fd < 0 || ftruncate(*fd, GAUGE_COUNT * sizeof(struct gauge)) < 0)
        return NULL;
    return gauges_map(*fd, NULL);
}

void gauges_destroy(struct gauge **gauges)
{
    if (*gauges)
        munmap(*gauges, GAUGE_COUNT * sizeof(struct gauge));
    *gauges = NULL;
}

/* The one given back last is taken last: whoever still watched a dead sandbox has looked away. */
struct gauge *gauge_take(struct gauge *gauges, uint32_t *last)
{
    for (uint32_t tried = 0; tried < GAUGE_COUNT; tried++) {
        *last = (*last + 1) % GAUGE_COUNT;
        struct gauge *gauge = &gauges[*last];
        if (gauge->taken)
            continue;
        memset(gauge, 0, sizeof(*gauge));
        gauge->taken = true;
        return gauge;
    }
    return NULL;
}

void gauge_give_back(struct gauge *gauge) { gauge->taken = false; }

void gauge_peak(_Atomic uint64_t *peak, uint64_t seen)
{
    uint64_t most = atomic_load(peak);
    while (seen > most && !atomic_compare_exchange_weak(peak, &most, seen))
        ;
}

void gauge_see(struct gauge *gauge, enum limit_id limit, bool is_beyond)
{
    if (atomic_exchange(&gauge->is_beyond[limit], is_beyond) < is_beyond)
        atomic_fetch_add(&gauge->breaches[limit], 1);
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

void gauge_start_disk(struct gauge *gauge, int dir)
{
    struct statfs disk;
    uint64_t bytes, inodes;
    if (!read_disk(dir, &disk, &bytes, &inodes))
        return;
    atomic_store(&gauge->container_bytes, bytes);
    atomic_store(&gauge->container_inodes, inodes);
}

void gauge_see_disk(struct gauge *gauge, int dir)
{
    struct statfs disk;
    uint64_t bytes, inodes;
    if (!read_disk(dir, &disk, &bytes, &inodes))
        return;
    atomic_store(&gauge->disk_now, bytes);
    uint64_t container_bytes = atomic_load(&gauge->container_bytes), container = atomic_load(&gauge->container_inodes);
    gauge_peak(&gauge->disk_bytes, bytes > container_bytes ? bytes - container_bytes : 0);
    gauge_peak(&gauge->inodes, inodes > container ? inodes - container : 0);
    gauge_see(gauge, LIMIT_DISK, disk.f_bfree == 0);
    gauge_see(gauge, LIMIT_INODES, disk.f_ffree == 0);
}
