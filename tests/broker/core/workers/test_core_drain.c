/* worker.drain: one worker or a host takes nothing new, and is told. */
#include "tests/broker/core/core_world.h"

static void drain(struct world *world, const char *worker, const char *host)
{
    struct msg_worker_drain in = {.tag = 16,
                                  .worker = TEXT(worker),
                                  .has_worker = worker,
                                  .host = TEXT(host),
                                  .has_host = host,
                                  .grace_s = 30,
                                  .has_grace_s = true};
    world_say(world, "operator", MSG_worker_drain, &in);
}

static void a_drained_worker_is_told_and_given_nothing_more(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_beat(world, "i1", "init", 2, NULL);
    world_submit(world, "g", 1);
    expect_job(world, "i1", "init:g");
    drain(world, "i1", NULL);
    assert_int_equal(expect_answer(world, MSG_done)->count, 1);
    assert_true(was_told(world, "i1", MSG_lane_drain, NULL));
    assert_int_equal(expect(world, LANE_SEND)->count, 30);
    world_submit(world, "h", 1);
    assert_int_equal(seen_count(world, LANE_JOB), 0);
    world_result(world, "i1", "init:g", token_of(world, "init:g"), "ok"); /* it may end its own */
    assert_int_equal(seen_count(world, PERSIST_INIT), 1);
    assert_int_equal(seen_count(world, LANE_JOB), 0);
    world_close(world);
}

static void it_is_told_until_its_beats_say_that_it_drains(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_beat(world, "i1", "init", 2, NULL);
    drain(world, "i1", NULL);
    world_submit(world, "g", 1);
    world_beat(world, "i1", "init", 2, NULL); /* has not heard, and says that it is ready */
    assert_true(was_told(world, "i1", MSG_lane_drain, NULL));
    assert_int_equal(seen_count(world, LANE_JOB), 0);
    world_beat_with(world, "i1", "init", (struct beat){.slots = 2, .draining = true}, NULL);
    assert_false(was_told(world, "i1", MSG_lane_drain, NULL));
    world_beat(world, "i2", "init", 2, NULL);
    expect_job(world, "i2", "init:g");
    world_close(world);
}

static void a_host_drains_with_all_its_workers(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_beat(world, "i1", "init", 2, NULL);
    world_beat(world, "r1", "run", 2, NULL);
    drain(world, NULL, "node7");
    assert_int_equal(expect_answer(world, MSG_done)->count, 2);
    assert_true(was_told(world, "i1", MSG_lane_drain, NULL));
    assert_true(was_told(world, "r1", MSG_lane_drain, NULL));
    world_close(world);
}

static void an_unknown_worker_or_host_is_refused_by_name(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_beat(world, "i1", "init", 2, NULL);
    drain(world, "i2", NULL);
    assert_string_equal(expect_refused(world, REFUSAL_UNKNOWN_WORKER)->field, "worker");
    drain(world, NULL, "node8");
    assert_string_equal(expect_refused(world, REFUSAL_UNKNOWN_WORKER)->field, "host");
    drain(world, "i1", "node7");
    expect_refused(world, REFUSAL_AMBIGUOUS);
    drain(world, NULL, NULL);
    expect_refused(world, REFUSAL_AMBIGUOUS);
    world_submit(world, "g", 1);
    expect_job(world, "i1", "init:g"); /* nothing changed */
    world_close(world);
}

static void only_an_admin_drains(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_beat(world, "i1", "init", 2, NULL);
    world->name = "alice";
    drain(world, "i1", NULL);
    expect_refused(world, REFUSAL_NOT_ALLOWED);
    assert_int_equal(seen_count(world, LANE_SEND), 0);
    world_close(world);
}

static void a_hung_worker_that_comes_back_still_drains(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_beat_with(world, "i1", "init", (struct beat){.slots = 2, .progress = 5}, NULL);
    drain(world, "i1", NULL);
    for (unsigned i = 0; i < 8; i++) {
        world_wait(world, 1000);
        world_beat_with(world, "i1", "init", (struct beat){.slots = 2, .progress = 5}, NULL);
    }
    world_submit(world, "g", 1);
    world_beat_with(world, "i1", "init", (struct beat){.slots = 2, .progress = 6}, NULL);
    expect(world, LANE_OPEN);
    assert_true(was_told(world, "i1", MSG_lane_drain, NULL));
    assert_int_equal(seen_count(world, LANE_JOB), 0);
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_drained_worker_is_told_and_given_nothing_more),
        cmocka_unit_test(it_is_told_until_its_beats_say_that_it_drains),
        cmocka_unit_test(a_host_drains_with_all_its_workers),
        cmocka_unit_test(an_unknown_worker_or_host_is_refused_by_name),
        cmocka_unit_test(only_an_admin_drains),
        cmocka_unit_test(a_hung_worker_that_comes_back_still_drains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
