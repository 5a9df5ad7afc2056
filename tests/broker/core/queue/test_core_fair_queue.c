/* Whose turn it is: between clients, between the streams of one, and within a stream. */
#include "tests/broker/core/core_world.h"

static void submit_as(struct world *world, const char *client, const char *group, const char *stream, uint64_t samples)
{
    world->name = client;
    world_submit_task(world, group, stream, samples, "{}");
    expect_answer(world, MSG_group_accepted);
}

/* The groups of the init jobs handed out just now, in order, such as "a b c". */
static const char *handed_groups(const struct world *world)
{
    static char text[1024];
    size_t len = 0;
    for (size_t i = 0; i < world->seen_count; i++)
        if (world->seen[i].kind == LANE_JOB)
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", len ? " " : "", world->seen[i].group);
    text[len] = '\0';
    return text;
}

static void end_init(struct world *world, const char *worker, const char *group)
{
    char job[160];
    snprintf(job, sizeof(job), "init:%s", group);
    world_result(world, worker, job, token_of(world, job), "task");
}

static void a_late_client_gets_its_share_of_the_next_slots(void **state)
{
    (void)state;
    struct world *world = world_open();
    submit_as(world, "alice", "a1", "hers", 1);
    submit_as(world, "alice", "a2", "hers", 1);
    submit_as(world, "alice", "a3", "hers", 1);
    submit_as(world, "alice", "a4", "hers", 1);
    submit_as(world, "bob", "b1", "his", 1);
    submit_as(world, "bob", "b2", "his", 1);
    world_beat(world, "i1", "init", 4, NULL);
    assert_string_equal(handed_groups(world), "a1 b1 a2 b2");
    world_close(world);
}

static void the_slots_that_free_go_to_the_client_with_the_fewest(void **state)
{
    (void)state;
    struct world *world = world_open();
    submit_as(world, "alice", "a1", "hers", 1);
    submit_as(world, "alice", "a2", "hers", 1);
    submit_as(world, "alice", "a3", "hers", 1);
    submit_as(world, "alice", "a4", "hers", 1);
    world_beat(world, "i1", "init", 3, NULL);
    assert_string_equal(handed_groups(world), "a1 a2 a3");
    submit_as(world, "bob", "b1", "his", 1);
    submit_as(world, "bob", "b2", "his", 1);
    submit_as(world, "bob", "b3", "his", 1);
    end_init(world, "i1", "a1");
    assert_string_equal(handed_groups(world), "b1"); /* alice has 2, bob 0 */
    end_init(world, "i1", "a2");
    assert_string_equal(handed_groups(world), "a4"); /* each has 1; alice's turn is longer ago */
    end_init(world, "i1", "b1");
    assert_string_equal(handed_groups(world), "b2");
    world_close(world);
}

static void within_a_client_its_streams_share_alike(void **state)
{
    (void)state;
    struct world *world = world_open();
    submit_as(world, "alice", "t1", "train", 1);
    submit_as(world, "alice", "t2", "train", 1);
    submit_as(world, "alice", "t3", "train", 1);
    submit_as(world, "alice", "t4", "train", 1);
    submit_as(world, "alice", "e1", "test", 1);
    submit_as(world, "alice", "e2", "test", 1);
    submit_as(world, "bob", "b1", "his", 1);
    submit_as(world, "bob", "b2", "his", 1);
    submit_as(world, "bob", "b3", "his", 1);
    submit_as(world, "bob", "b4", "his", 1);
    world_beat(world, "i1", "init", 8, NULL);
    assert_string_equal(handed_groups(world), "t1 b1 e1 b2 t2 b3 e2 b4");
    world_close(world);
}

static void with_one_slot_clients_take_turns(void **state)
{
    (void)state;
    struct world *world = world_open();
    submit_as(world, "alice", "a1", "hers", 1);
    submit_as(world, "alice", "a2", "hers", 1);
    submit_as(world, "alice", "a3", "hers", 1);
    submit_as(world, "bob", "b1", "his", 1);
    submit_as(world, "bob", "b2", "his", 1);
    submit_as(world, "carol", "c1", "hers-too", 1);
    static const char *const order[] = {"a1", "b1", "c1", "a2", "b2", "a3"};
    world_beat(world, "i1", "init", 1, NULL);
    for (unsigned i = 0; i < 6; i++) {
        assert_string_equal(handed_groups(world), order[i]);
        end_init(world, "i1", order[i]);
    }
    world_close(world);
}

static void who_comes_anew_waits_one_round_and_not_longer(void **state)
{
    (void)state;
    struct world *world = world_open();
    submit_as(world, "alice", "a1", "hers", 1);
    submit_as(world, "alice", "a2", "hers", 1);
    submit_as(world, "alice", "a3", "hers", 1);
    world_beat(world, "i1", "init", 1, NULL);
    submit_as(world, "bob", "b1", "his", 1);
    end_init(world, "i1", "a1");
    assert_string_equal(handed_groups(world), "a2"); /* bob came after alice's last turn */
    end_init(world, "i1", "a2");
    assert_string_equal(handed_groups(world), "b1");
    world_close(world);
}

static void within_a_stream_higher_priorities_come_first_then_who_came_first(void **state)
{
    (void)state;
    struct world *world = world_open();
    static const uint64_t priorities[] = {0, 10, 9, 1, 9, 5, 0};
    static const char *const groups[] = {"usual", "lowest", "top", "low", "top-2", "five", "usual-2"};
    for (unsigned i = 0; i < 7; i++) {
        world->priority = priorities[i];
        submit_as(world, NULL, groups[i], "train", 1);
        assert_int_equal(expect(world, PERSIST_GROUP)->priority, priorities[i] ? priorities[i] % 10 : 5);
    }
    world_beat(world, "i1", "init", 7, NULL);
    assert_string_equal(handed_groups(world), "top top-2 usual five usual-2 low lowest");
    world_close(world);
}

static void a_priority_counts_in_every_stage_of_its_group(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_beat(world, "i1", "init", 8, NULL);
    submit_as(world, NULL, "usual", "train", 1);
    world->priority = 9;
    submit_as(world, NULL, "top", "train", 1);
    world_result(world, "i1", "init:usual", token_of(world, "init:usual"), "ok");
    world_result(world, "i1", "init:top", token_of(world, "init:top"), "ok");
    world_beat(world, "r1", "run", 2, NULL);
    assert_string_equal(handed_groups(world), "top usual");
    world_result(world, "r1", "run:usual/0", token_of(world, "run:usual/0"), "ok");
    world_result(world, "r1", "run:top/0", token_of(world, "run:top/0"), "ok");
    world_beat(world, "e1", "eval", 2, NULL);
    assert_string_equal(handed_groups(world), "top usual");
    world_close(world);
}

static void a_priority_is_kept_over_a_restart(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.adopt_grace_ms = 100;
    world_start(world);
    static const char *const groups[] = {"usual", "low", "top"};
    static const uint64_t priorities[] = {5, 1, 9};
    for (unsigned i = 0; i < 3; i++) {
        struct core_group_row row = {.group = TEXT(groups[i]),
                                     .stream = TEXT("train"),
                                     .samples = 1,
                                     .task = world->task,
                                     .priority = priorities[i]};
        char name[32];
        snprintf(name, sizeof(name), "%s/0", groups[i]);
        struct core_rollout_row rollout = {.rollout = TEXT(name), .group = TEXT(groups[i])};
        assert_true(core_restore_group(world->core, &row));
        assert_true(core_restore_rollout(world->core, &rollout));
    }
    world_beat(world, "i1", "init", 3, NULL);
    world_wait(world, 100);
    assert_string_equal(handed_groups(world), "top usual low");
    world_close(world);
}

static void work_of_a_lost_worker_is_first_of_its_priority_and_not_of_all(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_beat(world, "i1", "init", 2, NULL);
    submit_as(world, NULL, "old-1", "train", 1);
    submit_as(world, NULL, "old-2", "train", 1);
    submit_as(world, NULL, "new", "train", 1);
    world->priority = 9;
    submit_as(world, NULL, "top", "train", 1);
    world_break_lane(world, "i1");
    world_beat(world, "i2", "init", 4, NULL);
    assert_string_equal(handed_groups(world), "top old-1 old-2 new");
    world_close(world);
}

/* What runs alone, or was found running after a restart, counts like everything else leased. */
static void every_lease_counts_however_it_came_about(void **state)
{
    (void)state;
    struct world *world = world_open();
    submit_as(world, "alice", "a1", "hers", 1);
    submit_as(world, "alice", "a2", "hers", 1);
    world_beat(world, "i1", "init", 1, NULL);
    uint64_t token = expect_job(world, "i1", "init:a1");
    world_break_lane(world, "i1");
    world_beat(world, "i1", "init", 2, "init:a1", token, NULL); /* adopted */
    assert_string_equal(handed_groups(world), "a2");
    submit_as(world, "alice", "a3", "hers", 1);
    submit_as(world, "bob", "b1", "his", 1);
    submit_as(world, "bob", "b2", "his", 1);
    submit_as(world, "bob", "b3", "his", 1);
    world_beat(world, "i2", "init", 3, NULL);
    assert_string_equal(handed_groups(world), "b1 b2 a3"); /* alice had 2 already */
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_late_client_gets_its_share_of_the_next_slots),
        cmocka_unit_test(the_slots_that_free_go_to_the_client_with_the_fewest),
        cmocka_unit_test(within_a_client_its_streams_share_alike),
        cmocka_unit_test(with_one_slot_clients_take_turns),
        cmocka_unit_test(who_comes_anew_waits_one_round_and_not_longer),
        cmocka_unit_test(within_a_stream_higher_priorities_come_first_then_who_came_first),
        cmocka_unit_test(a_priority_counts_in_every_stage_of_its_group),
        cmocka_unit_test(a_priority_is_kept_over_a_restart),
        cmocka_unit_test(work_of_a_lost_worker_is_first_of_its_priority_and_not_of_all),
        cmocka_unit_test(every_lease_counts_however_it_came_about),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
