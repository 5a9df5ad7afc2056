/* Beats, reconciliation, lost workers, suspects and blame. */
#include "tests/broker/core_world.h"

/* ---- welcome ---------------------------------------------------------------------------- */

static void a_worker_that_is_not_known_is_welcomed(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_beat(world, "r1", "run", 4, NULL);
    assert_string_equal(expect(world, LANE_OPEN)->worker, "r1");
    assert_string_equal(expect(world, LANE_OPEN)->endpoint, "tcp://10.0.0.7:20417");
    assert_true(was_told(world, "r1", MSG_lane_hello, NULL));
    assert_int_equal(expect(world, LANE_SEND)->count, world->epoch);
    world_beat(world, "r1", "run", 4, NULL);
    assert_int_equal(world->seen_count, 0);
    world_close(world);
}

static void a_beat_of_another_epoch_is_told_the_epoch_again(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_beat(world, "r1", "run", 1, NULL);
    world_beat_with(world, "r1", "run", (struct beat){.epoch = 2}, NULL);
    assert_true(was_told(world, "r1", MSG_lane_hello, NULL));
    assert_int_equal(seen_count(world, LANE_OPEN), 0);
    world_close(world);
}

static void a_lane_that_moved_is_closed_and_opened(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_beat(world, "r1", "run", 1, NULL);
    world_beat_with(world, "r1", "run", (struct beat){.lane = "tcp://10.0.0.7:20999"}, NULL);
    assert_int_equal(world->seen[0].kind, LANE_CLOSE);
    assert_int_equal(world->seen[1].kind, LANE_OPEN);
    assert_string_equal(world->seen[1].endpoint, "tcp://10.0.0.7:20999");
    assert_int_equal(world->seen[2].message, MSG_lane_hello);
    world_close(world);
}

static void a_draining_worker_gets_nothing(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_beat_with(world, "i1", "init", (struct beat){.slots = 4, .draining = true}, NULL);
    world_submit(world, "g", 1);
    assert_int_equal(seen_count(world, LANE_JOB), 0);
    world_beat(world, "i1", "init", 4, NULL);
    expect_job(world, "i1", "init:g");
    world_close(world);
}

static void beats_of_an_unknown_stage_are_dropped(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_beat(world, "x", "paint", 1, NULL);
    assert_int_equal(world->seen_count, 0);
    world_close(world);
}

/* ---- reconciliation ------------------------------------------------------------------------ */

static void a_job_that_the_worker_holds_stays_leased(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_run(world, "g", 1);
    world_beat(world, "r1", "run", 1, NULL);
    uint64_t token = expect_job(world, "r1", "run:g/0");
    for (unsigned s = 0; s < 20; s++) {
        world_wait(world, 1000);
        world_beat(world, "r1", "run", 1, "run:g/0", token, NULL);
        assert_int_equal(seen_count(world, LANE_JOB) + seen_count(world, LANE_SEND), 0);
    }
    world_close(world);
}

static void a_job_that_never_arrived_is_handed_out_again_after_the_grace(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_run(world, "g", 2);
    world_beat(world, "r1", "run", 1, NULL);
    uint64_t token = expect_job(world, "r1", "run:g/0");
    world->now_ms += 2000;
    world_beat(world, "r1", "run", 1, NULL);
    assert_int_equal(seen_count(world, LANE_JOB), 0);
    world->now_ms += 1;
    world_beat(world, "r1", "run", 1, NULL);
    assert_true(was_told(world, "r1", MSG_job_cancel, "run:g/0"));
    assert_true(expect_job(world, "r1", "run:g/0") > token); /* before run:g/1 */
    assert_int_equal(expect(world, LANE_JOB)->attempt, 2);
    assert_int_equal(seen_count(world, LANE_JOB), 1);
    world_close(world);
}

static void a_job_that_no_worker_ever_keeps_ends_as_infra(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.infra_budget = 2;
    world->settings.beat_timeout_ms = 100000;
    world_start(world);
    world_reach_run(world, "g", 1);
    unsigned beats = 0;
    world_beat(world, "r1", "run", 1, NULL);
    while (!seen_nth(world, PERSIST_END, 0)) {
        world_wait(world, 2001);
        assert_true(beats++ < 50);
        world_beat(world, "r1", "run", 1, NULL);
    }
    const struct seen *end = expect_end(world, "g/0", OUTCOME_INFRA);
    assert_non_null(strstr(end->end_detail, "no worker kept it"));
    world_close(world);
}

static void what_is_leased_to_another_is_cancelled(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_run(world, "g", 1);
    world_beat(world, "r1", "run", 1, NULL);
    uint64_t token = expect_job(world, "r1", "run:g/0");
    world_beat(world, "r2", "run", 1, "run:g/0", token - 1, NULL);
    assert_true(was_told(world, "r2", MSG_job_cancel, "run:g/0"));
    assert_false(was_told(world, "r1", MSG_job_cancel, NULL));
    world_close(world);
}

static void what_nobody_knows_is_cancelled_and_its_result_released(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_beat(world, "r1", "run", 4, "run:gone/0", (uint64_t)5, "junk", (uint64_t)6, NULL);
    assert_true(was_told(world, "r1", MSG_job_cancel, "run:gone/0"));
    assert_true(was_told(world, "r1", MSG_result_ack, "run:gone/0"));
    assert_true(was_told(world, "r1", MSG_job_cancel, "junk"));
    world_close(world);
}

static void a_stage_that_is_done_is_released(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_eval(world, "g", "ok");
    world_beat(world, "r1", "run", 8, "run:g/0", token_of(world, "run:g/0"), NULL);
    assert_true(was_told(world, "r1", MSG_result_ack, "run:g/0"));
    world_get(world, "g/0");
    assert_string_equal(expect_answer(world, MSG_rollout_state)->stage, "eval");
    world_close(world);
}

static void one_beat_causes_a_bounded_number_of_cancels(void **state)
{
    (void)state;
    struct world *world = world_open();
    struct buffer packed = {0};
    for (unsigned i = 0; i < 20000; i++) {
        char job[64];
        snprintf(job, sizeof(job), "run:none/%u", i);
        assert_true(jobs_append(&packed, TEXT(job), i + 1));
    }
    struct msg_worker_beat in = {.worker = TEXT("r1"), .stage = TEXT("run"), .slots = 4,
                                 .lane = TEXT("tcp://h:1"), .host = TEXT("h"), .epoch = 3,
                                 .jobs = {buffer_peek(&packed), 20000}};
    world_say(world, "", MSG_worker_beat, &in);
    assert_in_range(seen_count(world, LANE_SEND), 1000, 2100);
    buffer_finish(&packed);
    world_close(world);
}

static void an_older_dispatch_held_by_the_same_worker_is_cancelled(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_run(world, "g", 1);
    world_beat(world, "r1", "run", 1, NULL);
    uint64_t first = expect_job(world, "r1", "run:g/0");
    world->now_ms += 2001;
    world_beat(world, "r1", "run", 1, NULL);
    uint64_t second = expect_job(world, "r1", "run:g/0");
    world_beat(world, "r1", "run", 1, "run:g/0", first, "run:g/0", second, NULL);
    assert_int_equal(seen_count(world, LANE_SEND), 1);
    assert_int_equal(expect(world, LANE_SEND)->message, MSG_job_cancel);
    assert_int_equal(expect(world, LANE_SEND)->token, first);
    world_close(world);
}

static void being_seen_on_one_worker_says_nothing_about_the_next(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_run(world, "g", 1);
    world_beat(world, "r1", "run", 1, NULL);
    uint64_t token = expect_job(world, "r1", "run:g/0");
    world_beat(world, "r1", "run", 1, "run:g/0", token, NULL); /* seen in its second beat */
    world_break_lane(world, "r1");
    world_beat(world, "r2", "run", 1, NULL);
    expect_job(world, "r2", "run:g/0");
    world->now_ms += 2001;
    world_beat(world, "r2", "run", 1, NULL); /* its second beat: it never arrived */
    assert_true(expect_job(world, "r2", "run:g/0") > token);
    world_close(world);
}

static void a_job_of_another_stage_is_not_adopted(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_run(world, "g", 1);
    world_beat(world, "e1", "eval", 4, "run:g/0", (uint64_t)7, NULL);
    world_get(world, "g/0");
    assert_string_equal(expect_answer(world, MSG_rollout_state)->state, "queued");
    world_close(world);
}

/* ---- lost workers --------------------------------------------------------------------------- */

static void a_silent_worker_is_lost_and_its_jobs_go_to_the_front_in_order(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_run(world, "g", 4);
    world_beat(world, "r1", "run", 2, NULL);
    expect_job(world, "r1", "run:g/0");
    expect_job(world, "r1", "run:g/1");
    world_wait(world, 4999);
    assert_int_equal(seen_count(world, LANE_CLOSE), 0);
    assert_int_equal(world->due_ms, world->now_ms + 1);
    world_wait(world, 1); /* i1 is lost too */
    assert_int_equal(seen_count(world, LANE_CLOSE), 2);
    world_beat(world, "r2", "run", 4, NULL);
    for (unsigned k = 0; k < 4; k++)
        assert_int_equal(seen_nth(world, LANE_JOB, k)->rollout[2], '0' + k);
    assert_int_equal(expect(world, LANE_JOB)->attempt, 2);
    assert_int_equal(seen_nth(world, LANE_JOB, 2)->attempt, 1);
    world_close(world);
}

static void a_broken_lane_loses_its_worker_at_once_and_a_beat_brings_it_back(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_run(world, "g", 1);
    world_beat(world, "r1", "run", 1, NULL);
    uint64_t token = expect_job(world, "r1", "run:g/0");
    world_break_lane(world, "r1");
    assert_string_equal(expect(world, LANE_CLOSE)->worker, "r1");
    world_get(world, "g/0");
    assert_string_equal(expect_answer(world, MSG_rollout_state)->state, "queued");
    world_beat(world, "r1", "run", 1, "run:g/0", token, NULL); /* still at work on it */
    expect(world, LANE_OPEN);
    assert_int_equal(seen_count(world, LANE_JOB), 0);
    world_get(world, "g/0");
    assert_string_equal(expect_answer(world, MSG_rollout_state)->worker, "r1");
    world_result(world, "r1", "run:g/0", token, "ok");
    assert_int_equal(seen_count(world, PERSIST_RUN), 1);
    world_break_lane(world, "nobody");
    assert_int_equal(world->seen_count, 0);
    world_close(world);
}

static void a_worker_whose_work_stands_still_is_lost_until_it_gets_on(void **state)
{
    (void)state;
    struct world *world = world_open();
    struct beat same = {.slots = 1, .progress = 77};
    world_reach_run(world, "g", 1);
    world_beat_with(world, "r1", "run", same, NULL);
    uint64_t token = expect_job(world, "r1", "run:g/0");
    for (unsigned s = 0; s < 5; s++) {
        world_wait(world, 1000);
        world_beat_with(world, "r1", "run", same, "run:g/0", token, NULL);
        assert_int_equal(seen_count(world, LANE_CLOSE), 0);
    }
    world_wait(world, 1000);
    world_beat_with(world, "r1", "run", same, "run:g/0", token, NULL);
    assert_string_equal(expect(world, LANE_CLOSE)->worker, "r1");
    world_wait(world, 1000);
    world_beat_with(world, "r1", "run", same, "run:g/0", token, NULL);
    assert_int_equal(world->seen_count, 0);
    world_get(world, "g/0");
    assert_string_equal(expect_answer(world, MSG_rollout_state)->state, "queued");
    same.progress = 78;
    world_beat_with(world, "r1", "run", same, NULL);
    expect(world, LANE_OPEN);
    expect_job(world, "r1", "run:g/0");
    world_close(world);
}

static void a_hung_worker_that_falls_silent_is_forgotten(void **state)
{
    (void)state;
    struct world *world = world_open();
    struct beat same = {.slots = 1, .progress = 77};
    for (unsigned s = 0; s < 8; s++) {
        world_beat_with(world, "r1", "run", same, NULL);
        world_wait(world, 1000);
    }
    world_wait(world, 5000);
    assert_int_equal(seen_count(world, LANE_CLOSE), 0); /* it was closed before */
    world_beat_with(world, "r1", "run", same, NULL);
    expect(world, LANE_OPEN);
    world_close(world);
}

static void nothing_is_sent_to_a_hung_worker_not_even_where_it_moved(void **state)
{
    (void)state;
    struct world *world = world_open();
    struct beat same = {.slots = 1, .progress = 77};
    world_reach_run(world, "g", 1);
    for (unsigned s = 0; s < 8; s++) {
        world_beat_with(world, "r1", "run", same, "run:g/0", (uint64_t)1, NULL);
        world_wait(world, 1000);
    }
    same.lane = "tcp://10.0.0.7:20999";
    world_beat_with(world, "r1", "run", same, NULL);
    assert_int_equal(world->seen_count, 0);
    world_result(world, "r1", "run:g/0", 1, "ok"); /* taken, and acknowledged when it comes again */
    assert_int_equal(seen_count(world, PERSIST_RUN), 1);
    assert_int_equal(seen_count(world, LANE_SEND), 0);
    world_close(world);
}

/* ---- results that come late or twice ----------------------------------------------------------- */

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
    assert_non_null(strstr(expect_end(world, "g/0", OUTCOME_INFRA)->end_detail, "no result within 50 s"));
    world_close(world);
}

/* ---- suspects and blame --------------------------------------------------------------------------- */

static void a_suspect_reruns_then_runs_alone_and_only_then_is_blamed(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_run(world, "g", 3);
    world_beat(world, "r1", "run", 3, NULL);
    assert_int_equal(seen_count(world, LANE_JOB), 3);
    world_break_lane(world, "r1");
    world_beat(world, "r2", "run", 3, NULL);
    assert_int_equal(seen_count(world, LANE_JOB), 3); /* together, once more */
    world_break_lane(world, "r2");
    for (unsigned death = 0; death < 3; death++) {
        char worker[16];
        snprintf(worker, sizeof(worker), "r%u", 10 + death);
        world_beat(world, worker, "run", 3, NULL);
        assert_int_equal(seen_count(world, LANE_JOB), 1); /* alone, though three slots are free */
        expect_job(world, worker, "run:g/0");
        world_break_lane(world, worker);
    }
    const struct seen *end = expect_end(world, "g/0", OUTCOME_INFRA);
    assert_non_null(strstr(end->end_detail, "set aside"));
    assert_non_null(strstr(end->end_detail, "r12"));
    world_beat(world, "r20", "run", 3, NULL);
    uint64_t token = expect_job(world, "r20", "run:g/1");
    assert_int_equal(seen_count(world, LANE_JOB), 1);
    world_result(world, "r20", "run:g/1", token, "ok");
    expect_job(world, "r20", "run:g/2");
    world_close(world);
}

static void a_busy_worker_is_kept_from_new_work_until_it_can_take_a_suspect_alone(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_run(world, "g", 1);
    for (unsigned death = 0; death < 2; death++) {
        world_beat(world, "r1", "run", 1, NULL);
        expect_job(world, "r1", "run:g/0");
        if (death == 1) { /* the only other worker is busy by then */
            world_reach_run(world, "h", 4);
            world_beat(world, "r2", "run", 2, NULL);
            assert_int_equal(seen_count(world, LANE_JOB), 2);
        }
        world_break_lane(world, "r1");
        assert_int_equal(seen_count(world, LANE_JOB), 0);
    }
    world_result(world, "r2", "run:h/0", token_of(world, "run:h/0"), "ok");
    assert_int_equal(seen_count(world, LANE_JOB), 0);
    world_result(world, "r2", "run:h/1", token_of(world, "run:h/1"), "ok");
    expect_job(world, "r2", "run:g/0");
    assert_int_equal(seen_count(world, LANE_JOB), 1);
    world_result(world, "r2", "run:g/0", token_of(world, "run:g/0"), "ok");
    assert_int_equal(seen_count(world, LANE_JOB), 2); /* back to the queue */
    world_close(world);
}

static void a_worker_kept_for_a_suspect_is_free_again_when_the_suspect_is_cancelled(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_run(world, "g", 1);
    for (unsigned death = 0; death < 2; death++) {
        world_beat(world, "r1", "run", 1, NULL);
        expect_job(world, "r1", "run:g/0");
        world_break_lane(world, "r1");
    }
    world_reach_run(world, "h", 2);
    world_beat(world, "r2", "run", 2, "run:h/0", (uint64_t)1, NULL); /* busy with h/0 */
    assert_int_equal(seen_count(world, LANE_JOB), 0);                /* and kept for g/0 */
    world_cancel(world, "g/0", NULL, NULL);
    expect_job(world, "r2", "run:h/1");
    world_close(world);
}

static void a_poison_job_is_set_aside_and_no_innocent_is(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_run(world, "g", 16);
    unsigned workers = 0, done = 0, set_aside = 0;
    char worker[16] = "";
    while (done + set_aside < 16) {
        assert_true(workers < 100);
        snprintf(worker, sizeof(worker), "r%u", ++workers);
        world_beat(world, worker, "run", 16, NULL);
        for (;;) { /* g/5 kills whoever has it; the others end before it does, one by one */
            const struct seen *job = seen_nth(world, LANE_JOB, 0);
            bool poison = false;
            for (size_t i = 0; (job = seen_nth(world, LANE_JOB, i)); i++)
                poison |= strcmp(job->rollout, "g/5") == 0;
            if (poison || !seen_nth(world, LANE_JOB, 0))
                break;
            struct seen first = *seen_nth(world, LANE_JOB, 0);
            world_result(world, worker, first.job, first.token, "ok");
            done += seen_count(world, PERSIST_RUN);
        }
        world_break_lane(world, worker);
        if (seen_nth(world, PERSIST_END, 0)) {
            expect_end(world, "g/5", OUTCOME_INFRA);
            set_aside++;
        }
    }
    assert_int_equal(set_aside, 1);
    assert_int_equal(done, 15);
    world_close(world);
}

static void a_suspect_that_succeeds_is_cleared(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_run(world, "g", 1);
    for (unsigned death = 0; death < 3; death++) {
        world_beat(world, "r1", "run", 1, NULL);
        expect_job(world, "r1", "run:g/0");
        world_break_lane(world, "r1");
    }
    world_beat(world, "r1", "run", 1, NULL);
    world_result(world, "r1", "run:g/0", expect_job(world, "r1", "run:g/0"), "ok");
    world_beat(world, "e1", "eval", 2, NULL);
    expect_job(world, "e1", "eval:g/0");
    world_break_lane(world, "e1");
    world_break_lane(world, "r1");
    world_reach_eval(world, "h", "ok");
    world_beat(world, "e2", "eval", 2, NULL);
    assert_int_equal(seen_count(world, LANE_JOB), 2); /* a first death as any: not alone */
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_that_is_not_known_is_welcomed),
        cmocka_unit_test(a_beat_of_another_epoch_is_told_the_epoch_again),
        cmocka_unit_test(a_lane_that_moved_is_closed_and_opened),
        cmocka_unit_test(a_draining_worker_gets_nothing),
        cmocka_unit_test(beats_of_an_unknown_stage_are_dropped),
        cmocka_unit_test(a_job_that_the_worker_holds_stays_leased),
        cmocka_unit_test(a_job_that_never_arrived_is_handed_out_again_after_the_grace),
        cmocka_unit_test(a_job_that_no_worker_ever_keeps_ends_as_infra),
        cmocka_unit_test(what_is_leased_to_another_is_cancelled),
        cmocka_unit_test(what_nobody_knows_is_cancelled_and_its_result_released),
        cmocka_unit_test(a_stage_that_is_done_is_released),
        cmocka_unit_test(one_beat_causes_a_bounded_number_of_cancels),
        cmocka_unit_test(an_older_dispatch_held_by_the_same_worker_is_cancelled),
        cmocka_unit_test(being_seen_on_one_worker_says_nothing_about_the_next),
        cmocka_unit_test(a_job_of_another_stage_is_not_adopted),
        cmocka_unit_test(a_silent_worker_is_lost_and_its_jobs_go_to_the_front_in_order),
        cmocka_unit_test(a_broken_lane_loses_its_worker_at_once_and_a_beat_brings_it_back),
        cmocka_unit_test(a_worker_whose_work_stands_still_is_lost_until_it_gets_on),
        cmocka_unit_test(a_hung_worker_that_falls_silent_is_forgotten),
        cmocka_unit_test(nothing_is_sent_to_a_hung_worker_not_even_where_it_moved),
        cmocka_unit_test(a_result_that_comes_twice_counts_once_and_is_acknowledged_twice),
        cmocka_unit_test(a_late_result_of_a_queued_job_wins_and_takes_it_from_the_queue),
        cmocka_unit_test(a_late_result_wins_over_the_other_holder_who_is_cancelled),
        cmocka_unit_test(a_late_infra_fault_does_not_disturb_who_is_at_work),
        cmocka_unit_test(a_failed_dispatch_is_not_adopted_from_a_beat_that_still_lists_it),
        cmocka_unit_test(a_job_given_back_is_handed_to_another_at_once),
        cmocka_unit_test(a_deadline_takes_the_job_away_and_counts_as_infra),
        cmocka_unit_test(a_suspect_reruns_then_runs_alone_and_only_then_is_blamed),
        cmocka_unit_test(a_busy_worker_is_kept_from_new_work_until_it_can_take_a_suspect_alone),
        cmocka_unit_test(a_worker_kept_for_a_suspect_is_free_again_when_the_suspect_is_cancelled),
        cmocka_unit_test(a_poison_job_is_set_aside_and_no_innocent_is),
        cmocka_unit_test(a_suspect_that_succeeds_is_cleared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
