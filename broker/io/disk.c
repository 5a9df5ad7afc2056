/* Once a second, and as much is taken: is there space on the ledger's disk, and are its files where they were? Once a
 * minute: what time it is. */
#include "broker/io/inner.h"

#include <errno.h>
#include <sys/statvfs.h>

#include "common/base/clock.h"
#include "common/base/log.h"

enum {
    LOOK_PERIOD_MS = 1000,
    LOOKS_A_RESERVE = 16, /* while what is taken would fill the reserve */
    CLOCK_PERIOD_MS = 60000
};

/* Low below the reserve; no longer low a quarter above it. */
static void look_at_space(struct io *io)
{
    struct statvfs disk;
    io->disk_unseen_bytes = 0;
    if (!io->disk_reserve_bytes || statvfs(io->ledger_dir, &disk) < 0)
        return;
    uint64_t free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    uint64_t enough = io->disk_reserve_bytes;
    bool is_low = free_bytes < (io->disk_is_low ? enough + enough / 4 : enough);
    if (is_low == io->disk_is_low)
        return;
    io->disk_is_low = is_low;
    core_disk_is_low(io->core, is_low);
    log_event(is_low ? LOG_WARN : LOG_INFO, is_low ? "broker.disk-low" : "broker.disk-enough",
              "data=%s free_mib=%llu reserve_mib=%llu action=%s", io->ledger_dir,
              (unsigned long long)(free_bytes >> 20), (unsigned long long)(enough >> 20),
              is_low ? "submits-refused" : "submits-taken");
}

void io_watch_disk(struct io *io, int64_t now_ms)
{
    const bool is_due = now_ms >= io->disk_look_ms;
    if (!io->ledger_dir || (!is_due && io->disk_unseen_bytes <= io->disk_reserve_bytes / LOOKS_A_RESERVE))
        return;
    look_at_space(io);
    if (is_due)
        io->disk_look_ms = now_ms + LOOK_PERIOD_MS;
    io->is_look_due |= is_due;
}

int io_tend_ledger(struct io *io, struct fail *fail)
{
    ledger_be_tight(io->ledger, io->disk_is_low);
    if (!io->is_look_due)
        return 0;
    io->is_look_due = false;
    const int64_t now_ms = clock_ms();
    int code = ledger_look(io->ledger, fail);
    if (code || now_ms < io->clock_note_ms)
        return code;
    struct moment now = moment_now();
    io->clock_note_ms = now_ms + CLOCK_PERIOD_MS;
    return ledger_note_clock(io->ledger, &now, core_clock_ms(io->core), fail);
}
