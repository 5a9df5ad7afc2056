/* What a stream keeps of what nobody acknowledges. */
#include "tests/broker/core/core_world.h"

/* Ends n rollouts of a stream. */
static void end_some(struct world *world, const char *group, uint64_t n)
{
    world_submit(world, group, n);
    world_cancel(world, NULL, group, NULL);
    assert_int_equal(seen_count(world, PERSIST_END), n);
}

static const struct seen *fetch(struct world *world, uint64_t from)
{
    struct msg_stream_fetch in = {.tag = 8, .stream = TEXT("train"), .from = from};
    world_say(world, "trainer", MSG_stream_fetch, &in);
    return &world->seen[0];
}

/* One head period; what was forgotten in it, up to a number, or 0. */
static uint64_t forgotten_after_a_period(struct world *world)
{
    world_wait(world, 1000);
    const struct seen *ack = seen_nth(world, PERSIST_ACK, 0);
    assert_true(seen_count(world, PERSIST_ACK) <= 1);
    return ack ? ack->seq : 0;
}

static void without_a_setting_all_is_kept_until_acknowledged(void **state)
{
    (void)state;
    struct world *world = world_open();
    end_some(world, "a", 300);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(forgotten_after_a_period(world), 0);
    assert_int_equal(fetch(world, 1)->first, 1);
    world_close(world);
}

static void the_oldest_beyond_the_count_are_forgotten(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.keep_count = 100;
    world_start(world);
    end_some(world, "a", 150);
    assert_int_equal(forgotten_after_a_period(world), 0); /* none before it was there a period */
    assert_int_equal(forgotten_after_a_period(world), 50);
    assert_string_equal(expect(world, PERSIST_ACK)->stream, "train");
    assert_int_equal(forgotten_after_a_period(world), 0);
    const struct seen *refused = fetch(world, 50);
    assert_string_equal(refused->reason, "forgotten");
    assert_non_null(strstr(refused->text, "forgotten by the broker's --keep-count, --keep-bytes or "
                                          "--keep-time"));
    assert_int_equal(fetch(world, 51)->first, 51);
    world_get(world, "a/0");
    assert_non_null(strstr(expect_refused(world, REFUSAL_FORGOTTEN)->text, "--keep-count"));
    world_close(world);
}

static void what_was_acknowledged_is_not_said_to_be_forgotten_by_retention(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.keep_count = 10;
    world_start(world);
    end_some(world, "a", 12);
    world_wait(world, 1000);
    assert_int_equal(forgotten_after_a_period(world), 2);
    world_ack(world, "train", 5);
    assert_int_equal(expect_answer(world, MSG_done)->count, 3);
    assert_non_null(strstr(fetch(world, 5)->text, "were acknowledged"));
    assert_non_null(strstr(fetch(world, 2)->text, "--keep-count"));
    world_close(world);
}

static void the_oldest_beyond_the_bytes_are_forgotten(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.keep_bytes = 10 * 1024;
    world_start(world);
    end_some(world, "a", 15); /* 1024 each without a record */
    world_wait(world, 1000);
    assert_int_equal(forgotten_after_a_period(world), 5);
    world_close(world);
}

static void what_is_too_old_is_forgotten(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.keep_time_ms = 60000;
    world_start(world);
    assert_true(core_restore_stream(world->core, TEXT("train"), TEXT(""), 4, 6));
    struct core_group_row group = {.group = TEXT("g"),
                                   .stream = TEXT("train"),
                                   .samples = 3,
                                   .task = world->task,
                                   .init_done = true,
                                   .priority = 5};
    assert_true(core_restore_group(world->core, &group));
    for (unsigned k = 0; k < 3; k++) { /* the newest number first */
        char name[16];
        snprintf(name, sizeof(name), "g/%u", k);
        struct core_rollout_row row = {.rollout = TEXT(name),
                                       .group = TEXT("g"),
                                       .sample = k,
                                       .ended = true,
                                       .stream = TEXT("train"),
                                       .seq = 6 - k,
                                       .ended_ms = WALL_MS - (k == 0 ? 1000 : 60001)};
        assert_true(core_restore_rollout(world->core, &row));
    }
    world_wait(world, 1000);
    assert_int_equal(forgotten_after_a_period(world), 5);
    assert_int_equal(fetch(world, 6)->first, 6);
    world_close(world);
}

/* Each head period is one second by the monotonic clock, whatever the wall clock says. */
static void no_step_of_the_wall_clock_makes_anything_too_old(void **state)
{
    (void)state;
    const int64_t walls[] = {WALL_MS + 315360000000, 0, WALL_MS - 86400000, INT64_MAX, INT64_MIN};
    struct world *world = world_create();
    world->settings.keep_time_ms = 60000;
    world_start(world);
    end_some(world, "a", 3);
    for (unsigned i = 0; i < 59; i++) {
        core_tick(world->core, world->now_ms += 1000, walls[i % (sizeof(walls) / sizeof(*walls))]);
        world_settle(world);
        assert_int_equal(seen_count(world, PERSIST_ACK), 0);
    }
    world_wait(world, 1000);
    assert_int_equal(forgotten_after_a_period(world), 3);
    world_close(world);
}

static void what_retention_forgets_makes_room_for_submits(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.results_max = 20;
    world->settings.keep_count = 5;
    world_start(world);
    end_some(world, "a", 20);
    world_submit(world, "b", 1);
    expect_refused(world, REFUSAL_QUEUE_FULL);
    world_wait(world, 1000);
    assert_int_equal(forgotten_after_a_period(world), 15);
    world_submit(world, "b", 1);
    expect_answer(world, MSG_group_accepted);
    world_close(world);
}

/* core_check weighs the ring again after each step. */
static void the_ring_grows_and_shrinks_and_loses_nothing(void **state)
{
    (void)state;
    struct world *world = world_open();
    for (unsigned i = 0; i < 12; i++) {
        char group[16];
        snprintf(group, sizeof(group), "g%u", i);
        end_some(world, group, 90);
        world_ack(world, "train", 70 * (i + 1));
        assert_int_equal(expect_answer(world, MSG_done)->count, 70);
    }
    world_ack(world, "train", 1060);
    end_some(world, "h", 3);
    world_ack(world, "train", 1083);
    assert_int_equal(expect_answer(world, MSG_done)->count, 23);
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_setting_all_is_kept_until_acknowledged),
        cmocka_unit_test(the_oldest_beyond_the_count_are_forgotten),
        cmocka_unit_test(what_was_acknowledged_is_not_said_to_be_forgotten_by_retention),
        cmocka_unit_test(the_oldest_beyond_the_bytes_are_forgotten),
        cmocka_unit_test(what_is_too_old_is_forgotten),
        cmocka_unit_test(no_step_of_the_wall_clock_makes_anything_too_old),
        cmocka_unit_test(what_retention_forgets_makes_room_for_submits),
        cmocka_unit_test(the_ring_grows_and_shrinks_and_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
