/* A broker's restart: what the ledger held, and what beats say is still running. */
#include "tests/broker/core/core_world.h"
#include "common/containers/table.h"

static void restore_group(struct world *world, const char *group, uint64_t samples, bool init_done)
{
    struct core_group_row row = {.group = TEXT(group),
                                 .stream = TEXT("train"),
                                 .samples = samples,
                                 .task = world->task,
                                 .init_done = init_done,
                                 .init_layer = TEXT(init_done ? "sha256:ab" : ""),
                                 .init_ms = 40,
                                 .priority = 5};
    assert_true(core_restore_group(world->core, &row));
}

static void restore_rollout(struct world *world, const char *group, uint64_t sample, struct core_rollout_row row)
{
    char name[160];
    snprintf(name, sizeof(name), "%s/%u", group, (unsigned)sample);
    row.rollout = TEXT(name);
    row.group = TEXT(group);
    row.sample = sample;
    row.stream = TEXT("train");
    assert_true(core_restore_rollout(world->core, &row));
}

/* Epoch 4: g's init is undone; h: 0 to run, 1 to eval, 2 ended as 7, 3 acknowledged. */
static struct world *restart(void)
{
    struct world *world = world_create();
    world->epoch = 4;
    world_start(world);
    assert_true(core_restore_stream(world->core, TEXT("train"), slice_of(NULL, 0), 7, 7));
    assert_true(core_restore_engine(world->core, &(struct core_engine){.url = TEXT("http://127.0.0.1:8080")}));
    restore_group(world, "g", 2, false);
    restore_rollout(world, "g", 0, (struct core_rollout_row){0});
    restore_rollout(world, "g", 1, (struct core_rollout_row){0});
    restore_group(world, "h", 4, true);
    restore_rollout(world, "h", 0, (struct core_rollout_row){0});
    restore_rollout(world, "h", 1,
                    (struct core_rollout_row){.run_done = true,
                                              .run_outcome = OUTCOME_AGENT,
                                              .run_detail = TEXT("20 turns"),
                                              .run_ms = 900,
                                              .engine = TEXT("http://old:1")});
    restore_rollout(world, "h", 2, (struct core_rollout_row){.ended = true, .seq = 7});
    assert_int_equal(core_effects(world->core).count, 1); /* the epoch's, nothing else */
    assert_int_equal(core_effects(world->core).items[0].kind, PERSIST_EPOCH);
    assert_int_equal(core_effects(world->core).items[0].seq, 4);
    world_settle(world);
    return world;
}

/* As it was handed out before the restart. */
static void restore_lease(struct world *world, const char *job, uint64_t token, const char *worker)
{
    assert_true(core_restore_lease(
        world->core,
        &(struct core_lease){.job = TEXT(job), .token = token, .worker = TEXT(worker), .key = TEXT(world->key)}));
}

static void jobs_wait_for_adoption_and_are_handed_out_after_the_grace(void **state)
{
    (void)state;
    struct world *world = restart();
    world_beat(world, "i1", "init", 4, NULL);
    world_beat(world, "r1", "run", 4, NULL);
    world_beat(world, "e1", "eval", 4, NULL);
    world_wait(world, 2999);
    assert_int_equal(seen_count(world, LANE_JOB), 0);
    world_wait(world, 1);
    expect_job(world, "i1", "init:g");
    expect_job(world, "r1", "run:h/0");
    expect_job(world, "e1", "eval:h/1");
    assert_int_equal(seen_count(world, LANE_JOB), 3);
    world_close(world);
}

static void after_the_grace_restored_jobs_come_first_and_in_order(void **state)
{
    (void)state;
    struct world *world = world_create();
    world_start(world);
    restore_group(world, "g", 3, true);
    for (uint64_t k = 0; k < 3; k++)
        restore_rollout(world, "g", k, (struct core_rollout_row){0});
    world_reach_run(world, "h", 1);
    world_wait(world, 3000);
    world_beat(world, "r1", "run", 4, NULL);
    for (unsigned k = 0; k < 3; k++)
        assert_int_equal(seen_nth(world, LANE_JOB, k)->rollout[2], '0' + k);
    assert_string_equal(seen_nth(world, LANE_JOB, 3)->rollout, "h/0");
    world_close(world);
}

static void the_tick_is_due_when_the_grace_ends(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.head_period_ms = 100000;
    world->settings.adopt_grace_ms = 1234;
    world_start(world);
    restore_group(world, "g", 1, false);
    restore_rollout(world, "g", 0, (struct core_rollout_row){0});
    world_wait(world, 60000); /* so long did reading the ledger take: the grace begins now */
    world_beat(world, "i1", "init", 1, NULL);
    assert_int_equal(seen_count(world, LANE_JOB), 0);
    assert_int_equal(world->due_ms, world->now_ms + 1234);
    world_close(world);
}

static void a_beat_adopts_what_is_still_running(void **state)
{
    (void)state;
    struct world *world = restart();
    uint64_t token = ((uint64_t)3 << 32) + 99; /* of the broker before */
    restore_lease(world, "run:h/0", token, "r1");
    world_beat_with(world, "r1", "run", (struct beat){.slots = 4, .epoch = 3}, "run:h/0", token, NULL);
    assert_true(was_told(world, "r1", MSG_lane_hello, NULL));
    assert_false(was_told(world, "r1", MSG_job_cancel, NULL));
    world_get(world, "h/0");
    assert_string_equal(expect_answer(world, MSG_rollout_state)->state, "leased");
    world_wait(world, 4000);
    assert_int_equal(seen_count(world, LANE_JOB), 0);
    world_result(world, "r1", "run:h/0", token, "ok");
    assert_int_equal(seen_count(world, PERSIST_RUN), 1);
    assert_string_equal(expect(world, PERSIST_RUN)->engine, ""); /* not known any more */
    world_close(world);
}

static void a_result_from_before_the_restart_counts(void **state)
{
    (void)state;
    struct world *world = restart();
    restore_lease(world, "eval:h/1", ((uint64_t)3 << 32) + 50, "e1");
    world_beat(world, "e1", "eval", 1, NULL);
    world_reward(world, "e1", "eval:h/1", ((uint64_t)3 << 32) + 50, 0.25);
    const struct seen *end = expect_end(world, "h/1", OUTCOME_AGENT);
    assert_int_equal(end->end.seq, 8);
    assert_true(end->end.reward == 0.25);
    assert_int_equal(end->end.run_ms, 900);
    assert_int_equal(end->end.init_ms, 40);
    assert_string_equal(end->end_layer, "sha256:ab");
    assert_string_equal(end->end_detail, "20 turns");
    assert_string_equal(end->end_engine, "http://old:1");
    world_close(world);
}

static void an_infra_fault_from_before_the_restart_counts_too(void **state)
{
    (void)state;
    struct world *world = restart();
    world_beat(world, "r1", "run", 1, NULL);
    uint64_t token = ((uint64_t)3 << 32) + 50;
    restore_lease(world, "run:h/0", token, "r1");
    world_result(world, "r1", "run:h/0", token, "infra");
    world_get(world, "h/0");
    assert_string_equal(expect_answer(world, MSG_rollout_state)->state, "delayed");
    world_beat_with(world, "r1", "run", (struct beat){.draining = true}, NULL);
    world_wait(world, 600);
    world_beat_with(world, "r1", "run", (struct beat){.draining = true}, "run:h/0", token, NULL);
    world_get(world, "h/0"); /* queued again, and not adopted from where it failed */
    assert_string_equal(expect_answer(world, MSG_rollout_state)->state, "queued");
    world_close(world);
}

static void a_worker_with_more_results_than_slots_keeps_them_all(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->epoch = 4;
    world_start(world);
    restore_group(world, "g", 3, true);
    for (uint64_t k = 0; k < 3; k++)
        restore_rollout(world, "g", k, (struct core_rollout_row){0});
    restore_lease(world, "run:g/0", 1, "r1");
    restore_lease(world, "run:g/1", 2, "r1");
    restore_lease(world, "run:g/2", 3, "r1");
    world_beat(world, "r1", "run", 1, "run:g/0", (uint64_t)1, "run:g/1", (uint64_t)2, "run:g/2", (uint64_t)3, NULL);
    assert_false(was_told(world, "r1", MSG_job_cancel, NULL));
    for (unsigned k = 0; k < 3; k++) {
        char job[32];
        snprintf(job, sizeof(job), "run:g/%u", k);
        world_result(world, "r1", job, k + 1, "ok");
        assert_int_equal(seen_count(world, PERSIST_RUN), 1);
    }
    world_close(world);
}

static void ended_and_acknowledged_rollouts_stay_what_they_were(void **state)
{
    (void)state;
    struct world *world = restart();
    world_get(world, "h/2");
    assert_int_equal(expect(world, SEND_TRAJECTORY)->seq, 7);
    world_get(world, "h/3");
    expect_refused(world, REFUSAL_FORGOTTEN);
    world_cancel(world, NULL, "h", NULL);
    assert_int_equal(seen_count(world, PERSIST_END), 2);
    assert_int_equal(expect(world, PERSIST_END)->end.seq, 8);
    world_get(world, "h/3");
    expect_refused(world, REFUSAL_FORGOTTEN);
    world_get(world, "h/2");
    assert_int_equal(expect(world, SEND_TRAJECTORY)->seq, 7);
    world_close(world);
}

static void a_group_of_which_nothing_is_left_is_still_known(void **state)
{
    (void)state;
    struct world *world = world_create();
    world_start(world);
    struct core_group_row row = {.group = TEXT("old"), .stream = TEXT("train"), .samples = 2, .task_hash = 0};
    assert_true(core_restore_stream(world->core, TEXT("train"), slice_of(NULL, 0), 3, 2));
    assert_true(core_restore_group(world->core, &row)); /* no task: all are forgotten */
    row.group = TEXT("older");
    row.task = world->task; /* a task, and no rollout is told: the same */
    assert_true(core_restore_group(world->core, &row));
    world_settle(world);
    world_get(world, "old/1");
    expect_refused(world, REFUSAL_FORGOTTEN);
    world_get(world, "older/1");
    expect_refused(world, REFUSAL_FORGOTTEN);
    world_submit_task(world, "old", "train", 2, "");
    assert_true(expect_answer(world, MSG_group_accepted)->known);
    world_wait(world, 10000);
    assert_int_equal(seen_count(world, LANE_JOB), 0);
    world_close(world);
}

static void a_restored_group_that_has_ended_is_closed(void **state)
{
    (void)state;
    struct world *world = world_create();
    world_start(world);
    assert_true(core_restore_stream(world->core, TEXT("train"), slice_of(NULL, 0), 1, 2));
    restore_group(world, "g", 2, true);
    restore_rollout(world, "g", 0, (struct core_rollout_row){.ended = true, .seq = 2});
    restore_rollout(world, "g", 1, (struct core_rollout_row){.ended = true, .seq = 1});
    world_settle(world); /* core_check knows no live group without live rollouts */
    world_get(world, "g/0");
    assert_int_equal(expect(world, SEND_TRAJECTORY)->seq, 2);
    world_ack(world, "train", 2);
    world_get(world, "g/0");
    expect_refused(world, REFUSAL_FORGOTTEN);
    world_close(world);
}

/* Of `group`, whose init was not done before the restart: after it these runs are handed out, and no others. */
static void expect_runs_after_init(struct world *world, const char *group, const char *const *runs, size_t count)
{
    char init[32];
    snprintf(init, sizeof(init), "init:%s", group);
    const uint64_t token = expect_job(world, "i1", init);
    world_beat(world, "r1", "run", 8, NULL);
    world_result(world, "i1", init, token, "ok");
    assert_int_equal(seen_count(world, LANE_JOB), count);
    for (size_t i = 0; i < count; i++)
        expect_job(world, "r1", runs[i]);
}

static void what_ended_before_its_groups_init_was_done_stays_ended(void **state)
{
    (void)state;
    struct world *world = world_create();
    world_start(world);
    assert_true(core_restore_stream(world->core, TEXT("train"), slice_of(NULL, 0), 1, 1));
    restore_group(world, "g", 3, false);
    restore_rollout(world, "g", 0, (struct core_rollout_row){0});
    restore_rollout(world, "g", 1, (struct core_rollout_row){.ended = true, .seq = 1});
    restore_rollout(world, "g", 2, (struct core_rollout_row){0});
    world_wait(world, 0);
    world_get(world, "g/1");
    assert_int_equal(expect(world, SEND_TRAJECTORY)->seq, 1);
    world_wait(world, 3000);
    world_beat(world, "i1", "init", 1, NULL);
    expect_runs_after_init(world, "g", (const char *const[]){"run:g/0", "run:g/2"}, 2);
    world_close(world);
}

static void what_was_acknowledged_before_its_groups_init_was_done_stays_forgotten(void **state)
{
    (void)state;
    struct world *world = world_create();
    world_start(world);
    assert_true(core_restore_stream(world->core, TEXT("train"), slice_of(NULL, 0), 3, 2));
    restore_group(world, "g", 3, false);
    restore_rollout(world, "g", 0, (struct core_rollout_row){0});
    restore_group(world, "h", 2, false);
    restore_rollout(world, "h", 1, (struct core_rollout_row){0});
    world_wait(world, 0);
    world_get(world, "g/2");
    expect_refused(world, REFUSAL_FORGOTTEN);
    world_get(world, "h/0");
    expect_refused(world, REFUSAL_FORGOTTEN);
    world_cancel(world, NULL, "h", NULL);
    expect_end(world, "h/1", OUTCOME_CANCELLED);
    assert_int_equal(seen_count(world, PERSIST_END), 1);
    world_wait(world, 3000);
    world_beat(world, "i1", "init", 1, NULL);
    expect_runs_after_init(world, "g", (const char *const[]){"run:g/0"}, 1);
    world_close(world);
}

static void rows_that_make_no_sense_are_not_taken(void **state)
{
    (void)state;
    struct world *world = world_create();
    world_start(world);
    struct core_group_row group = {.group = TEXT("g"), .stream = TEXT("train"), .task = world->task};
    assert_false(core_restore_group(world->core, &group)); /* no samples */
    restore_group(world, "g", 1, true);
    struct core_rollout_row row = {.rollout = TEXT("x/0"), .group = TEXT("x")};
    assert_false(core_restore_rollout(world->core, &row));
    row = (struct core_rollout_row){.rollout = TEXT("g/1"), .group = TEXT("g"), .sample = 1};
    assert_false(core_restore_rollout(world->core, &row));
    restore_rollout(world, "g", 0, (struct core_rollout_row){0});
    row.sample = 0;
    assert_false(core_restore_rollout(world->core, &row)); /* told twice */
    restore_group(world, "h", 2, false);
    restore_rollout(world, "h", 0, (struct core_rollout_row){0});
    row.group = TEXT("h");
    assert_false(core_restore_rollout(world->core, &row)); /* likewise, before its init */
    world_settle(world);
    world_close(world);
}

/* More groups than are put into the table at once. */
static void restore_many(struct world *world)
{
    char name[32];
    for (unsigned i = 0; i < 2 * TABLE_MANY + 5; i++) {
        snprintf(name, sizeof(name), "many-%u", i);
        restore_group(world, name, 1, false);
        restore_rollout(world, name, 0, (struct core_rollout_row){0});
    }
}

static void many_groups_are_all_there(void **state)
{
    (void)state;
    struct world *world = world_create();
    char name[32];
    world_start(world);
    restore_many(world);
    assert_true(core_restore_end(world->core));
    for (unsigned i = 0; i < 2 * TABLE_MANY + 5; i++) {
        snprintf(name, sizeof(name), "many-%u", i);
        assert_true(core_remembers(world->core, TEXT(name)));
    }
    world_settle(world);
    world_close(world);
}

static void a_group_that_is_told_twice_is_seen_at_the_end_or_before(void **state)
{
    (void)state;
    static const unsigned again[] = {0, TABLE_MANY, 2 * TABLE_MANY + 4};
    for (size_t i = 0; i < sizeof(again) / sizeof(*again); i++) {
        struct world *world = world_create();
        char name[32];
        world_start(world);
        restore_many(world);
        snprintf(name, sizeof(name), "many-%u", again[i]);
        restore_group(world, name, 1, false);
        assert_false(core_restore_end(world->core));
        assert_true(core_failed(world->core)); /* the broker does not start */
        world_close(world);
    }
}

static void rows_that_make_no_sense_are_refused_or_bounded(void **state)
{
    (void)state;
    static const struct {
        uint64_t first, head;
    } rows[] = {{5, 0}, {5, 3}, {UINT64_MAX, 7}, {1, UINT64_MAX}, {UINT64_MAX, UINT64_MAX}};
    struct world *world = world_create();
    world_start(world);
    core_restore_clock(world->core, WALL_MS);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        assert_false(core_restore_stream(world->core, TEXT("other"), slice_of(NULL, 0), rows[i].first, rows[i].head));
    assert_true(core_restore_stream(world->core, TEXT("train"), slice_of(NULL, 0), 5, 4));
    world->task.total_ms = INT64_MAX;
    restore_group(world, "g", 1, false);
    restore_rollout(world, "g", 0, (struct core_rollout_row){0});
    world_settle(world);
    world_wait(world, 1);
    assert_null(seen_nth(world, PERSIST_END, 0));
    world_wait(world, UINT32_MAX); /* 49 days */
    assert_int_equal(expect_end(world, "g/0", OUTCOME_INFRA)->end.seq, 5);
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_groups_are_all_there),
        cmocka_unit_test(a_group_that_is_told_twice_is_seen_at_the_end_or_before),
        cmocka_unit_test(rows_that_make_no_sense_are_refused_or_bounded),
        cmocka_unit_test(what_ended_before_its_groups_init_was_done_stays_ended),
        cmocka_unit_test(what_was_acknowledged_before_its_groups_init_was_done_stays_forgotten),
        cmocka_unit_test(jobs_wait_for_adoption_and_are_handed_out_after_the_grace),
        cmocka_unit_test(after_the_grace_restored_jobs_come_first_and_in_order),
        cmocka_unit_test(the_tick_is_due_when_the_grace_ends),
        cmocka_unit_test(a_beat_adopts_what_is_still_running),
        cmocka_unit_test(a_result_from_before_the_restart_counts),
        cmocka_unit_test(an_infra_fault_from_before_the_restart_counts_too),
        cmocka_unit_test(a_worker_with_more_results_than_slots_keeps_them_all),
        cmocka_unit_test(ended_and_acknowledged_rollouts_stay_what_they_were),
        cmocka_unit_test(a_group_of_which_nothing_is_left_is_still_known),
        cmocka_unit_test(a_restored_group_that_has_ended_is_closed),
        cmocka_unit_test(rows_that_make_no_sense_are_not_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
