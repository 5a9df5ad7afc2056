/* Results that come late, twice or never. */
#include "tests/broker/core/core_world.h"

static void a_result_that_comes_twice_counts_once_and_is_acknowledged_twice(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_run(world, "g", 1);
    world_beat(world, "r1", "run", 1, NULL);
    uint64_t token = expect_job(world, "r1", "run:g/0");
    world_result(world, "r1", "run:g/0", token, "ok");
    assert_int_equal(seen_count(world, PERSIST_RUN), 1);
    world_result(world, "r1", "run:g/0", token, "ok");
    assert_int_equal(seen_count(world, PERSIST_RUN), 0);
    assert_true(was_told(world, "r1", MSG_result_ack, "run:g/0"));
    world_close(world);
}

static void a_late_result_of_a_queued_job_wins_and_takes_it_from_the_queue(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_run(world, "g", 1);
    world_beat(world, "r1", "run", 1, NULL);
    uint64_t token = expect_job(world, "r1", "run:g/0");
    world_break_lane(world, "r1");
    world_result(world, "r1", "run:g/0", token, "ok");
    assert_int_equal(seen_count(world, PERSIST_RUN), 1);
    world_beat(world, "r2", "run", 1, NULL);
    assert_int_equal(seen_count(world, LANE_JOB), 0);
    world_close(world);
}

static void a_late_result_wins_over_the_other_holder_who_is_cancelled(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_run(world, "g", 1);
    world_beat(world, "r1", "run", 1, NULL);
    uint64_t first = expect_job(world, "r1", "run:g/0");
    world_break_lane(world, "r1");
    world_beat(world, "r2", "run", 1, NULL);
    uint64_t second = expect_job(world, "r2", "run:g/0");
    world_result(world, "r1", "run:g/0", first, "ok");
    assert_int_equal(seen_count(world, PERSIST_RUN), 1);
    assert_true(was_told(world, "r2", MSG_job_cancel, "run:g/0"));
    world_result(world, "r2", "run:g/0", second, "ok");
    assert_int_equal(seen_count(world, PERSIST_RUN), 0);
    assert_true(was_told(world, "r2", MSG_result_ack, "run:g/0"));
    world_close(world);
}

/* A run's result that has its evaluation, as of a task that is evaluated in the agent's own sandbox. */
static void send_evaluated(struct world *world, uint64_t token, const char *outcome, const char *evaluated)
{
    const struct msg_job_result in = {.record = slice_from_str("r"),
                                      .has_record = true,
                                      .verdict = slice_from_str("v"),
                                      .has_verdict = true,
                                      .eval_outcome = slice_from_str(evaluated),
                                      .has_eval_outcome = true,
                                      .eval_detail = slice_from_str("judged there"),
                                      .has_eval_detail = true,
                                      .eval_ms = 7,
                                      .has_eval_ms = true,
                                      .reward = 0.5,
                                      .has_reward = strcmp(evaluated, "ok") == 0};
    world_result_with(world, "r1", "run:g/0", token, outcome, in);
}

static void a_run_that_comes_with_its_evaluation_ends_at_once_and_is_never_evaluated_again(void **state)
{
    static const struct {
        const char *outcome, *evaluated;
        enum outcome ends;
        bool trainable, has_reward;
    } rows[] = {{"ok", "ok", OUTCOME_OK, true, true},
                {"agent", "ok", OUTCOME_AGENT, true, true},
                {"agent", "agent", OUTCOME_AGENT, false, false},
                {"ok", "agent", OUTCOME_TASK, false, false},
                {"ok", "task", OUTCOME_TASK, false, false},
                {"ok", "odd", OUTCOME_TASK, false, false}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct world *world = world_open();
        world_reach_run(world, "g", 1);
        world_beat(world, "r1", "run", 1, NULL);
        uint64_t token = expect_job(world, "r1", "run:g/0");
        send_evaluated(world, token, rows[i].outcome, rows[i].evaluated);
        assert_int_equal(seen_count(world, PERSIST_RUN), 1);
        const struct seen *end = expect(world, PERSIST_END);
        assert_int_equal(end->end.outcome, rows[i].ends);
        assert_int_equal(end->end.trainable, rows[i].trainable);
        assert_int_equal(end->end.has_reward, rows[i].has_reward);
        assert_string_equal(end->end_detail, "judged there");
        assert_int_equal(end->end.eval_ms, 7);
        send_evaluated(world, token, "ok", "ok");
        assert_int_equal(seen_count(world, PERSIST_END), 0);
        world_beat(world, "e1", "eval", 1, NULL);
        assert_int_equal(seen_count(world, LANE_JOB), 0);
        world_close(world);
    }
}

static void a_late_infra_fault_does_not_disturb_who_is_at_work(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_run(world, "g", 1);
    world_beat(world, "r1", "run", 1, NULL);
    uint64_t first = expect_job(world, "r1", "run:g/0");
    world_break_lane(world, "r1");
    world_beat(world, "r2", "run", 1, NULL);
    expect_job(world, "r2", "run:g/0");
    world_result(world, "r1", "run:g/0", first, "infra");
    world_get(world, "g/0");
    assert_string_equal(expect_answer(world, MSG_rollout_state)->worker, "r2");
    world_close(world);
}

static void a_failed_dispatch_is_not_adopted_from_a_beat_that_still_lists_it(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_run(world, "g", 1);
    world_beat(world, "r1", "run", 1, NULL);
    uint64_t token = expect_job(world, "r1", "run:g/0");
    world_result(world, "r1", "run:g/0", token, "infra");
    world_beat_with(world, "r1", "run", (struct beat){.draining = true}, "run:g/0", token, NULL);
    world_wait(world, 600); /* queued again */
    world_beat_with(world, "r1", "run", (struct beat){.draining = true}, "run:g/0", token, NULL);
    world_get(world, "g/0");
    assert_string_equal(expect_answer(world, MSG_rollout_state)->state, "queued");
    world_close(world);
}

static void a_job_given_back_is_handed_to_another_at_once(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_run(world, "g", 1);
    world_beat(world, "r1", "run", 1, NULL);
    uint64_t token = expect_job(world, "r1", "run:g/0");
    world_beat(world, "r2", "run", 1, NULL);
    world_beat_with(world, "r1", "run", (struct beat){.draining = true}, "run:g/0", token, NULL);
    world_result(world, "r1", "run:g/0", token, "cancelled");
    expect_job(world, "r2", "run:g/0");
    world_close(world);
}

static void what_is_given_back_again_and_again_is_nobodys_fault(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.infra_budget = 2;
    world->settings.beat_timeout_ms = 1000000;
    world_start(world);
    world_reach_run(world, "g", 1);
    for (unsigned time = 1; time <= 300; time++) {
        char worker[16];
        snprintf(worker, sizeof(worker), "r%u", time);
        world_beat(world, worker, "run", 1, NULL);
        uint64_t token = expect_job(world, worker, "run:g/0");
        assert_int_equal(expect(world, LANE_JOB)->attempt, time);
        world_result(world, worker, "run:g/0", token, "cancelled");
        assert_null(seen_nth(world, PERSIST_FAILURES, 0));
        assert_null(seen_nth(world, PERSIST_END, 0));
        assert_null(seen_nth(world, LANE_JOB, 0)); /* who gives back is not asked again ... */
    }
    world_beat(world, "r300", "run", 1, NULL); /* ... until it says that it is ready */
    expect_job(world, "r300", "run:g/0");
    world_close(world);
}

/* Its beats never list what it is handed. */
static void what_no_worker_ever_holds_ends_within_its_infra_budget(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.infra_budget = 2;
    world_start(world);
    world_reach_run(world, "g", 1);
    unsigned handed = 0;
    for (unsigned second = 0; second < 60 && !seen_nth(world, PERSIST_END, 0); second++) {
        world_wait(world, 1000);
        handed += seen_count(world, LANE_JOB);
        world_beat(world, "r1", "run", 1, NULL);
        handed += seen_count(world, LANE_JOB);
    }
    assert_int_equal(handed, 4);
    assert_non_null(strstr(expect_end(world, "g/0", OUTCOME_INFRA)->end_detail,
                           "it was handed out again and again, and no worker kept it"));
    world_close(world);
}

static void a_deadline_takes_the_job_away_and_counts_as_infra(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.infra_budget = 1;
    world->settings.beat_timeout_ms = 1000000;
    world_start(world);
    world_reach_run(world, "g", 1);
    world_beat(world, "r1", "run", 1, NULL);
    expect_job(world, "r1", "run:g/0");
    world_wait(world, 20000 + 30000 - 1);
    assert_int_equal(seen_count(world, PERSIST_END), 0);
    world_wait(world, 1);
    assert_true(was_told(world, "r1", MSG_job_cancel, "run:g/0"));
    const struct seen *end = expect_end(world, "g/0", OUTCOME_INFRA);
    assert_non_null(strstr(end->end_detail, "no result within 50 s"));
    world_close(world);
}

/* The clock of dispatches: what was never handed out cannot have ended. */
static void a_result_of_a_dispatch_that_never_was_changes_nothing_whatever_it_says(void **state)
{
    (void)state;
    static const char *const outcomes[] = {"ok", "agent", "task", "infra", "cancelled"};
    struct world *world = world_open();
    world_reach_run(world, "g", 2);
    world_beat(world, "r1", "run", 1, NULL);
    uint64_t token = expect_job(world, "r1", "run:g/0");
    const uint64_t tokens[] = {token + 1, (world->epoch + 1) << 32, UINT64_MAX};
    for (unsigned i = 0; i < 3 * 5; i++) {
        for (unsigned sample = 0; sample < 2; sample++) { /* one in hand, one queued */
            const char *job = sample ? "run:g/1" : "run:g/0";
            world_result(world, "r1", job, tokens[i / 5], outcomes[i % 5]);
            assert_int_equal(seen_count(world, PERSIST_RUN) + seen_count(world, PERSIST_END) +
                                 seen_count(world, PERSIST_FAILURES) + seen_count(world, LANE_JOB),
                             0);
            assert_true(was_told(world, "r1", MSG_result_ack, job));
        }
    }
    world_result(world, "r1", "run:g/0", token, "ok");
    assert_int_equal(seen_count(world, PERSIST_RUN), 1);
    world_result(world, "r9", "run:g/1", 2ULL << 32 | 7, "ok"); /* of a start before, the ledger would know */
    assert_int_equal(seen_count(world, PERSIST_RUN), 0);
    world_close(world);
}

static void a_beat_adopts_no_dispatch_that_never_was(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_run(world, "g", 1);
    world_beat(world, "r1", "run", 1, "run:g/0", UINT64_MAX, NULL);
    assert_true(was_told(world, "r1", MSG_job_cancel, "run:g/0"));
    expect_job(world, "r1", "run:g/0");
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_result_that_comes_twice_counts_once_and_is_acknowledged_twice),
        cmocka_unit_test(a_run_that_comes_with_its_evaluation_ends_at_once_and_is_never_evaluated_again),
        cmocka_unit_test(a_late_result_of_a_queued_job_wins_and_takes_it_from_the_queue),
        cmocka_unit_test(a_late_result_wins_over_the_other_holder_who_is_cancelled),
        cmocka_unit_test(a_late_infra_fault_does_not_disturb_who_is_at_work),
        cmocka_unit_test(a_failed_dispatch_is_not_adopted_from_a_beat_that_still_lists_it),
        cmocka_unit_test(a_job_given_back_is_handed_to_another_at_once),
        cmocka_unit_test(what_is_given_back_again_and_again_is_nobodys_fault),
        cmocka_unit_test(what_no_worker_ever_holds_ends_within_its_infra_budget),
        cmocka_unit_test(a_deadline_takes_the_job_away_and_counts_as_infra),
        cmocka_unit_test(a_result_of_a_dispatch_that_never_was_changes_nothing_whatever_it_says),
        cmocka_unit_test(a_beat_adopts_no_dispatch_that_never_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
