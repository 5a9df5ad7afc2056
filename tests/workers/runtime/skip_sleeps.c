/*
 * skip_sleeps.c - a clock in the place of the loop's that a fiber's long sleep, such as the back-off of a call, moves
 * on at once. For tests in which nobody else waits for an answer while a fiber sleeps; link with --wrap=loop_now_us and
 * --wrap=await_sleep. Short sleeps are those of tests that look for something again and again: they last.
 */
#include "common/base/clock.h"
#include "workers/runtime/fiber.h"

enum { LONG_MS = 100 };

static int64_t skipped_us;

int64_t __wrap_loop_now_us(void);
int __real_await_sleep(int64_t ms);
int __wrap_await_sleep(int64_t ms);

int64_t __wrap_loop_now_us(void) { return clock_us() + skipped_us; }

int __wrap_await_sleep(int64_t ms)
{
    if (ms < LONG_MS)
        return __real_await_sleep(ms);
    skipped_us += (ms - 1) * 1000;
    return __real_await_sleep(1); /* as any other: past a deadline, or cancelled, it says so */
}
