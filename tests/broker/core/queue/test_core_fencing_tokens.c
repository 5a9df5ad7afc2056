/*
 * Which dispatches count: those that were issued for the job, in the run at hand, to the worker that
 * speaks. A run that is done again takes nothing of the first one's.
 */
#include "tests/broker/core/core_world.h"

/* ---- a run that is done again ------------------------------------------------------- */

struct twice {
    struct world *world;
    uint64_t run1, eval1, lost1; /* tokens of the first run, and two of its evals: e1's, who was cut off, and e2's */
    uint64_t run2;
};

/* The first run's layer cannot be read; its second run is at work on r1. What e1 found was not heard yet. */
static struct twice begin_twice(void)
{
    struct twice twice = {.world = world_create()};
    struct world *world = twice.world;
    world->settings.infra_budget = 1;
    world->settings.beat_timeout_ms = 1000000;
    world_start(world);
    world_reach_eval(world, "g", "ok");
    twice.run1 = token_of(world, "run:g/0");
    world_beat(world, "e1", "eval", 1, NULL);
    twice.lost1 = expect_job(world, "e1", "eval:g/0");
    world_break_lane(world, "e1");
    world_beat(world, "e2", "eval", 1, NULL);
    twice.eval1 = expect_job(world, "e2", "eval:g/0");
    world_blame(world, "e2", "eval:g/0", "infra", "store", "layer sha256:ab is not in the store");
    assert_string_equal(expect(world, PERSIST_AGAIN)->rollout, "g/0");
    twice.run2 = expect_job(world, "r1", "run:g/0");
    world_beat_with(world, "e2", "eval", (struct beat){.draining = true}, NULL);
    return twice;
}

/* The second run has ended, and its eval waits. */
static struct twice reach_second_eval(void)
{
    struct twice twice = begin_twice();
    world_result(twice.world, "r1", "run:g/0", twice.run2, "ok");
    assert_int_equal(seen_count(twice.world, PERSIST_RUN), 1);
    return twice;
}

/* Then its own reward is the one that counts. */
static void expect_own_reward(struct world *world)
{
    world_beat(world, "e9", "eval", 1, NULL);
    world_reward(world, "e9", "eval:g/0", expect_job(world, "e9", "eval:g/0"), 0.25);
    const struct seen *end = expect_end(world, "g/0", OUTCOME_OK);
    assert_true(end->end.has_reward && end->end.reward == 0.25 && end->end.trainable);
    world_close(world);
}

static void a_late_reward_of_the_first_run_is_not_the_seconds(void **state)
{
    (void)state;
    struct twice twice = reach_second_eval();
    world_reward(twice.world, "e1", "eval:g/0", twice.lost1, 99);
    assert_int_equal(seen_count(twice.world, PERSIST_END), 0);
    world_reward(twice.world, "e2", "eval:g/0", twice.eval1, 99);
    assert_int_equal(seen_count(twice.world, PERSIST_END), 0);
    expect_own_reward(twice.world);
}

static void a_late_failure_of_the_first_run_is_not_the_seconds(void **state)
{
    (void)state;
    static const char *const outcomes[] = {"task", "agent", "infra", "cancelled"};
    struct twice twice = reach_second_eval();
    for (size_t i = 0; i < sizeof(outcomes) / sizeof(*outcomes); i++) {
        world_result(twice.world, "e1", "eval:g/0", twice.lost1, outcomes[i]);
        assert_int_equal(seen_count(twice.world, PERSIST_END), 0);
        assert_int_equal(seen_count(twice.world, PERSIST_FAILURES), 0);
    }
    expect_own_reward(twice.world);
}

static void a_beat_that_lists_the_first_runs_eval_is_not_adopted_for_the_second(void **state)
{
    (void)state;
    struct twice twice = reach_second_eval();
    world_beat_with(twice.world, "e1", "eval", (struct beat){.draining = true}, "eval:g/0", twice.lost1, NULL);
    assert_true(was_told(twice.world, "e1", MSG_job_cancel, "eval:g/0"));
    world_reward(twice.world, "e1", "eval:g/0", twice.lost1, 99);
    assert_int_equal(seen_count(twice.world, PERSIST_END), 0);
    expect_own_reward(twice.world);
}

static void the_first_runs_result_said_twice_does_not_end_the_second(void **state)
{
    (void)state;
    struct twice twice = begin_twice();
    world_result(twice.world, "r1", "run:g/0", twice.run1, "ok");
    assert_int_equal(seen_count(twice.world, PERSIST_RUN), 0);
    world_result(twice.world, "r1", "run:g/0", twice.run1, "task");
    assert_int_equal(seen_count(twice.world, PERSIST_END), 0);
    world_result(twice.world, "r1", "run:g/0", twice.run2, "ok");
    assert_int_equal(seen_count(twice.world, PERSIST_RUN), 1);
    expect_own_reward(twice.world);
}

/* ---- tokens that were never issued -------------------------------------------------- */

static void a_token_that_was_issued_for_no_such_job_ends_nothing(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_run(world, "g", 3);
    world_beat(world, "r1", "run", 1, NULL);
    uint64_t token = expect_job(world, "r1", "run:g/0");
    world_result(world, "r1", "run:g/1", token, "ok"); /* another job's */
    assert_int_equal(seen_count(world, PERSIST_RUN), 0);
    world_result(world, "r1", "run:g/2", token - 1, "ok"); /* its init's */
    assert_int_equal(seen_count(world, PERSIST_RUN), 0);
    world_result(world, "r1", "run:g/1", 1, "ok"); /* of long ago */
    assert_int_equal(seen_count(world, PERSIST_RUN), 0);
    world_result(world, "r1", "run:g/0", token + 1, "ok"); /* none yet */
    assert_int_equal(seen_count(world, PERSIST_RUN), 0);
    world_beat(world, "r1", "run", 4, "run:g/0", token, "run:g/1", token, "run:g/2", (uint64_t)5, NULL);
    assert_true(was_told(world, "r1", MSG_job_cancel, "run:g/1"));
    assert_true(was_told(world, "r1", MSG_job_cancel, "run:g/2"));
    world_result(world, "r1", "run:g/0", token, "ok");
    assert_int_equal(seen_count(world, PERSIST_RUN), 1);
    world_close(world);
}

static void a_token_that_was_issued_to_another_worker_ends_nothing(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_run(world, "g", 2);
    world_beat(world, "r1", "run", 1, NULL);
    uint64_t first = expect_job(world, "r1", "run:g/0");
    world_beat(world, "r2", "run", 1, NULL);
    expect_job(world, "r2", "run:g/1");
    world_result(world, "r2", "run:g/0", first, "ok");
    assert_int_equal(seen_count(world, PERSIST_RUN), 0);
    world_break_lane(world, "r1"); /* it waits: nor can another say that it holds it */
    world_beat(world, "r2", "run", 1, "run:g/1", token_of(world, "run:g/1"), "run:g/0", first, NULL);
    assert_true(was_told(world, "r2", MSG_job_cancel, "run:g/0"));
    world_result(world, "r1", "run:g/0", first, "ok"); /* who had it may still end it */
    assert_int_equal(seen_count(world, PERSIST_RUN), 1);
    world_close(world);
}

/* ---- after a restart ------------------------------------------------------------------ */

static const uint64_t before = 3ull << 32;

/* What the ledger holds: rollout h/0 of a group of one, whose run has ended. */
static struct world *restart(struct core_rollout_row row)
{
    struct world *world = world_create();
    world->epoch = 4;
    world->settings.infra_budget = 1;
    world_start(world);
    struct core_group_row group = {
        .group = TEXT("h"), .stream = TEXT("train"), .samples = 1, .task = world->task, .init_done = true};
    row.rollout = TEXT("h/0");
    row.group = TEXT("h");
    assert_true(core_restore_group(world->core, &group));
    assert_true(core_restore_rollout(world->core, &row));
    return world;
}

static void restore_lease(struct world *world, const char *job, uint64_t token, const char *worker, const char *key)
{
    assert_true(core_restore_lease(
        world->core, &(struct core_lease){.job = TEXT(job), .token = token, .worker = TEXT(worker), .key = TEXT(key)}));
}

static void after_a_restart_only_the_dispatch_that_is_on_disk_may_speak(void **state)
{
    (void)state;
    struct world *world = restart((struct core_rollout_row){.run_done = true});
    restore_lease(world, "eval:h/0", before + 9, "e2", NULL);
    world_settle(world);
    world_beat(world, "e1", "eval", 1, "eval:h/0", before + 4, NULL); /* of the first run, or made up */
    assert_true(was_told(world, "e1", MSG_job_cancel, "eval:h/0"));
    world_reward(world, "e1", "eval:h/0", before + 4, 99);
    world_reward(world, "e1", "eval:h/0", before + 9, 99); /* another's */
    assert_int_equal(seen_count(world, PERSIST_END), 0);
    world_beat(world, "e2", "eval", 1, "eval:h/0", before + 9, NULL);
    assert_false(was_told(world, "e2", MSG_job_cancel, "eval:h/0"));
    world_wait(world, 4000);
    assert_int_equal(seen_count(world, LANE_JOB), 0); /* it was adopted */
    world_reward(world, "e2", "eval:h/0", before + 9, 0.5);
    assert_true(expect_end(world, "h/0", OUTCOME_OK)->end.reward == 0.5);
    world_close(world);
}

/* The run has ended since, or is done again since: it is the job of another stage. */
static void a_lease_of_another_stage_lets_nobody_speak(void **state)
{
    (void)state;
    static const struct core_rollout_row rows[] = {{.run_done = true}, {.run_again = true}};
    static const char *const leases[] = {"run:h/0", "eval:h/0"}, *const stages[] = {"eval", "run"};
    for (unsigned i = 0; i < 2; i++) {
        struct world *world = restart(rows[i]);
        char job[32];
        snprintf(job, sizeof(job), "%s:h/0", stages[i]);
        restore_lease(world, leases[i], before + 9, "w1", NULL);
        world_settle(world);
        world_beat(world, "w1", stages[i], 1, job, before + 9, NULL);
        assert_true(was_told(world, "w1", MSG_job_cancel, job));
        world_result(world, "w1", job, before + 9, "ok");
        assert_int_equal(seen_count(world, PERSIST_END) + seen_count(world, PERSIST_RUN), 0);
        world_close(world);
    }
}

static void that_a_run_is_done_again_outlives_the_broker_and_it_is_done_only_once_more(void **state)
{
    (void)state;
    struct world *world = restart((struct core_rollout_row){.run_again = true});
    restore_lease(world, "run:h/0", before + 7, "r1", NULL);
    world_settle(world);
    world_beat(world, "r1", "run", 1, "run:h/0", before + 7, NULL);
    world_result(world, "r1", "run:h/0", before + 7, "ok"); /* adopted: it goes on */
    assert_int_equal(seen_count(world, PERSIST_RUN), 1);
    world_beat(world, "e1", "eval", 1, NULL);
    expect_job(world, "e1", "eval:h/0");
    world_blame(world, "e1", "eval:h/0", "infra", "store", "its layer is gone, too");
    expect_end(world, "h/0", OUTCOME_INFRA);
    world_close(world);
}

static void a_dispatch_is_on_disk_before_it_is_sent(void **state)
{
    (void)state;
    struct world *world = world_open();
    world->key = "node1";
    world_reach_run(world, "g", 1);
    world_beat(world, "r1", "run", 1, NULL);
    uint64_t token = expect_job(world, "r1", "run:g/0");
    const struct seen *lease = expect(world, PERSIST_LEASE);
    assert_string_equal(lease->lease_job, "run:g/0");
    assert_string_equal(lease->lease_worker, "r1");
    assert_string_equal(lease->lease_key, "node1");
    assert_int_equal(lease->token, token);
    world_break_lane(world, "r1"); /* what is held again is what a restart must know */
    world_beat(world, "r2", "run", 1, NULL);
    expect_job(world, "r2", "run:g/0");
    world_break_lane(world, "r2");
    world_beat(world, "r1", "run", 1, "run:g/0", token, NULL);
    lease = expect(world, PERSIST_LEASE);
    assert_string_equal(lease->lease_worker, "r1");
    assert_int_equal(lease->token, token);
    world_close(world);
}

/* ---- keys ------------------------------------------------------------------------------ */

/* r1, of the key node1, runs g/0. */
static uint64_t reach_run_of_node1(struct world *world)
{
    world->key = "node1";
    world_reach_run(world, "g", 1);
    world_beat(world, "r1", "run", 1, NULL);
    return expect_job(world, "r1", "run:g/0");
}

static void a_key_ends_no_job_of_anothers_whatever_id_it_says(void **state)
{
    (void)state;
    struct world *world = world_open();
    uint64_t token = reach_run_of_node1(world);
    world->key = "mallory";
    static const char *const outcomes[] = {"ok", "agent", "task", "infra", "cancelled"};
    for (unsigned i = 0; i < 5; i++) {
        world_result(world, "r1", "run:g/0", token, outcomes[i]);
        assert_int_equal(world->seen_count, 0); /* nor is r1 told to forget its own */
        world_result(world, "m1", "run:g/0", token, outcomes[i]);
        assert_int_equal(world->seen_count, 0);
    }
    world_break_lane(world, "r1");
    world_beat(world, "m1", "run", 1, "run:g/0", token, NULL);
    assert_true(was_told(world, "m1", MSG_job_cancel, "run:g/0"));
    world->key = "node1";
    world_result(world, "r1", "run:g/0", token, "ok");
    assert_int_equal(seen_count(world, PERSIST_RUN), 1);
    world_close(world);
}

static void another_keys_beat_under_a_workers_id_changes_nothing_and_is_shown(void **state)
{
    (void)state;
    struct world *world = world_open();
    uint64_t token = reach_run_of_node1(world);
    world->key = "mallory";
    world_beat_with(world, "r1", "run", (struct beat){.slots = 1, .lane = "tcp://10.9.9.9:6"}, NULL);
    assert_int_equal(world->seen_count, 0); /* no lane is moved */
    world_wait(world, 2500);
    world_beat(world, "r1", "run", 9, NULL);
    assert_int_equal(world->seen_count, 0); /* no job is taken away */
    assert_non_null(strstr(world_status(world), "\"id_conflicts\":[{\"worker\":\"r1\",\"key\":\"mallory\","
                                                "\"owner\":\"node1\",\"ago_ms\":0,\"times\":2}]"));
    world->key = "node1";
    world_beat(world, "r1", "run", 1, "run:g/0", token, NULL);
    world_result(world, "r1", "run:g/0", token, "ok");
    assert_int_equal(seen_count(world, PERSIST_RUN), 1);
    world_close(world);
}

static void a_lost_workers_id_is_its_keys_for_as_long_as_it_is_remembered(void **state)
{
    (void)state;
    struct world *world = world_open();
    uint64_t token = reach_run_of_node1(world);
    world_break_lane(world, "r1");
    world->key = "mallory";
    world_beat(world, "r1", "run", 1, "run:g/0", token, NULL);
    assert_int_equal(world->seen_count, 0);
    world->key = "node1";
    world_beat(world, "r1", "run", 1, "run:g/0", token, NULL); /* who comes back is let in */
    expect(world, LANE_OPEN);
    world_wait(world, 5000);
    world_wait(world, world->settings.lost_shown_ms + 1);
    world->key = "mallory"; /* by now it is nobody's; the job is not mallory's for that */
    world_beat(world, "r1", "run", 1, "run:g/0", token, NULL);
    expect(world, LANE_OPEN);
    assert_true(was_told(world, "r1", MSG_job_cancel, "run:g/0"));
    world_close(world);
}

static void after_a_restart_an_id_is_its_keys_until_adoption_ends(void **state)
{
    (void)state;
    struct world *world = restart((struct core_rollout_row){0});
    restore_lease(world, "run:h/0", before + 9, "r1", "node1");
    world_settle(world);
    world->key = "mallory"; /* it is there before r1 is */
    world_beat(world, "r1", "run", 1, "run:h/0", before + 9, NULL);
    assert_int_equal(world->seen_count, 0);
    world->key = "node1";
    world_beat(world, "r1", "run", 1, "run:h/0", before + 9, NULL);
    expect(world, LANE_OPEN);
    world_wait(world, 3000);
    assert_int_equal(seen_count(world, LANE_JOB), 0); /* adopted */
    world_result(world, "r1", "run:h/0", before + 9, "ok");
    assert_int_equal(seen_count(world, PERSIST_RUN), 1);
    world_close(world);
}

static void who_has_no_lane_is_shown_why_and_gets_no_jobs_until_it_may_have_one(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_run(world, "g", 1);
    world->lane_refused = "its lane is at 10.9.9.9";
    world_beat(world, "r1", "run", 1, NULL);
    assert_string_equal(expect(world, LANE_REFUSED)->detail, "its lane is at 10.9.9.9");
    assert_int_equal(seen_count(world, LANE_OPEN) + seen_count(world, LANE_JOB), 0);
    world_wait(world, 1000);
    world_beat(world, "r1", "run", 1, NULL); /* said once */
    assert_int_equal(seen_count(world, LANE_REFUSED) + seen_count(world, LANE_JOB), 0);
    assert_non_null(strstr(world_status(world), "\"state\":\"unreached\""));
    assert_non_null(strstr(world_status(world), "its lane is at 10.9.9.9"));
    world->lane_refused = NULL; /* it comes from there by now */
    world_beat(world, "r1", "run", 1, NULL);
    expect(world, LANE_OPEN);
    expect_job(world, "r1", "run:g/0");
    world->lane_refused = "its lane is at 10.9.9.9"; /* somebody else's connection: the lane stays */
    world_beat(world, "r1", "run", 1, "run:g/0", token_of(world, "run:g/0"), NULL);
    assert_int_equal(seen_count(world, LANE_REFUSED) + seen_count(world, LANE_CLOSE), 0);
    world_close(world);
}

static void workers_of_one_key_work_side_by_side(void **state)
{
    (void)state;
    struct world *world = world_open();
    world->key = "slurm";
    world_reach_run(world, "g", 2);
    world_beat(world, "r1", "run", 1, NULL);
    uint64_t first = expect_job(world, "r1", "run:g/0");
    world_beat(world, "r2", "run", 1, NULL);
    uint64_t second = expect_job(world, "r2", "run:g/1");
    world_result(world, "r2", "run:g/1", second, "ok");
    assert_int_equal(seen_count(world, PERSIST_RUN), 1);
    world_result(world, "r1", "run:g/0", first, "ok");
    assert_int_equal(seen_count(world, PERSIST_RUN), 1);
    assert_non_null(strstr(world_status(world), "\"id_conflicts\":[]"));
    world_close(world);
}

static void what_a_lease_on_disk_says_beyond_reason_is_passed_over(void **state)
{
    (void)state;
    char endless[400];
    memset(endless, 'x', sizeof(endless));
    endless[399] = '\0';
    static const char *const jobs[] = {"", "run", "run:h/9", "run:nobody/0", "nonsense:h/0"};
    struct world *world = restart((struct core_rollout_row){0});
    for (size_t i = 0; i < sizeof(jobs) / sizeof(*jobs); i++)
        restore_lease(world, jobs[i], before, "r1", NULL);
    restore_lease(world, "run:h/0", UINT64_MAX, "r1", NULL);
    restore_lease(world, "run:h/0", before, endless, NULL);
    restore_lease(world, "run:h/0", before, "r1", endless);
    restore_lease(world, "run:h/0", before, "", NULL);
    world_settle(world);
    world_beat(world, "r1", "run", 1, "run:h/0", before, NULL);
    assert_true(was_told(world, "r1", MSG_job_cancel, "run:h/0"));
    world_wait(world, 3000);
    expect_job(world, "r1", "run:h/0");
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_late_reward_of_the_first_run_is_not_the_seconds),
        cmocka_unit_test(a_late_failure_of_the_first_run_is_not_the_seconds),
        cmocka_unit_test(a_beat_that_lists_the_first_runs_eval_is_not_adopted_for_the_second),
        cmocka_unit_test(the_first_runs_result_said_twice_does_not_end_the_second),
        cmocka_unit_test(a_token_that_was_issued_for_no_such_job_ends_nothing),
        cmocka_unit_test(a_token_that_was_issued_to_another_worker_ends_nothing),
        cmocka_unit_test(after_a_restart_only_the_dispatch_that_is_on_disk_may_speak),
        cmocka_unit_test(a_lease_of_another_stage_lets_nobody_speak),
        cmocka_unit_test(that_a_run_is_done_again_outlives_the_broker_and_it_is_done_only_once_more),
        cmocka_unit_test(a_dispatch_is_on_disk_before_it_is_sent),
        cmocka_unit_test(a_key_ends_no_job_of_anothers_whatever_id_it_says),
        cmocka_unit_test(another_keys_beat_under_a_workers_id_changes_nothing_and_is_shown),
        cmocka_unit_test(a_lost_workers_id_is_its_keys_for_as_long_as_it_is_remembered),
        cmocka_unit_test(after_a_restart_an_id_is_its_keys_until_adoption_ends),
        cmocka_unit_test(who_has_no_lane_is_shown_why_and_gets_no_jobs_until_it_may_have_one),
        cmocka_unit_test(workers_of_one_key_work_side_by_side),
        cmocka_unit_test(what_a_lease_on_disk_says_beyond_reason_is_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
