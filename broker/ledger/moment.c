#include "broker/ledger/moment.h"

#include <fcntl.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"

/* The kernel's random id of this boot, as a number that fits where numbers are stored. */
static uint64_t read_boot(void)
{
    char text[64];
    AUTO_CLOSE int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text));
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (ssize_t i = 0; i < len; i++)
        hash = (hash ^ (uint8_t)text[i]) * 0x100000001b3u;
    return len > 0 ? hash >> 1 | 1 : 0;
}

struct moment moment_now(void)
{
    struct timespec up;
    clock_gettime(CLOCK_BOOTTIME, &up);
    return (struct moment){
        .wall_ms = clock_wall_ms(), .boot_ms = (int64_t)up.tv_sec * 1000 + up.tv_nsec / 1000000, .boot = read_boot()};
}

int64_t moment_passed(const struct moment *then, const struct moment *now)
{
    if (then->boot && then->boot == now->boot && now->boot_ms >= then->boot_ms)
        return now->boot_ms - then->boot_ms;
    int64_t by_wall_ms;
    if (__builtin_sub_overflow(now->wall_ms, then->wall_ms, &by_wall_ms) || by_wall_ms < 0)
        return 0;
    return by_wall_ms < now->boot_ms ? by_wall_ms : now->boot_ms;
}
