/*
 * slow_disk.h - a disk whose syncs are held up, or fail, and that tells how much of the log they have served: linked
 * with --wrap=fdatasync. What it holds is shared with processes that are forked, and started, later.
 */
#ifndef SLUICE_TESTS_BROKER_LEDGER_SLOW_DISK_H
#define SLUICE_TESTS_BROKER_LEDGER_SLOW_DISK_H

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SLOW_DISK_STEP_US = 1000 };

struct slow_disk {
    atomic_bool is_held, is_broken;
    atomic_bool holds_writes; /* for a test that wraps ledger_commit */
    atomic_uint syncs;        /* of the log */
    atomic_long durable_len;
};

/* A file's, whose name the environment has, so that a program which is started knows it too. */
static struct slow_disk *slow_disk(void)
{
    static struct slow_disk *disk;
    if (disk)
        return disk;
    char made[] = "/dev/shm/sluice-slow-disk-XXXXXX";
    const char *name = getenv("SLUICE_SLOW_DISK");
    int fd = name ? open(name, O_RDWR | O_CLOEXEC) : mkstemp(made);
    if (fd < 0 || ftruncate(fd, sizeof(*disk)) < 0)
        abort();
    if (!name)
        setenv("SLUICE_SLOW_DISK", made, 1);
    disk = mmap(NULL, sizeof(*disk), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return disk;
}

static void slow_disk_remove(void) { unlink(getenv("SLUICE_SLOW_DISK")); }

static bool is_log(int fd)
{
    char link[64], name[512];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, name, sizeof(name));
    return len > 4 && memcmp(name + len - 4, "-wal", 4) == 0;
}

#ifndef SLOW_DISK_BEFORE_SYNC /* of the log: what a test does then */
#define SLOW_DISK_BEFORE_SYNC() ((void)0)
#endif

int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);
int __wrap_fdatasync(int fd)
{
    struct slow_disk *disk = slow_disk();
    struct stat before;
    if (!is_log(fd) || fstat(fd, &before) < 0)
        return __real_fdatasync(fd);
    SLOW_DISK_BEFORE_SYNC();
    while (atomic_load(&disk->is_held))
        usleep(SLOW_DISK_STEP_US);
    if (atomic_load(&disk->is_broken)) {
        errno = EIO;
        return -1;
    }
    int result = __real_fdatasync(fd);
    atomic_store(&disk->durable_len, (long)before.st_size);
    atomic_fetch_add(&disk->syncs, 1);
    return result;
}

#endif
