/*
 * What metrics.get tells of this process and its disk, looked up when somebody asks. Counting descriptors one by one
 * takes time where there are thousands, so that an older kernel is asked for them once in FDS_PERIOD_MS only.
 */
#include "broker/io/inner.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "commit.h"
#include "common/base/clock.h"

enum { FDS_PERIOD_MS = 15000 };

static uint64_t resident_bytes(void)
{
    unsigned long long all, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file)
        return 0;
    if (fscanf(file, "%llu %llu", &all, &resident) != 2)
        resident = 0;
    fclose(file);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static double cpu_seconds(void)
{
    struct rusage used;
    if (getrusage(RUSAGE_SELF, &used) < 0)
        return 0;
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

/* Linux 6.2 says it as the folder's size. */
static uint64_t open_fds(struct io *io, int64_t now_ms)
{
    static const char folder[] = "/proc/self/fd";
    struct stat known;
    if (stat(folder, &known) == 0 && known.st_size > 0)
        return (uint64_t)known.st_size;
    if (io->fds_counted_ms && now_ms - io->fds_counted_ms < FDS_PERIOD_MS)
        return io->process.open_fds;
    DIR *dir = opendir(folder);
    uint64_t count = 0;
    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    io->fds_counted_ms = now_ms;
    return count > 3 ? count - 3 : 0; /* "." and "..", and its own */
}

static uint64_t file_bytes(const char *dir, const char *name)
{
    char path[4096];
    struct stat file;
    if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path) || stat(path, &file) < 0)
        return 0;
    return (uint64_t)file.st_size;
}

static void look_at_disk(const char *dir, struct core_process *process)
{
    struct statvfs disk;
    process->ledger_bytes = file_bytes(dir, "ledger.db") + file_bytes(dir, "ledger.db-wal");
    if (statvfs(dir, &disk) == 0)
        process->disk_free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
}

void io_note_start(struct io *io)
{
    io->process = (struct core_process){
        .version = SLUICE_VERSION, .commit = SLUICE_COMMIT, .started_s = (double)clock_wall_ms() / 1000};
}

void io_tell_process(struct io *io, int64_t now_ms)
{
    io->process.resident_bytes = resident_bytes();
    io->process.cpu_seconds = cpu_seconds();
    io->process.open_fds = open_fds(io, now_ms);
    if (io->ledger_dir)
        look_at_disk(io->ledger_dir, &io->process);
    core_tell_process(io->core, &io->process);
}
