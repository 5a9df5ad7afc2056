/*
 * skipping_worker.c - in a worker of a test's own (worker_clock.h): the loop's clock is the real one and what the test
 * has skipped, which stands in a page that both have mapped. Link with --wrap=loop_now_us and --wrap=epoll_wait.
 */
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/loop/loop.h"

enum { LOOK_MS = 5 };

static _Atomic int64_t nothing, *skipped_us = &nothing;
static int64_t told_us; /* of it, when the loop last asked for the time */

int64_t __wrap_loop_now_us(void);
int __real_epoll_wait(int fd, struct epoll_event *events, int max, int timeout_ms);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int max, int timeout_ms);

__attribute__((constructor)) static void map_clock(void)
{
    const char *fd = getenv("SLUICE_TEST_CLOCK");
    if (!fd)
        return;
    void *page = mmap(NULL, sizeof(*skipped_us), PROT_READ, MAP_SHARED, atoi(fd), 0);
    close(atoi(fd));
    unsetenv("SLUICE_TEST_CLOCK");
    if (page == MAP_FAILED)
        abort();
    skipped_us = page;
}

int64_t __wrap_loop_now_us(void) { return clock_us() + (told_us = atomic_load(skipped_us)); }

/* Ends, too, when time was skipped since the loop worked out how long to wait. */
int __wrap_epoll_wait(int fd, struct epoll_event *events, int max, int timeout_ms)
{
    const int64_t until_ms = timeout_ms < 0 ? INT64_MAX : clock_ms() + timeout_ms;
    for (;;) {
        const int64_t left_ms = until_ms - clock_ms();
        int count = __real_epoll_wait(fd, events, max, left_ms < 0 ? 0 : left_ms < LOOK_MS ? (int)left_ms : LOOK_MS);
        if (count != 0 || left_ms <= 0 || atomic_load(skipped_us) != told_us)
            return count;
    }
}
