/* Clocks that jump, and a broker that stood still: nobody is blamed for it. */
#include "tests/broker/core/core_world.h"

/* As after a SIGSTOP: the I/O side is that late, then reads what came meanwhile, then ticks. */
static void stand_still(struct world *world, int64_t ms)
{
    world->now_ms += ms;
    core_stalled(world->core, world->now_ms, ms);
}

static void a_broker_that_stood_still_loses_no_worker_for_it(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_run(world, "g", 2);
    world_beat(world, "r1", "run", 2, NULL);
    world_wait(world, 3000);
    stand_still(world, 60000);
    world_wait(world, 0);
    assert_false(seen_nth(world, LANE_CLOSE, 0));
    assert_int_equal(seen_count(world, LANE_JOB), 0);
    world_beat(world, "i1", "init", 8, NULL);
    world_beat(world, "r1", "run", 2, "run:g/0", token_of(world, "run:g/0"), "run:g/1", token_of(world, "run:g/1"),
               NULL);
    assert_false(was_told(world, "r1", MSG_job_cancel, NULL));
    world_wait(world, 4999);
    assert_false(seen_nth(world, LANE_CLOSE, 0));
    world_wait(world, 1); /* from then on it is silent itself */
    assert_string_equal(expect(world, LANE_CLOSE)->worker, "i1");
    world_close(world);
}

static void a_silence_from_before_is_not_forgiven(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_beat(world, "r1", "run", 2, NULL);
    world_wait(world, 3000);
    stand_still(world, 60000);
    world_wait(world, 1999);
    assert_false(seen_nth(world, LANE_CLOSE, 0));
    world_wait(world, 1);
    assert_string_equal(expect(world, LANE_CLOSE)->worker, "r1");
    world_close(world);
}

static void beats_sent_before_the_standstill_do_not_take_jobs_away(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_beat(world, "i1", "init", 2, NULL);
    world_submit(world, "g", 1);
    expect_job(world, "i1", "init:g");
    stand_still(world, 60000);
    world_beat(world, "i1", "init", 2, NULL); /* it had not received the job yet */
    assert_false(was_told(world, "i1", MSG_job_cancel, NULL));
    world_wait(world, 2001);
    world_beat(world, "i1", "init", 2, NULL);
    assert_true(was_told(world, "i1", MSG_job_cancel, "init:g"));
    world_close(world);
}

static void deadlines_of_jobs_move_and_the_total_time_does_not(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.beat_timeout_ms = 100000000;
    world->task.total_ms = 120000;
    world_start(world);
    world_reach_run(world, "g", 1);
    world_beat(world, "r1", "run", 1, NULL);
    stand_still(world, 60000);
    world_wait(world, 49999);
    assert_int_equal(seen_count(world, PERSIST_FAILURES), 0);
    world_wait(world, 1);
    assert_int_equal(expect(world, PERSIST_FAILURES)->failures.infras, 1);
    world_wait(world, 10000);
    assert_int_equal(expect(world, PERSIST_END)->end.outcome, OUTCOME_INFRA);
    world_close(world);
}

static void a_trainers_lease_gets_its_time_back(void **state)
{
    (void)state;
    struct world *world = world_open();
    world->lease_ms = 30000;
    world_submit(world, "g", 1);
    world_wait(world, 20000);
    stand_still(world, 3600000);
    world_wait(world, 9999);
    assert_int_equal(seen_count(world, PERSIST_END), 0);
    world_wait(world, 1);
    assert_int_equal(expect(world, PERSIST_END)->end.outcome, OUTCOME_CANCELLED);
    world_close(world);
}

static struct world *open_with_an_orphan(void)
{
    struct world *world = world_create();
    world_start(world);
    struct core_group_row group = {.group = TEXT("g"), .stream = TEXT("train"), .samples = 1, .task = world->task};
    struct core_rollout_row row = {.rollout = TEXT("g/0"), .group = TEXT("g")};
    assert_true(core_restore_group(world->core, &group));
    assert_true(core_restore_rollout(world->core, &row));
    return world;
}

static void expect_adoption_to_end_in(struct world *world, int64_t ms)
{
    world_beat(world, "i1", "init", 1, NULL);
    world_wait(world, ms - 1);
    assert_int_equal(seen_count(world, LANE_JOB), 0);
    world_wait(world, 1);
    expect_job(world, "i1", "init:g");
    world_close(world);
}

static void adoption_after_a_restart_waits_as_long_as_it_says(void **state)
{
    (void)state;
    struct world *world = open_with_an_orphan();
    world_beat(world, "i1", "init", 1, NULL);
    stand_still(world, 60000);
    expect_adoption_to_end_in(world, 3000);
}

static void adoption_waits_no_longer_for_a_standstill_before_it_began(void **state)
{
    (void)state;
    struct world *world = open_with_an_orphan();
    stand_still(world, 60000);
    expect_adoption_to_end_in(world, 3000);
}

static void a_monotonic_clock_that_steps_back_does_nothing(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_run(world, "g", 1);
    world_beat(world, "r1", "run", 1, NULL);
    for (int64_t now_ms = world->now_ms; now_ms > 0; now_ms -= 100000) {
        core_tick(world->core, now_ms, WALL_MS);
        core_stalled(world->core, now_ms, -100000);
        world_settle(world);
        assert_int_equal(seen_count(world, LANE_JOB) + seen_count(world, LANE_CLOSE), 0);
    }
    world_wait(world, 4999);
    assert_int_equal(seen_count(world, LANE_CLOSE), 0);
    world_wait(world, 1);
    assert_int_equal(seen_count(world, LANE_CLOSE), 2);
    world_close(world);
}

static void what_happens_before_now_happens_now(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_run(world, "g", 1);
    world_wait(world, 3000);
    world->now_ms -= 500000; /* the clock is wrong for a while */
    world_beat(world, "r1", "run", 1, NULL);
    world_result(world, "r1", "run:g/0", expect_job(world, "r1", "run:g/0"), "ok");
    world_beat(world, "e1", "eval", 1, NULL);
    world_reward(world, "e1", "eval:g/0", expect_job(world, "e1", "eval:g/0"), 1);
    assert_int_equal(expect_end(world, "g/0", OUTCOME_OK)->end.wait_ms, 3000);
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_broker_that_stood_still_loses_no_worker_for_it),
        cmocka_unit_test(a_silence_from_before_is_not_forgiven),
        cmocka_unit_test(beats_sent_before_the_standstill_do_not_take_jobs_away),
        cmocka_unit_test(deadlines_of_jobs_move_and_the_total_time_does_not),
        cmocka_unit_test(a_trainers_lease_gets_its_time_back),
        cmocka_unit_test(adoption_after_a_restart_waits_as_long_as_it_says),
        cmocka_unit_test(adoption_waits_no_longer_for_a_standstill_before_it_began),
        cmocka_unit_test(what_happens_before_now_happens_now),
        cmocka_unit_test(a_monotonic_clock_that_steps_back_does_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
