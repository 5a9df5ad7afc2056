/* When a worker beats. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "workers/service/beat_time.h"

enum { LATE_MS = 3 }; /* as a timer may be */

static void beats_fall_on_steps_of_the_wall_clock_a_second_apart_however_late_each_is(void **state)
{
    (void)state;
    for (int64_t start_ms = 1764300000000; start_ms < 1764300000000 + BEAT_STEP_MS; start_ms++) {
        int64_t beat_ms = start_ms + beat_time_wait_ms(start_ms);
        assert_in_range(beat_ms - start_ms, BEAT_MS - BEAT_STEP_MS + 1, BEAT_MS);
        for (int beats = 0; beats < 5; beats++) {
            assert_int_equal(beat_ms % BEAT_STEP_MS, 0);
            const int64_t now_ms = beat_ms + LATE_MS;
            assert_int_equal(now_ms + beat_time_wait_ms(now_ms), beat_ms + BEAT_MS);
            beat_ms += BEAT_MS;
        }
    }
}

static void workers_that_start_at_different_times_keep_to_different_steps(void **state)
{
    (void)state;
    const int64_t start_ms = 1764300000017;
    for (int64_t step = 0; step < BEAT_MS / BEAT_STEP_MS; step++) {
        const int64_t now_ms = start_ms + step * BEAT_STEP_MS;
        const int64_t first_ms = start_ms + beat_time_wait_ms(start_ms);
        assert_int_equal(now_ms + beat_time_wait_ms(now_ms), first_ms + step * BEAT_STEP_MS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(beats_fall_on_steps_of_the_wall_clock_a_second_apart_however_late_each_is),
        cmocka_unit_test(workers_that_start_at_different_times_keep_to_different_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
