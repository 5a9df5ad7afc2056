/* Cancels that overtake their submits. */
#include "tests/broker/core/core_world.h"

static const char words[] = "cancelled before it was submitted";

/* Everything of `group` that was submitted just now ended cancelled. */
static void expect_dead(struct world *world, const char *group, size_t samples)
{
    assert_string_equal(expect(world, PERSIST_GROUP)->group, group);
    assert_int_equal(expect_answer(world, MSG_group_accepted)->samples, samples);
    assert_int_equal(seen_count(world, PERSIST_END), samples);
    for (size_t i = 0; i < samples; i++) {
        assert_int_equal(seen_nth(world, PERSIST_END, i)->end.outcome, OUTCOME_CANCELLED);
        assert_string_equal(seen_nth(world, PERSIST_END, i)->end_detail, words);
    }
}

static void cancel_unknown(struct world *world, const char *rollout, const char *group)
{
    world_cancel(world, rollout, group, NULL);
    assert_int_equal(expect_answer(world, MSG_done)->count, 0);
}

static void a_group_cancelled_before_its_submit_ends_at_once(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_beat(world, "i1", "init", 4, NULL);
    cancel_unknown(world, NULL, "g");
    const struct seen *early_cancel = expect(world, PERSIST_EARLY_CANCEL);
    assert_string_equal(early_cancel->job, "g");
    assert_true(early_cancel->present);
    assert_int_equal(early_cancel->end.clock_ms, WALL_MS);
    world_submit(world, "g", 3);
    expect_dead(world, "g", 3);
    assert_int_equal(seen_count(world, LANE_JOB), 0);
    assert_string_equal(expect(world, PERSIST_EARLY_CANCEL)->job, "g");
    assert_false(expect(world, PERSIST_EARLY_CANCEL)->present);
    world_submit(world, "g", 3); /* its answer was lost: the same again */
    assert_true(expect_answer(world, MSG_group_accepted)->known);
    assert_int_equal(seen_count(world, PERSIST_END), 0);
    world_close(world);
}

static void one_rollout_cancelled_before_its_submit_ends_and_the_others_go_on(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_beat(world, "i1", "init", 4, NULL);
    cancel_unknown(world, "g/1", NULL);
    cancel_unknown(world, "g/1", NULL); /* once more is nothing else */
    world_submit(world, "g", 3);
    assert_string_equal(expect_end(world, "g/1", OUTCOME_CANCELLED)->end_detail, words);
    world_result(world, "i1", "init:g", expect_job(world, "i1", "init:g"), "ok");
    world_beat(world, "r1", "run", 4, NULL);
    expect_job(world, "r1", "run:g/0");
    expect_job(world, "r1", "run:g/2");
    assert_int_equal(seen_count(world, LANE_JOB), 2);
    world_close(world);
}

static void a_cancel_of_a_sample_the_group_does_not_have_harms_nothing(void **state)
{
    (void)state;
    struct world *world = world_open();
    cancel_unknown(world, "g/3", NULL);
    cancel_unknown(world, "g/1023", NULL);
    world_submit(world, "g", 3);
    assert_int_equal(seen_count(world, PERSIST_END), 0);
    world_cancel(world, "g/3", NULL, NULL); /* now it is known that there is none */
    expect_refused(world, REFUSAL_UNKNOWN_ROLLOUT);
    world_close(world);
}

static void what_has_ended_is_not_cancelled_again_nor_remembered(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_submit(world, "g", 1);
    world_cancel(world, "g/0", NULL, NULL);
    assert_int_equal(expect_answer(world, MSG_done)->count, 1);
    cancel_unknown(world, "g/0", NULL);
    assert_null(seen_nth(world, PERSIST_EARLY_CANCEL, 0));
    world_ack(world, "train", 1); /* forgotten, but for its name */
    cancel_unknown(world, NULL, "g");
    assert_null(seen_nth(world, PERSIST_EARLY_CANCEL, 0));
    world_close(world);
}

static void a_cancel_ahead_is_of_its_client_alone(void **state)
{
    (void)state;
    struct world *world = world_open();
    world->name = "mallory";
    cancel_unknown(world, NULL, "g");
    assert_string_equal(expect(world, PERSIST_EARLY_CANCEL)->client, "mallory");
    world->name = "alice";
    world_submit(world, "g", 2);
    assert_int_equal(seen_count(world, PERSIST_END), 0);
    world->name = "mallory";
    world_cancel(world, NULL, "g", NULL);
    expect_refused(world, REFUSAL_NOT_ALLOWED);
    world_cancel(world, "g/0", NULL, NULL);
    expect_refused(world, REFUSAL_NOT_ALLOWED);
    world_cancel(world, NULL, NULL, "train");
    expect_refused(world, REFUSAL_NOT_ALLOWED);
    world_close(world);
}

/* The owner's cancel of its own stream's, and the admin's of what it submits itself. */
static void an_admins_submit_meets_its_own_cancel_and_the_owners(void **state)
{
    (void)state;
    static const char *const cancellers[] = {"alice", "ops"};
    for (unsigned i = 0; i < 2; i++) {
        struct world *world = world_open();
        world->name = "alice";
        world_submit(world, "first", 1); /* from now on the stream is alice's */
        world->name = cancellers[i];
        world->is_admin = i;
        cancel_unknown(world, NULL, "g");
        world->name = "ops";
        world->is_admin = true;
        world_submit(world, "g", 2);
        expect_dead(world, "g", 2);
        assert_string_equal(expect(world, PERSIST_EARLY_CANCEL)->client, cancellers[i]);
        world_close(world);
    }
}

static void a_cancel_ahead_is_forgotten_after_its_time(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.early_cancel_ms = 60000;
    world_start(world);
    cancel_unknown(world, NULL, "early");
    world_wait(world, 30000);
    cancel_unknown(world, NULL, "late");
    world_wait(world, 29999);
    assert_null(seen_nth(world, PERSIST_EARLY_CANCEL, 0));
    world_wait(world, 1);
    assert_string_equal(expect(world, PERSIST_EARLY_CANCEL)->job, "early");
    assert_false(expect(world, PERSIST_EARLY_CANCEL)->present);
    world_submit(world, "early", 1);
    assert_int_equal(seen_count(world, PERSIST_END), 0);
    world_submit(world, "late", 1);
    expect_dead(world, "late", 1);
    world_close(world);
}

static void where_nothing_is_to_be_remembered_nothing_is(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.early_cancel_ms = 0;
    world_start(world);
    cancel_unknown(world, NULL, "g");
    assert_null(seen_nth(world, PERSIST_EARLY_CANCEL, 0));
    world_submit(world, "g", 1);
    assert_int_equal(seen_count(world, PERSIST_END), 0);
    world_close(world);
}

static void a_cancel_ahead_outlives_the_broker(void **state)
{
    (void)state;
    struct world *world = world_create();
    world_start(world);
    core_restore_clock(world->core, WALL_MS);
    assert_true(core_restore_early_cancel(world->core, TEXT("g"), TEXT(""), WALL_MS - 3599000));
    assert_true(core_restore_early_cancel(world->core, TEXT("h/1"), TEXT(""), UINT64_MAX));
    assert_true(core_restore_early_cancel(world->core, TEXT("old"), TEXT(""), WALL_MS - 3600000));
    assert_true(core_restore_early_cancel(world->core, TEXT(""), TEXT(""), WALL_MS));
    assert_int_equal(core_effects(world->core).count, 1);
    world_settle(world);
    world_wait(world, 0);
    assert_string_equal(expect(world, PERSIST_EARLY_CANCEL)->job, "old");
    assert_int_equal(seen_count(world, PERSIST_EARLY_CANCEL), 1);
    world_submit(world, "g", 2);
    expect_dead(world, "g", 2);
    world_submit(world, "h", 2);
    expect_end(world, "h/1", OUTCOME_CANCELLED);
    world_close(world);
}

enum { EARLY_CANCELS_MAX = 100000 };

/* So many groups' cancels ahead, named from `first` on; returns the early cancels that went meanwhile. */
static uint64_t cancel_crowd(struct world *world, const char *client, unsigned first, unsigned count)
{
    struct caller caller = {TEXT("t"), TEXT(client), true};
    uint64_t dropped = 0;
    for (unsigned i = first; i < first + count; i++) {
        char group[32];
        snprintf(group, sizeof(group), "%s%u", client, i);
        struct msg_rollout_cancel in = {.tag = 1, .group = TEXT(group), .has_group = true};
        core_handle(world->core, world->now_ms++, WALL_MS, &caller, MSG_rollout_cancel, &in, NULL, 0);
        struct effects effects = core_effects(world->core);
        for (size_t k = 0; k < effects.count; k++)
            dropped += effects.items[k].kind == PERSIST_EARLY_CANCEL && !effects.items[k].present;
        core_effects_clear(world->core);
    }
    assert_null(core_check(world->core));
    return dropped;
}

static void submit_as(struct world *world, const char *client, const char *group)
{
    world->name = client;
    world_submit_task(world, group, client, 1, "{}");
}

static void of_too_many_the_oldest_are_forgotten(void **state)
{
    (void)state;
    struct world *world = world_open();
    assert_int_equal(cancel_crowd(world, "g", 0, EARLY_CANCELS_MAX), 0);
    assert_int_equal(cancel_crowd(world, "g", 3, 1), 0); /* once more: the newest now */
    assert_int_equal(cancel_crowd(world, "g", EARLY_CANCELS_MAX, 3), 3);
    submit_as(world, "g", "g2");
    assert_int_equal(seen_count(world, PERSIST_END), 0);
    submit_as(world, "g", "g3");
    expect_dead(world, "g3", 1);
    submit_as(world, "g", "g4");
    expect_dead(world, "g4", 1);
    world_close(world);
}

static void of_too_many_those_of_who_has_the_most_are_forgotten(void **state)
{
    (void)state;
    struct world *world = world_open();
    assert_int_equal(cancel_crowd(world, "alice", 0, 2), 0);
    assert_int_equal(cancel_crowd(world, "mallory", 0, EARLY_CANCELS_MAX + 5), 7);
    assert_int_equal(cancel_crowd(world, "bob", 0, 3), 3); /* there is room for others: mallory's */
    for (unsigned i = 0; i < 3; i++) {
        char group[32];
        snprintf(group, sizeof(group), "bob%u", i);
        submit_as(world, "bob", group);
        expect_dead(world, group, 1);
    }
    submit_as(world, "alice", "alice0");
    expect_dead(world, "alice0", 1);
    submit_as(world, "mallory", "mallory9");
    assert_int_equal(seen_count(world, PERSIST_END), 0);
    submit_as(world, "mallory", "mallory10");
    expect_dead(world, "mallory10", 1);
    world_close(world);
}

static void ids_of_any_length_that_fit_the_wire_are_remembered(void **state)
{
    (void)state;
    struct world *world = world_open();
    char group[97], rollout[128];
    memset(group, 'x', 96);
    group[96] = '\0';
    snprintf(rollout, sizeof(rollout), "%s/1", group);
    cancel_unknown(world, rollout, NULL);
    world_submit(world, group, 2);
    expect_end(world, rollout, OUTCOME_CANCELLED);
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_cancelled_before_its_submit_ends_at_once),
        cmocka_unit_test(one_rollout_cancelled_before_its_submit_ends_and_the_others_go_on),
        cmocka_unit_test(a_cancel_of_a_sample_the_group_does_not_have_harms_nothing),
        cmocka_unit_test(what_has_ended_is_not_cancelled_again_nor_remembered),
        cmocka_unit_test(a_cancel_ahead_is_of_its_client_alone),
        cmocka_unit_test(an_admins_submit_meets_its_own_cancel_and_the_owners),
        cmocka_unit_test(a_cancel_ahead_is_forgotten_after_its_time),
        cmocka_unit_test(where_nothing_is_to_be_remembered_nothing_is),
        cmocka_unit_test(a_cancel_ahead_outlives_the_broker),
        cmocka_unit_test(of_too_many_the_oldest_are_forgotten),
        cmocka_unit_test(of_too_many_those_of_who_has_the_most_are_forgotten),
        cmocka_unit_test(ids_of_any_length_that_fit_the_wire_are_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
