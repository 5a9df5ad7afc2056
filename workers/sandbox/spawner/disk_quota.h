/*
 * disk_quota.h - the quota daemon of disks.h, in a process of its own: looks at how much each container has written and
 * removes what is no longer needed.
 */
#ifndef SLUICE_WORKERS_SANDBOX_SPAWNER_DISK_QUOTA_H
#define SLUICE_WORKERS_SANDBOX_SPAWNER_DISK_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

enum { QUOTA_REMOVERS = 2 }; /* processes; while they are too far behind, the quota daemon takes no orders */

struct quota_order {
    uint32_t id;
    bool is_end, is_whole;  /* all that is in the container's directory counts, not upper/ alone */
    uint64_t bytes, inodes; /* at most */
    struct usage *usage;
};
/* Ends when `orders` does. */
_Noreturn void quota_run(const char *path, const char *parent, int orders, int births);

#endif
