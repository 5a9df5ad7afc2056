/* Leases of clients: work stops that nobody waits for any more. */
#include "tests/broker/core/core_world.h"

enum { LEASE_MS = 600000 };

static void renew(struct world *world, const char *stream)
{
    struct msg_stream_renew in = {.tag = 15, .stream = TEXT(stream)};
    world_say(world, "trainer", MSG_stream_renew, &in);
}

/* A group of two under a lease on "train", and one without on "test". */
static struct world *open_leased(void)
{
    struct world *world = world_create();
    world->settings.beat_timeout_ms = 1000000000;
    world->settings.deadline_grace_ms = 86400000;
    world_start(world);
    world->lease_ms = LEASE_MS;
    world_submit_task(world, "g", "train", 2, "{}");
    assert_int_equal(expect(world, PERSIST_GROUP)->lease_ms, LEASE_MS);
    world->lease_ms = 0;
    world_submit_task(world, "free", "test", 2, "{}");
    assert_int_equal(expect(world, PERSIST_GROUP)->lease_ms, 0);
    return world;
}

static void expect_abandoned(struct world *world, size_t count)
{
    assert_int_equal(seen_count(world, PERSIST_END), count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(seen_nth(world, PERSIST_END, i)->end.outcome, OUTCOME_CANCELLED);
        assert_string_equal(seen_nth(world, PERSIST_END, i)->end_detail,
                            "its trainer was not heard from for 600 s (lease_ms)");
    }
}

static void work_of_a_trainer_that_is_gone_ends_and_no_other_does(void **state)
{
    (void)state;
    struct world *world = open_leased();
    world_wait(world, LEASE_MS - 1);
    assert_int_equal(seen_count(world, PERSIST_END), 0);
    assert_true(world->due_ms <= world->now_ms + 1);
    world_wait(world, 1);
    expect_abandoned(world, 2);
    world_wait(world, 10 * LEASE_MS);
    assert_int_equal(seen_count(world, PERSIST_END), 0);
    world_close(world);
}

static void its_workers_are_told_to_stop(void **state)
{
    (void)state;
    struct world *world = open_leased();
    world_beat(world, "i1", "init", 1, NULL);
    expect_job(world, "i1", "init:g");
    world_wait(world, LEASE_MS);
    expect_abandoned(world, 2);
    assert_true(was_told(world, "i1", MSG_job_cancel, "init:g"));
    expect_job(world, "i1", "init:free");
    world_close(world);
}

static void any_request_that_names_the_stream_renews_its_leases(void **state)
{
    (void)state;
    struct world *world = open_leased();
    for (unsigned request = 0; request < 8; request++) {
        struct msg_stream_fetch fetch = {.tag = 8, .stream = TEXT("train"), .from = 1};
        world_wait(world, LEASE_MS - 1);
        assert_int_equal(seen_count(world, PERSIST_END), 0);
        switch (request) {
        case 0: renew(world, "train"); break;
        case 1: world_say(world, "trainer", MSG_stream_fetch, &fetch); break;
        case 2: world_get(world, "g/0"); break;
        case 3: world_cancel(world, "g/1", NULL, NULL); break;
        case 4: world_ack(world, "train", 1); break;
        case 5: world_submit(world, "g", 2); break; /* known */
        case 6: world_submit(world, "more", 1); break;
        default: world_cancel(world, NULL, "more", NULL); break;
        }
    }
    world_wait(world, LEASE_MS);
    expect_abandoned(world, 1);
    world_close(world);
}

static void requests_of_other_streams_and_strangers_do_not_renew(void **state)
{
    (void)state;
    struct world *world = world_create();
    world_start(world);
    world->name = "alice";
    world->lease_ms = LEASE_MS;
    world_submit(world, "g", 2);
    world->lease_ms = 0;
    world_wait(world, LEASE_MS - 1);
    world_submit_task(world, "h", "test", 1, "{}");
    renew(world, "test");
    world->name = "mallory";
    renew(world, "train");
    expect_refused(world, REFUSAL_NOT_ALLOWED);
    world_get(world, "g/0");
    expect_refused(world, REFUSAL_NOT_ALLOWED);
    world_cancel(world, "g/0", NULL, NULL);
    expect_refused(world, REFUSAL_NOT_ALLOWED);
    world_wait(world, 1);
    expect_abandoned(world, 2);
    world_close(world);
}

/* "g" of alice's is on the stream "train", under a lease. */
static struct world *open_alices(void)
{
    struct world *world = world_create();
    world_start(world);
    world->name = "alice";
    world->lease_ms = LEASE_MS;
    world_submit(world, "g", 2);
    world_wait(world, LEASE_MS - 1);
    world->name = "ops";
    world->is_admin = true;
    return world;
}

static void an_admin_who_looks_does_not_renew_the_owners_lease(void **state)
{
    (void)state;
    struct world *world = open_alices();
    struct msg_stream_fetch fetch = {.tag = 8, .stream = TEXT("train"), .from = 1};
    world_say(world, "trainer", MSG_stream_fetch, &fetch);
    assert_int_equal(seen_count(world, SEND_RANGE), 1);
    world_get(world, "g/0");
    expect_answer(world, MSG_rollout_state);
    world_cancel(world, "g/1", NULL, NULL);
    world_ack(world, "train", 1);
    assert_int_equal(expect_answer(world, MSG_done)->count, 1);
    world_wait(world, 1);
    expect_abandoned(world, 1);
    world_close(world);
}

static void an_admin_who_submits_or_says_renew_does(void **state)
{
    (void)state;
    struct world *world = open_alices();
    world_submit(world, "of-ops", 1);
    world_wait(world, LEASE_MS - 1);
    renew(world, "train");
    assert_int_equal(expect_answer(world, MSG_done)->count, 3);
    world_wait(world, LEASE_MS - 1);
    assert_int_equal(seen_count(world, PERSIST_END), 0);
    world_wait(world, 1);
    expect_abandoned(world, 3);
    world_close(world);
}

static void renewing_says_how_many_rollouts_it_is_about(void **state)
{
    (void)state;
    struct world *world = open_leased();
    renew(world, "train");
    assert_int_equal(expect_answer(world, MSG_done)->count, 2);
    renew(world, "test");
    assert_int_equal(expect_answer(world, MSG_done)->count, 0);
    world_cancel(world, "g/0", NULL, NULL);
    renew(world, "train");
    assert_int_equal(expect_answer(world, MSG_done)->count, 1);
    renew(world, "nowhere");
    expect_refused(world, REFUSAL_UNKNOWN_STREAM);
    world_close(world);
}

static void groups_of_a_stream_have_leases_of_their_own_lengths(void **state)
{
    (void)state;
    struct world *world = open_leased();
    world->lease_ms = 2 * LEASE_MS;
    world_submit(world, "slow", 3);
    renew(world, "train");
    world_wait(world, LEASE_MS);
    expect_abandoned(world, 2);
    world_wait(world, LEASE_MS - 1);
    assert_int_equal(seen_count(world, PERSIST_END), 0);
    world_wait(world, 1);
    assert_int_equal(seen_count(world, PERSIST_END), 3);
    world_close(world);
}

static void a_lease_does_not_prolong_the_total_time(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->task.total_ms = 900000;
    world_start(world);
    world->lease_ms = LEASE_MS;
    world_submit(world, "g", 1);
    world_wait(world, LEASE_MS - 1);
    renew(world, "train");
    world_wait(world, 900000 - LEASE_MS);
    assert_int_equal(seen_count(world, PERSIST_END), 0);
    world_wait(world, 1);
    assert_int_equal(expect(world, PERSIST_END)->end.outcome, OUTCOME_INFRA);
    world_close(world);
}

static void after_a_restart_a_lease_begins_anew(void **state)
{
    (void)state;
    struct world *world = world_create();
    world_start(world);
    core_restore_clock(world->core, WALL_MS);
    struct core_group_row group = {.group = TEXT("g"),
                                   .stream = TEXT("train"),
                                   .samples = 1,
                                   .task = world->task,
                                   .lease_ms = LEASE_MS,
                                   .accepted_ms = WALL_MS - 2 * LEASE_MS};
    struct core_rollout_row row = {.rollout = TEXT("g/0"), .group = TEXT("g")};
    assert_true(core_restore_group(world->core, &group));
    assert_true(core_restore_rollout(world->core, &row));
    world_wait(world, 60000); /* so long did reading the ledger take */
    world_wait(world, LEASE_MS - 1);
    assert_int_equal(seen_count(world, PERSIST_END), 0);
    world_wait(world, 1);
    expect_abandoned(world, 1);
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_of_a_trainer_that_is_gone_ends_and_no_other_does),
        cmocka_unit_test(its_workers_are_told_to_stop),
        cmocka_unit_test(any_request_that_names_the_stream_renews_its_leases),
        cmocka_unit_test(requests_of_other_streams_and_strangers_do_not_renew),
        cmocka_unit_test(an_admin_who_looks_does_not_renew_the_owners_lease),
        cmocka_unit_test(an_admin_who_submits_or_says_renew_does),
        cmocka_unit_test(renewing_says_how_many_rollouts_it_is_about),
        cmocka_unit_test(groups_of_a_stream_have_leases_of_their_own_lengths),
        cmocka_unit_test(a_lease_does_not_prolong_the_total_time),
        cmocka_unit_test(after_a_restart_a_lease_begins_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
