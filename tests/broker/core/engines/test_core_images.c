/* Circuit breakers of images: what waits for one, and how it ends. */
#include "tests/broker/core/core_breaker_world.h"

static void submit_image(struct world *world, const char *group, const char *image)
{
    world->task.image = TEXT(image);
    world_submit(world, group, 2);
}

static void image_fails(struct world *world, const char *group, const char *outcome)
{
    char job[64];
    snprintf(job, sizeof(job), "init:%s", group);
    world_blame(world, "i1", job, outcome, "image", "no such file");
}

/* Two groups of "bad" have failed as infra, which sets it aside; c, d and e wait for it. */
static struct world *open_bad_image(void)
{
    struct world *world = open_with(2);
    world_beat(world, "i1", "init", 16, NULL);
    submit_image(world, "a", "bad");
    submit_image(world, "b", "bad");
    image_fails(world, "a", "infra");
    assert_non_null(seen_nth(world, PERSIST_FAILURES, 0));
    image_fails(world, "b", "infra");
    assert_null(seen_nth(world, PERSIST_FAILURES, 0));
    world_cancel(world, NULL, "a", NULL);
    world_cancel(world, NULL, "b", NULL);
    for (unsigned i = 0; i < 3; i++) {
        submit_image(world, i == 0 ? "c" : i == 1 ? "d" : "e", "bad");
        assert_null(seen_nth(world, LANE_JOB, 0));
    }
    return world;
}

static void an_image_at_fault_in_several_groups_is_set_aside_and_no_other_is(void **state)
{
    (void)state;
    struct world *world = open_bad_image();
    json_int_t faults;
    assert_string_equal(state_in(world, "images", &faults), "failing");
    assert_int_equal(faults, 2);
    submit_image(world, "other", "good");
    expect_job(world, "i1", "init:other");
    assert_string_equal(state_of(world, "c/0"), "queued");
    world_close(world);
}

static void one_group_that_fails_again_and_again_is_one_fault_of_its_image(void **state)
{
    (void)state;
    struct world *world = open_with(2);
    world_beat(world, "i1", "init", 16, NULL);
    submit_image(world, "a", "bad");
    for (unsigned i = 0; i < 4; i++) {
        image_fails(world, "a", "infra");
        assert_int_equal(expect(world, PERSIST_FAILURES)->failures.infras, i + 1);
        world_wait(world, 30000);
    }
    submit_image(world, "b", "bad");
    expect_job(world, "i1", "init:b");
    image_fails(world, "b", "infra");
    assert_string_equal(state_in(world, "images", NULL), "failing");
    world_close(world);
}

static void a_probe_that_ends_well_lets_all_groups_of_an_image_go(void **state)
{
    (void)state;
    struct world *world = open_bad_image();
    world_wait(world, 2000);
    assert_int_equal(seen_count(world, LANE_JOB), 1);
    expect_job(world, "i1", "init:c");
    world_wait(world, 10000);
    assert_null(seen_nth(world, LANE_JOB, 0));
    world_result(world, "i1", "init:c", token_of(world, "init:c"), "ok");
    expect_job(world, "i1", "init:d");
    expect_job(world, "i1", "init:e");
    assert_string_equal(state_in(world, "images", NULL), "none");
    world_close(world);
}

static void a_probe_that_blames_the_image_ends_what_waits_for_it_and_says_why(void **state)
{
    (void)state;
    struct world *world = open_bad_image();
    world_wait(world, 2000);
    image_fails(world, "c", "task");
    assert_int_equal(seen_count(world, PERSIST_END), 2); /* its own */
    world_wait(world, 1);
    assert_int_equal(seen_count(world, PERSIST_END), 4);
    for (unsigned i = 0; i < 4; i++) {
        const struct seen *end = seen_nth(world, PERSIST_END, i);
        assert_int_equal(end->end.outcome, OUTCOME_TASK);
        assert_string_equal(end->end_detail, "the image bad was set aside after 3 faults in a row; "
                                             "the last: no such file");
    }
    submit_image(world, "later", "bad"); /* was not meant, and waits for the next probe */
    world_wait(world, 3998);
    assert_null(seen_nth(world, PERSIST_END, 0));
    world_wait(world, 1);
    expect_job(world, "i1", "init:later");
    world_close(world);
}

static void a_probe_that_fails_as_infra_waits_on_and_is_not_held_against_its_group(void **state)
{
    (void)state;
    struct world *world = open_bad_image();
    int64_t wait_ms = 2000;
    for (unsigned probe = 0; probe < 20; probe++) {
        world_wait(world, wait_ms);
        char job[160];
        snprintf(job, sizeof(job), "%s", expect(world, LANE_JOB)->job);
        assert_int_equal(job[5], 'c' + probe % 3);
        world_blame(world, "i1", job, "infra", "image", "mount: I/O error");
        assert_null(seen_nth(world, PERSIST_FAILURES, 0));
        wait_ms = 2 * wait_ms < 60000 ? 2 * wait_ms : 60000;
    }
    assert_null(seen_nth(world, PERSIST_END, 0));
    world_close(world);
}

static void many_groups_that_wait_for_a_bad_image_end_in_slices(void **state)
{
    (void)state;
    struct world *world = open_bad_image();
    for (unsigned i = 0; i < 10; i++) {
        char group[16];
        snprintf(group, sizeof(group), "w%u", i);
        world->task.image = TEXT("bad");
        world_submit(world, group, 1000);
    }
    world_wait(world, 2000);
    image_fails(world, "c", "task");
    size_t ended = 2;
    for (unsigned i = 0; i < 2; i++) {
        world_wait(world, 1);
        assert_in_range(seen_count(world, PERSIST_END), 1, 5096);
        ended += seen_count(world, PERSIST_END);
        assert_int_equal(world->due_ms == world->now_ms, i == 0);
        if (i == 0)
            submit_image(world, "later", "bad"); /* was not meant */
    }
    assert_int_equal(ended, 2 + 4 + 10000);
    assert_string_equal(state_of(world, "later/1"), "queued");
    world_close(world);
}

static void images_are_remembered_within_a_bound(void **state)
{
    (void)state;
    struct world *world = open_with(2);
    world_beat(world, "i1", "init", 16, NULL);
    for (unsigned i = 0; i < 4200; i++) {
        char group[16];
        snprintf(group, sizeof(group), "g%u", i % 900 + 1000 * (i / 900));
        world->handed_count = 0;
        submit_image(world, group, group);
        image_fails(world, group, "task"); /* core_check looks after each */
    }
    submit_image(world, "a", "newest"); /* the oldest made room for it */
    image_fails(world, "a", "task");
    submit_image(world, "b", "newest");
    image_fails(world, "b", "task");
    assert_string_equal(state_in(world, "images", NULL), "failing");
    world_close(world);
}

static void images_of_more_groups_than_fit_are_not_watched(void **state)
{
    (void)state;
    struct world *world = open_with(2);
    for (unsigned i = 0; i < 4096 + 10; i++) {
        char group[16];
        snprintf(group, sizeof(group), "g%u", i);
        struct msg_group_submit in = {
            .tag = 1, .group = TEXT(group), .stream = TEXT("train"), .samples = 1, .task = TEXT("{}")};
        world->task.image = TEXT(group);
        core_handle(world->core, world->now_ms, WALL_MS, &(struct caller){.route = TEXT("t"), .is_admin = true},
                    MSG_group_submit, &in, &world->task, 1);
        core_effects_clear(world->core);
    }
    assert_null(core_check(world->core));
    world_beat(world, "i1", "init", 4200, NULL);
    world_result(world, "i1", "init:g4100", expect_job(world, "i1", "init:g4100"), "ok");
    assert_int_equal(seen_count(world, PERSIST_INIT), 1);
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_image_at_fault_in_several_groups_is_set_aside_and_no_other_is),
        cmocka_unit_test(one_group_that_fails_again_and_again_is_one_fault_of_its_image),
        cmocka_unit_test(a_probe_that_ends_well_lets_all_groups_of_an_image_go),
        cmocka_unit_test(a_probe_that_blames_the_image_ends_what_waits_for_it_and_says_why),
        cmocka_unit_test(a_probe_that_fails_as_infra_waits_on_and_is_not_held_against_its_group),
        cmocka_unit_test(many_groups_that_wait_for_a_bad_image_end_in_slices),
        cmocka_unit_test(images_are_remembered_within_a_bound),
        cmocka_unit_test(images_of_more_groups_than_fit_are_not_watched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
