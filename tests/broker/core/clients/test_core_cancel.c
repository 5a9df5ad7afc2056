/* rollout.cancel: of one, of a group, of a stream. */
#include "tests/broker/core/core_world.h"

static void exactly_one_thing_is_cancelled(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_submit(world, "g", 1);
    world_cancel(world, NULL, NULL, NULL);
    expect_refused(world, REFUSAL_AMBIGUOUS);
    world_cancel(world, "g/0", "g", NULL);
    expect_refused(world, REFUSAL_AMBIGUOUS);
    world_cancel(world, "x", NULL, NULL); /* these could never be submitted */
    expect_refused(world, REFUSAL_UNKNOWN_ROLLOUT);
    world_cancel(world, "x/07", NULL, NULL);
    expect_refused(world, REFUSAL_UNKNOWN_ROLLOUT);
    world_cancel(world, NULL, "x y", NULL);
    expect_refused(world, REFUSAL_UNKNOWN_GROUP);
    world_cancel(world, NULL, NULL, "x");
    expect_refused(world, REFUSAL_UNKNOWN_STREAM);
    world_close(world);
}

static void a_cancelled_rollout_ends_and_its_worker_is_told(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_beat(world, "r1", "run", 2, NULL);
    world_reach_run(world, "g", 3);
    world_cancel(world, "g/1", NULL, NULL);
    const struct seen *end = expect_end(world, "g/1", OUTCOME_CANCELLED);
    assert_false(end->end.trainable || end->end.has_reward);
    assert_true(was_told(world, "r1", MSG_job_cancel, "run:g/1"));
    assert_int_equal(expect_answer(world, MSG_done)->count, 1);
    expect_job(world, "r1", "run:g/2"); /* its slot is free */
    world_cancel(world, "g/1", NULL, NULL);
    assert_int_equal(expect_answer(world, MSG_done)->count, 0);
    assert_int_equal(seen_count(world, PERSIST_END), 0);
    world_result(world, "r1", "run:g/1", token_of(world, "run:g/1"), "ok"); /* too late */
    assert_int_equal(seen_count(world, PERSIST_RUN), 0);
    assert_true(was_told(world, "r1", MSG_result_ack, "run:g/1"));
    world_close(world);
}

static void a_rollout_can_be_cancelled_in_every_place(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_submit(world, "g", 4);
    world_cancel(world, "g/0", NULL, NULL); /* its init is queued */
    expect_end(world, "g/0", OUTCOME_CANCELLED);
    world_beat(world, "i1", "init", 1, NULL);
    world_cancel(world, "g/1", NULL, NULL); /* its init is leased */
    assert_false(was_told(world, "i1", MSG_job_cancel, NULL));
    world_result(world, "i1", "init:g", token_of(world, "init:g"), "ok");
    world_beat(world, "r1", "run", 1, NULL);
    assert_int_equal(seen_count(world, LANE_JOB), 1);
    world_result(world, "r1", "run:g/2", token_of(world, "run:g/2"), "infra");
    world_cancel(world, "g/2", NULL, NULL); /* delayed */
    expect_end(world, "g/2", OUTCOME_CANCELLED);
    world_result(world, "r1", "run:g/3", token_of(world, "run:g/3"), "ok");
    world_cancel(world, "g/3", NULL, NULL); /* waits for its eval */
    expect_end(world, "g/3", OUTCOME_CANCELLED);
    world_wait(world, 4000);
    assert_int_equal(seen_count(world, LANE_JOB), 0);
    world_close(world);
}

static void a_group_cancelled_during_init_takes_its_init_along(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_beat(world, "i1", "init", 1, NULL);
    world_submit(world, "g", 2);
    world_cancel(world, "g/0", NULL, NULL);
    assert_false(was_told(world, "i1", MSG_job_cancel, NULL));
    world_cancel(world, "g/1", NULL, NULL);
    assert_true(was_told(world, "i1", MSG_job_cancel, "init:g"));
    world_result(world, "i1", "init:g", token_of(world, "init:g"), "ok");
    assert_int_equal(seen_count(world, PERSIST_INIT), 0);
    assert_true(was_told(world, "i1", MSG_result_ack, "init:g"));
    world_cancel(world, NULL, "g", NULL);
    assert_int_equal(expect_answer(world, MSG_done)->count, 0);
    world_close(world);
}

static void a_small_stream_is_cancelled_at_once(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_submit_task(world, "a", "train", 3, "{}");
    world_submit_task(world, "b", "train", 2, "{}");
    world_submit_task(world, "c", "test", 2, "{}");
    world_cancel(world, NULL, NULL, "train");
    assert_int_equal(seen_count(world, PERSIST_END), 5);
    assert_int_equal(expect_answer(world, MSG_done)->count, 5);
    world_cancel(world, NULL, NULL, "train");
    assert_int_equal(expect_answer(world, MSG_done)->count, 0);
    world_close(world);
}

static void a_large_stream_is_cancelled_in_slices_and_done_is_said_last(void **state)
{
    (void)state;
    struct world *world = world_create();
    world_start(world);
    core_effects_clear(world->core);
    char group[32];
    for (unsigned i = 0; i < 9; i++) {
        snprintf(group, sizeof(group), "g%u", i);
        world_submit(world, group, 1000);
    }
    world_cancel(world, NULL, NULL, "train");
    assert_int_equal(seen_count(world, PERSIST_END), 5000);
    assert_int_equal(seen_count(world, SEND_CLIENT), 0);
    world_submit(world, "later", 2); /* was not meant */
    world_wait(world, 0);
    assert_int_equal(seen_count(world, PERSIST_END), 4000);
    assert_int_equal(expect_answer(world, MSG_done)->count, 9000);
    assert_string_equal(expect(world, SEND_CLIENT)->client, "trainer");
    world_get(world, "later/0");
    assert_string_equal(expect_answer(world, MSG_rollout_state)->state, "queued");
    world_close(world);
}

/* A client's messages of one cycle: what they ask for at once stays bounded. */
static void many_streams_cancelled_in_one_cycle_end_over_several(void **state)
{
    enum { STREAMS = 24, EACH = 1024, ENDS_MAX = 16384 };
    (void)state;
    struct world *world = world_create();
    world_start(world);
    core_effects_clear(world->core);
    char name[32];
    for (unsigned i = 0; i < STREAMS; i++) {
        snprintf(name, sizeof(name), "s%u", i);
        world_submit_task(world, name, name, EACH, "{}");
    }
    for (unsigned i = 0; i < STREAMS; i++) {
        struct caller caller = {TEXT("trainer"), TEXT(NULL), true};
        snprintf(name, sizeof(name), "s%u", i);
        struct msg_rollout_cancel in = {.tag = i, .stream = TEXT(name), .has_stream = true};
        core_handle(world->core, world->now_ms, WALL_MS, &caller, MSG_rollout_cancel, &in, NULL, 0);
    }
    assert_in_range(core_effects(world->core).count, EACH, 2 * ENDS_MAX);
    core_effects_clear(world->core);
    uint64_t done = 0;
    for (unsigned cycle = 0; cycle < STREAMS; cycle++) {
        world_wait(world, 0);
        done += seen_count(world, PERSIST_END);
    }
    assert_in_range(done, 1, STREAMS * EACH - 1);
    world_get(world, "s23/1023"); /* the last of them */
    assert_int_equal(expect(world, SEND_TRAJECTORY)->seq, EACH);
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exactly_one_thing_is_cancelled),
        cmocka_unit_test(a_cancelled_rollout_ends_and_its_worker_is_told),
        cmocka_unit_test(a_rollout_can_be_cancelled_in_every_place),
        cmocka_unit_test(a_group_cancelled_during_init_takes_its_init_along),
        cmocka_unit_test(a_small_stream_is_cancelled_at_once),
        cmocka_unit_test(a_large_stream_is_cancelled_in_slices_and_done_is_said_last),
        cmocka_unit_test(many_streams_cancelled_in_one_cycle_end_over_several),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
