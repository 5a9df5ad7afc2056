/*
 * clock.h - the two clocks. Deadlines and leases use the monotonic one;
 * the wall clock is for people and records only.
 */
#ifndef SLUICE_COMMON_BASE_CLOCK_H
#define SLUICE_COMMON_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>
#include <unistd.h>

static inline int64_t clock_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static inline int64_t clock_ms(void) { return clock_us() / 1000; }

static inline int64_t clock_wall_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}
/* Since boot, in the ticks in which /proc says when a process began. */
static inline uint64_t clock_boot_ticks(void)
{
    struct timespec t;
    const uint64_t per_second = (uint64_t)sysconf(_SC_CLK_TCK);
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * per_second + (uint64_t)t.tv_nsec / (1000000000 / per_second);
}

#endif
