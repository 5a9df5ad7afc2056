/* loop_now.h - the time of a loop. */
#ifndef SLUICE_COMMON_LOOP_LOOP_NOW_H
#define SLUICE_COMMON_LOOP_LOOP_NOW_H

#include <stdint.h>

/*
 * The time that timers, deadlines and whatever waits by them mean: clock.h's monotonic clock. What is measured for
 * people takes that itself. A test may put another in the place of this one, and so have time pass without waiting.
 */
int64_t loop_now_us(void);
static inline int64_t loop_now_ms(void) { return loop_now_us() / 1000; }

#endif
