/* The ledger's own clock: what passed counts, however the wall clock was stepped. */
#include "tests/broker/ledger/ledger_world.h"

#include "common/base/clock.h"

enum { SECOND = 1000, HOUR = 3600 * SECOND, DAY = 24 * HOUR };
static const int64_t start_ms = 1763697600000, year_ms = 365 * (int64_t)DAY;

static int64_t clock_at(struct world *world, int64_t wall_ms, int64_t boot_ms, uint64_t boot)
{
    struct moment now = {wall_ms, boot_ms, boot};
    struct fail fail;
    int64_t clock_ms = -1;
    reopen(world);
    if (ledger_start_clock(world->ledger, &now, &clock_ms, &fail) != 0)
        fail_msg("%s", fail.text);
    return clock_ms - start_ms;
}

static void it_begins_as_the_wall_clock(void **state) { assert_int_equal(clock_at(*state, start_ms, 5 * DAY, 7), 0); }

static void within_a_boot_of_the_machine_what_passed_counts_and_no_step(void **state)
{
    struct world *world = *state;
    assert_int_equal(clock_at(world, start_ms, 5 * DAY, 7), 0);
    assert_int_equal(clock_at(world, start_ms + year_ms, 5 * DAY + HOUR, 7), HOUR);
    assert_int_equal(clock_at(world, start_ms - year_ms, 5 * DAY + 2 * HOUR, 7), 2 * HOUR);
    assert_int_equal(clock_at(world, start_ms + 3 * HOUR, 5 * DAY + 3 * HOUR, 7), 3 * HOUR);
    assert_int_equal(clock_at(world, start_ms + 40 * (int64_t)DAY, 45 * (int64_t)DAY, 7), 40 * (int64_t)DAY);
}

/* The clock chip is years off when the machine comes up, and is set right later. */
static void over_a_reboot_no_more_passed_than_the_machine_has_been_up(void **state)
{
    struct world *world = *state;
    assert_int_equal(clock_at(world, start_ms, 5 * DAY, 7), 0);
    assert_int_equal(clock_at(world, start_ms + 10 * year_ms, 30 * SECOND, 8), 30 * SECOND);
    assert_int_equal(clock_at(world, start_ms + 20 * SECOND, 20 * SECOND, 9), 30 * SECOND); /* it went back */
    assert_int_equal(clock_at(world, start_ms + HOUR + 20 * SECOND, 2 * DAY, 10), 30 * SECOND + HOUR);
}

static void a_machine_that_does_not_tell_its_boots_is_taken_for_a_new_one(void **state)
{
    struct world *world = *state;
    assert_int_equal(clock_at(world, start_ms, 5 * DAY, 0), 0);
    assert_int_equal(clock_at(world, start_ms + HOUR, 9 * DAY, 0), HOUR);
    assert_int_equal(clock_at(world, start_ms + year_ms, 10 * SECOND, 0), HOUR + 10 * SECOND);
    assert_int_equal(clock_at(world, INT64_MAX, 20 * SECOND, 0), HOUR + 30 * SECOND);
    assert_int_equal(clock_at(world, INT64_MIN, 20 * SECOND, 0), HOUR + 30 * SECOND);
}

static void what_is_noted_meanwhile_is_gone_on_from(void **state)
{
    struct world *world = *state;
    assert_int_equal(clock_at(world, start_ms, 5 * DAY, 7), 0);
    struct moment later = {start_ms + 2 * DAY, 7 * DAY, 7};
    assert_int_equal(ledger_note_clock(world->ledger, &later, start_ms + 2 * DAY, NULL), 0);
    assert_int_equal(clock_at(world, start_ms + 2 * DAY + HOUR, HOUR / 2, 8), 2 * DAY + HOUR / 2);
}

static void this_machine_tells_its_clocks_apart(void **state)
{
    (void)state;
    struct moment first = moment_now(), second = moment_now();
    assert_true(first.boot_ms > 0 && first.boot_ms <= second.boot_ms && first.boot == second.boot);
    assert_true(first.wall_ms > start_ms && first.boot <= INT64_MAX);
    assert_in_range(moment_passed(&first, &second), 0, HOUR);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(it_begins_as_the_wall_clock),
        TEST(within_a_boot_of_the_machine_what_passed_counts_and_no_step),
        TEST(over_a_reboot_no_more_passed_than_the_machine_has_been_up),
        TEST(a_machine_that_does_not_tell_its_boots_is_taken_for_a_new_one),
        TEST(what_is_noted_meanwhile_is_gone_on_from),
        TEST(this_machine_tells_its_clocks_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
