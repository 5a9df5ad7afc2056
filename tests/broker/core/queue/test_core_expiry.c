/* The total time of a group: wherever its rollouts are, and whatever the clocks do. */
#include "tests/broker/core/core_world.h"

enum { TOTAL_MS = 3600000 };
static const int64_t ten_years_ms = 315360000000;

static struct world *open_with_total(int64_t total_ms)
{
    struct world *world = world_create();
    world->settings.beat_timeout_ms = 1000000000;
    world->settings.deadline_grace_ms = 86400000;
    world->task.total_ms = total_ms;
    world_start(world);
    world_settle(world);
    return world;
}

/* The broker starts by this wall clock on a group of two accepted at `accepted_ms`. */
static struct world *restart(int64_t wall_ms, uint64_t accepted_ms, bool init_done)
{
    struct world *world = world_create();
    world->settings.beat_timeout_ms = 1000000000;
    world->task.total_ms = TOTAL_MS;
    world_start(world);
    core_restore_clock(world->core, wall_ms);
    struct core_group_row group = {.group = TEXT("g"),
                                   .stream = TEXT("train"),
                                   .samples = 2,
                                   .task = world->task,
                                   .init_done = init_done,
                                   .accepted_ms = accepted_ms};
    assert_true(core_restore_group(world->core, &group));
    for (unsigned k = 0; k < 2; k++) {
        struct core_rollout_row row = {.rollout = TEXT("g"), .group = TEXT("g"), .sample = k};
        assert_true(core_restore_rollout(world->core, &row));
    }
    world_settle(world);
    return world;
}

/* Each of so many rollouts ends as infra, and says so. */
static void expect_expired(struct world *world, size_t count, const char *where)
{
    assert_int_equal(seen_count(world, PERSIST_END), count);
    for (size_t i = 0; i < count; i++) {
        const struct seen *end = seen_nth(world, PERSIST_END, i);
        assert_int_equal(end->end.outcome, OUTCOME_INFRA);
        assert_false(end->end.trainable || end->end.has_reward);
        assert_non_null(strstr(end->end_detail, "its total time of 3600 s was over"));
        if (!strstr(end->end_detail, where))
            fail_msg("not '%s': %s", where, end->end_detail);
    }
}

static void what_is_queued_ends_when_its_total_time_is_over(void **state)
{
    (void)state;
    struct world *world = open_with_total(TOTAL_MS);
    world_submit(world, "g", 2);
    assert_int_equal(expect(world, PERSIST_GROUP)->accepted_ms, WALL_MS);
    world_wait(world, TOTAL_MS - 1);
    assert_int_equal(seen_count(world, PERSIST_END), 0);
    assert_true(world->due_ms <= world->now_ms + 1);
    world_wait(world, 1);
    expect_expired(world, 2, "its init job was queued for 3600 s");
    world_wait(world, TOTAL_MS);
    assert_int_equal(seen_count(world, PERSIST_END), 0);
    world_close(world);
}

static void what_is_worked_on_ends_too_and_its_worker_is_told(void **state)
{
    (void)state;
    struct world *world = open_with_total(TOTAL_MS);
    world_reach_run(world, "g", 2);
    world_wait(world, 600000);
    world_beat(world, "r1", "run", 1, NULL);
    world_wait(world, TOTAL_MS - 600000);
    assert_int_equal(seen_count(world, PERSIST_END), 2);
    assert_non_null(
        strstr(seen_nth(world, PERSIST_END, 0)->end_detail, "its run job was being worked on by r1 for 3000 s"));
    assert_non_null(strstr(seen_nth(world, PERSIST_END, 1)->end_detail, "its run job was queued for 3600 s"));
    assert_true(was_told(world, "r1", MSG_job_cancel, "run:g/0"));
    world_result(world, "r1", "run:g/0", token_of(world, "run:g/0"), "ok"); /* too late */
    assert_int_equal(seen_count(world, PERSIST_RUN), 0);
    assert_true(was_told(world, "r1", MSG_result_ack, "run:g/0"));
    world_close(world);
}

static void what_waits_to_be_tried_again_ends_too_and_tells_its_history(void **state)
{
    (void)state;
    struct world *world = open_with_total(TOTAL_MS);
    world_reach_run(world, "g", 1);
    world_beat(world, "r1", "run", 1, NULL);
    world_wait(world, TOTAL_MS - 1100);
    world_result(world, "r1", "run:g/0", token_of(world, "run:g/0"), "infra");
    world_wait(world, 500);
    world_result(world, "r1", "run:g/0", expect_job(world, "r1", "run:g/0"), "infra");
    world_wait(world, 600);
    expect_expired(world, 1,
                   "its run job was waiting to be tried again for 0 s\n"
                   "set aside: 2 of 8 infra outcomes");
    world_close(world);
}

static void what_waits_for_an_engine_ends_too(void **state)
{
    (void)state;
    struct world *world = open_with_total(TOTAL_MS);
    world->task.needs_engine = true;
    world_engine(world, MSG_engine_add, "http://a:1");
    world_reach_run(world, "g", 2);
    world_engine(world, MSG_engine_remove, "http://a:1");
    world_beat(world, "r1", "run", 1, NULL);
    world_wait(world, TOTAL_MS);
    expect_expired(world, 2, "its run job was waiting for an engine for 3600 s");
    world_close(world);
}

static void what_is_to_run_alone_ends_too(void **state)
{
    (void)state;
    struct world *world = open_with_total(TOTAL_MS);
    world_reach_run(world, "g", 1);
    for (unsigned death = 0; death < 2; death++) {
        world_beat(world, "r1", "run", 1, NULL);
        world_break_lane(world, "r1");
    }
    world_wait(world, TOTAL_MS);
    expect_expired(world, 1, "its run job was queued to run alone");
    world_close(world);
}

static void what_waits_for_its_evaluation_ends_without_a_reward(void **state)
{
    (void)state;
    struct world *world = open_with_total(TOTAL_MS);
    world_reach_eval(world, "g", "ok");
    world_wait(world, TOTAL_MS);
    expect_expired(world, 1, "its eval job was queued");
    world_close(world);
}

static void a_task_that_names_no_total_time_has_seven_days(void **state)
{
    (void)state;
    struct world *world = open_with_total(0);
    world_submit(world, "g", 1);
    world_wait(world, 7 * 86400000LL - 1);
    assert_int_equal(seen_count(world, PERSIST_END), 0);
    world_wait(world, 1);
    assert_int_equal(seen_count(world, PERSIST_END), 1);
    world_close(world);
}

static void many_end_in_slices(void **state)
{
    (void)state;
    struct world *world = open_with_total(TOTAL_MS);
    for (unsigned i = 0; i < 9; i++) {
        char group[16];
        snprintf(group, sizeof(group), "g%u", i);
        world_submit(world, group, 1000);
    }
    world_wait(world, TOTAL_MS);
    assert_int_equal(seen_count(world, PERSIST_END), 5000);
    assert_int_equal(world->due_ms, world->now_ms);
    world_wait(world, 0);
    assert_int_equal(seen_count(world, PERSIST_END), 4000);
    world_close(world);
}

/* ---- clocks ------------------------------------------------------------------------ */

static void the_total_time_goes_on_over_a_restart(void **state)
{
    (void)state;
    struct world *world = restart(WALL_MS + 3000000, WALL_MS, true);
    world_wait(world, 599999);
    assert_int_equal(seen_count(world, PERSIST_END), 0);
    world_wait(world, 1);
    expect_expired(world, 2, "its run job was queued");
    world_close(world);
}

static void what_was_over_before_the_restart_ends_at_its_first_tick(void **state)
{
    (void)state;
    struct world *world = restart(WALL_MS + TOTAL_MS, WALL_MS, false);
    world_wait(world, 0);
    expect_expired(world, 2, "its init job was awaited from a worker");
    world_close(world);
}

static void a_wall_clock_that_went_back_years_gives_no_more_than_the_whole_time(void **state)
{
    (void)state;
    static const uint64_t accepted[] = {WALL_MS + 315360000000, UINT64_MAX, (uint64_t)INT64_MAX + 1, 0};
    for (size_t i = 0; i < sizeof(accepted) / sizeof(*accepted); i++) {
        struct world *world = restart(i == 1 ? -5 : WALL_MS, accepted[i], true);
        world_wait(world, TOTAL_MS - 1);
        assert_int_equal(seen_count(world, PERSIST_END), 0);
        world_wait(world, 1);
        assert_int_equal(seen_count(world, PERSIST_END), 2);
        world_close(world);
    }
}

static void a_wall_clock_that_went_on_years_takes_no_more_than_the_whole_time(void **state)
{
    (void)state;
    struct world *world = restart(WALL_MS + ten_years_ms, WALL_MS, true);
    world_wait(world, 0);
    assert_int_equal(seen_count(world, PERSIST_END), 2);
    world_close(world);
}

static void while_the_broker_runs_the_wall_clock_does_not_count(void **state)
{
    (void)state;
    struct world *world = open_with_total(TOTAL_MS);
    world_submit(world, "g", 1);
    const int64_t walls[] = {WALL_MS + ten_years_ms, 0, -1, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof(walls) / sizeof(*walls); i++) {
        core_tick(world->core, world->now_ms += 1000, walls[i]);
        world_settle(world);
        assert_int_equal(seen_count(world, PERSIST_END), 0);
    }
    world_wait(world, TOTAL_MS - 5000);
    expect_expired(world, 1, "queued");
    world_close(world);
}

static void a_clock_that_steps_back_neither_ends_nor_prolongs(void **state)
{
    (void)state;
    struct world *world = open_with_total(TOTAL_MS);
    world_submit(world, "g", 1);
    world_wait(world, TOTAL_MS - 1000);
    core_tick(world->core, 5, WALL_MS); /* it says what it should not */
    world_settle(world);
    assert_int_equal(seen_count(world, PERSIST_END), 0);
    world_wait(world, 1000);
    expect_expired(world, 1, "queued for 3600 s");
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_queued_ends_when_its_total_time_is_over),
        cmocka_unit_test(what_is_worked_on_ends_too_and_its_worker_is_told),
        cmocka_unit_test(what_waits_to_be_tried_again_ends_too_and_tells_its_history),
        cmocka_unit_test(what_waits_for_an_engine_ends_too),
        cmocka_unit_test(what_is_to_run_alone_ends_too),
        cmocka_unit_test(what_waits_for_its_evaluation_ends_without_a_reward),
        cmocka_unit_test(a_task_that_names_no_total_time_has_seven_days),
        cmocka_unit_test(many_end_in_slices),
        cmocka_unit_test(the_total_time_goes_on_over_a_restart),
        cmocka_unit_test(what_was_over_before_the_restart_ends_at_its_first_tick),
        cmocka_unit_test(a_wall_clock_that_went_back_years_gives_no_more_than_the_whole_time),
        cmocka_unit_test(a_wall_clock_that_went_on_years_takes_no_more_than_the_whole_time),
        cmocka_unit_test(while_the_broker_runs_the_wall_clock_does_not_count),
        cmocka_unit_test(a_clock_that_steps_back_neither_ends_nor_prolongs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
