/* rollout.get, and who may say what. */
#include "tests/broker/core/core_world.h"

static void rollout_get_says_where_a_rollout_is(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_submit(world, "g", 2);
    world_get(world, "g/1");
    const struct seen *where = expect_answer(world, MSG_rollout_state);
    assert_string_equal(where->stage, "init");
    assert_string_equal(where->state, "queued");
    assert_int_equal(where->attempt, 0);
    world_beat(world, "i1", "init", 1, NULL);
    uint64_t token = expect_job(world, "i1", "init:g");
    world_get(world, "g/1");
    where = expect_answer(world, MSG_rollout_state);
    assert_string_equal(where->state, "leased");
    assert_string_equal(where->worker, "i1");
    assert_int_equal(where->attempt, 1);
    world_result(world, "i1", "init:g", token, "ok");
    world_get(world, "g/1");
    assert_string_equal(expect_answer(world, MSG_rollout_state)->stage, "run");
    static const char *const unknown[] = {"g/2", "h/0", "g", "g/", "g/01", "g/x", "g/-1", "g/99999999999"};
    for (size_t i = 0; i < sizeof(unknown) / sizeof(*unknown); i++) {
        world_get(world, unknown[i]);
        expect_refused(world, REFUSAL_UNKNOWN_ROLLOUT);
    }
    world_close(world);
}

static void rollout_get_sends_the_trajectory_of_one_that_ended(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_submit(world, "g", 2);
    world_cancel(world, "g/1", NULL, NULL);
    world_get(world, "g/1"); /* its group still lives */
    assert_int_equal(expect(world, SEND_TRAJECTORY)->seq, 1);
    assert_string_equal(expect(world, SEND_TRAJECTORY)->stream, "train");
    assert_string_equal(expect(world, SEND_TRAJECTORY)->client, "trainer");
    assert_int_equal(expect(world, SEND_TRAJECTORY)->tag, 10);
    world_cancel(world, "g/0", NULL, NULL);
    world_get(world, "g/0"); /* its group has ended */
    assert_int_equal(expect(world, SEND_TRAJECTORY)->seq, 2);
    world_ack(world, "train", 1);
    world_get(world, "g/1");
    expect_refused(world, REFUSAL_FORGOTTEN);
    world_get(world, "g/0");
    expect(world, SEND_TRAJECTORY);
    world_ack(world, "train", 2);
    world_get(world, "g/0");
    expect_refused(world, REFUSAL_FORGOTTEN);
    world_submit(world, "g", 2); /* and the group itself is still known */
    assert_true(expect_answer(world, MSG_group_accepted)->known);
    world_close(world);
}

static void rollout_get_says_of_a_past_group_that_it_is_past(void **state)
{
    (void)state;
    struct world *world = world_open();
    world->task.is_past = true;
    world_get(world, "g/1");
    assert_non_null(strstr(expect_refused(world, REFUSAL_FORGOTTEN)->text, "the trajectory of g/1 was acknowledged"));
    world_close(world);
}

static void each_side_may_say_only_what_is_its_own(void **state)
{
    (void)state;
    struct world *world = world_open();
    struct msg_worker_beat beat = {.worker = TEXT("w"), .stage = TEXT("run"), .slots = 1};
    world_say(world, "trainer", MSG_worker_beat, &beat);
    assert_int_equal(expect_refused(world, REFUSAL_UNKNOWN_MESSAGE)->tag, 0);
    struct msg_done done = {.tag = 99};
    world_say(world, "trainer", MSG_done, &done);
    assert_int_equal(expect_refused(world, REFUSAL_UNKNOWN_MESSAGE)->tag, 99);
    struct msg_status_get status = {.tag = 1};
    world_say(world, "", MSG_status_get, &status);
    assert_int_equal(world->seen_count, 0);
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rollout_get_says_where_a_rollout_is),
        cmocka_unit_test(rollout_get_sends_the_trajectory_of_one_that_ended),
        cmocka_unit_test(rollout_get_says_of_a_past_group_that_it_is_past),
        cmocka_unit_test(each_side_may_say_only_what_is_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
