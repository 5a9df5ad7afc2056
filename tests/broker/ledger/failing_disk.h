/*
 * failing_disk.h - a VFS of SQLite that counts what it is asked to do to the disk and lets the
 * n-th fail: the one that is there by default, with a toll-gate before it.
 *
 * With failing_disk.armed false it counts and refuses nothing. Once something failed it lets all
 * pass again, so that what is seen afterwards is what the code made of one failure.
 */
#ifndef SLUICE_TESTS_BROKER_LEDGER_FAILING_DISK_H
#define SLUICE_TESTS_BROKER_LEDGER_FAILING_DISK_H

#include <errno.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

enum disk_failure { DISK_BROKEN, DISK_FULL, DISK_SHORT, DISK_FAILURES };

static struct {
    bool armed;
    atomic_uint left; /* operations until one fails */
    atomic_bool has_failed;
    enum disk_failure how;
} failing_disk;

struct gate_file {
    sqlite3_file base;
    sqlite3_file *real; /* behind this struct */
};

static inline bool disk_fails(void)
{
    if (!failing_disk.armed || atomic_load(&failing_disk.has_failed) || atomic_fetch_sub(&failing_disk.left, 1) != 1)
        return false;
    atomic_store(&failing_disk.has_failed, true);
    return true;
}

static inline sqlite3_file *real_of(sqlite3_file *file) { return ((struct gate_file *)file)->real; }

static int gate_write(sqlite3_file *file, const void *bytes, int len, sqlite3_int64 at)
{
    sqlite3_file *real = real_of(file);
    if (!disk_fails())
        return real->pMethods->xWrite(real, bytes, len, at);
    if (failing_disk.how == DISK_SHORT)
        real->pMethods->xWrite(real, bytes, len / 2, at);
    return failing_disk.how == DISK_BROKEN ? SQLITE_IOERR_WRITE : SQLITE_FULL;
}

static int gate_read(sqlite3_file *file, void *bytes, int len, sqlite3_int64 at)
{
    sqlite3_file *real = real_of(file);
    if (failing_disk.how == DISK_BROKEN && disk_fails())
        return SQLITE_IOERR_READ;
    return real->pMethods->xRead(real, bytes, len, at);
}

static int gate_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    sqlite3_file *real = real_of(file);
    return disk_fails() ? SQLITE_IOERR_TRUNCATE : real->pMethods->xTruncate(real, size);
}

static int gate_sync(sqlite3_file *file, int flags)
{
    sqlite3_file *real = real_of(file);
    return disk_fails() ? SQLITE_IOERR_FSYNC : real->pMethods->xSync(real, flags);
}

static int gate_shm_map(sqlite3_file *file, int region, int size, int extend, void volatile **ret)
{
    sqlite3_file *real = real_of(file);
    return extend && disk_fails() ? SQLITE_IOERR_SHMSIZE : real->pMethods->xShmMap(real, region, size, extend, ret);
}

/* ---- what only passes on ------------------------------------------------------------------- */

#define PASS(name, parameters, ...)                                                                                    \
    static int gate_##name parameters                                                                                  \
    {                                                                                                                  \
        sqlite3_file *real = real_of(file);                                                                            \
        return real->pMethods->x##name(__VA_ARGS__);                                                                   \
    }
PASS(Close, (sqlite3_file * file), real)
PASS(FileSize, (sqlite3_file * file, sqlite3_int64 *ret), real, ret)
PASS(Lock, (sqlite3_file * file, int lock), real, lock)
PASS(Unlock, (sqlite3_file * file, int lock), real, lock)
PASS(CheckReservedLock, (sqlite3_file * file, int *ret), real, ret)
PASS(FileControl, (sqlite3_file * file, int op, void *arg), real, op, arg)
PASS(SectorSize, (sqlite3_file * file), real)
PASS(DeviceCharacteristics, (sqlite3_file * file), real)
PASS(ShmLock, (sqlite3_file * file, int offset, int n, int flags), real, offset, n, flags)
PASS(ShmUnmap, (sqlite3_file * file, int remove), real, remove)
#undef PASS

static void gate_shm_barrier(sqlite3_file *file) { real_of(file)->pMethods->xShmBarrier(real_of(file)); }

static const sqlite3_io_methods gate_methods = {
    .iVersion = 2, /* no memory-mapped pages, which would pass by the gate */
    .xClose = gate_Close,
    .xRead = gate_read,
    .xWrite = gate_write,
    .xTruncate = gate_truncate,
    .xSync = gate_sync,
    .xFileSize = gate_FileSize,
    .xLock = gate_Lock,
    .xUnlock = gate_Unlock,
    .xCheckReservedLock = gate_CheckReservedLock,
    .xFileControl = gate_FileControl,
    .xSectorSize = gate_SectorSize,
    .xDeviceCharacteristics = gate_DeviceCharacteristics,
    .xShmMap = gate_shm_map,
    .xShmLock = gate_ShmLock,
    .xShmBarrier = gate_shm_barrier,
    .xShmUnmap = gate_ShmUnmap,
};

static int gate_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret)
{
    struct gate_file *gate = (struct gate_file *)file;
    sqlite3_vfs *real = vfs->pAppData;
    gate->base.pMethods = NULL;
    gate->real = (sqlite3_file *)(gate + 1);
    if (disk_fails())
        return failing_disk.how == DISK_FULL ? SQLITE_FULL : SQLITE_CANTOPEN;
    int code = real->xOpen(real, name, gate->real, flags, ret);
    if (gate->real->pMethods)
        gate->base.pMethods = &gate_methods;
    return code;
}

static int gate_delete(sqlite3_vfs *vfs, const char *name, int sync_dir)
{
    sqlite3_vfs *real = vfs->pAppData;
    return disk_fails() ? SQLITE_IOERR_DELETE : real->xDelete(real, name, sync_dir);
}

/* The ledger's own syncs: linked with --wrap=fdatasync, they pass by the gate as well. */
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);
int __wrap_fdatasync(int fd)
{
    if (!disk_fails())
        return __real_fdatasync(fd);
    errno = failing_disk.how == DISK_BROKEN ? EIO : ENOSPC;
    return -1;
}

/* Makes the gate SQLite's default way to the disk, for good. */
static inline bool failing_disk_install(void)
{
    static sqlite3_vfs gate;
    sqlite3_vfs *real = sqlite3_vfs_find(NULL);
    gate = *real;
    gate.zName = "gate";
    gate.pAppData = real;
    gate.szOsFile = (int)sizeof(struct gate_file) + real->szOsFile;
    gate.xOpen = gate_open;
    gate.xDelete = gate_delete;
    return sqlite3_vfs_register(&gate, 1) == SQLITE_OK;
}

#endif
