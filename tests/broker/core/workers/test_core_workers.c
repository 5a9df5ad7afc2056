/* Beats, reconciliation and lost workers. */
#include "tests/broker/core/core_world.h"

/* ---- registering ------------------------------------------------------------------- */

static void a_worker_that_is_not_known_is_registered(void **state)
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

/* One of an earlier release would refuse a field that it does not know, and the epoch with it. */
static void who_takes_bundles_is_told_that_they_are_read_and_nobody_else(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_beat_with(world, "r1", "run", (struct beat){.bundles = true}, NULL);
    assert_true(expect(world, LANE_SEND)->bundles);
    world_beat_with(world, "r1", "run", (struct beat){.bundles = true, .epoch = 2}, NULL);
    assert_true(expect(world, LANE_SEND)->bundles);
    world_beat(world, "r2", "run", 1, NULL);
    assert_true(was_told(world, "r2", MSG_lane_hello, NULL));
    assert_false(expect(world, LANE_SEND)->bundles);
    world_close(world);
}

/* What its jobs share comes in a bundle, or not at all. */
static void who_shares_tasks_must_take_bundles(void **state)
{
    (void)state;
    static const struct {
        struct beat beat;
        bool shares;
    } rows[] = {
        {{.shares_tasks = true, .bundles = true}, true}, {{.shares_tasks = true}, false}, {{.bundles = true}, false}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct world *world = world_open();
        world_beat_with(world, "i1", "init", rows[i].beat, NULL);
        world_submit(world, "g", 1);
        assert_int_equal(expect(world, LANE_JOB)->shares_tasks, rows[i].shares);
        world_close(world);
    }
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

/* ---- reconciliation ---------------------------------------------------------------- */

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

enum { GONE = 500, SLOTS = 4, MOST_A_BEAT = SLOTS + 64 };

/* A beat that lists, of so many unknown jobs, those not let go of yet, and `last` after them. */
static void beat_of_gone(struct world *world, const bool let_go[GONE], const char *last, uint64_t token)
{
    struct buffer packed = {0};
    uint32_t count = 0;
    for (unsigned i = 0; i < GONE; i++) {
        char job[64];
        snprintf(job, sizeof(job), "run:gone/%u", i);
        if (!let_go[i])
            assert_true(jobs_append(&packed, TEXT(job), i + 1));
        count += !let_go[i];
    }
    if (last)
        assert_true(jobs_append(&packed, TEXT(last), token));
    struct msg_worker_beat in = {.worker = TEXT("r1"),
                                 .stage = TEXT("run"),
                                 .slots = SLOTS,
                                 .lane = TEXT("tcp://h:1"),
                                 .host = TEXT("h"),
                                 .epoch = world->epoch,
                                 .progress = ++world->progress,
                                 .jobs = {buffer_peek(&packed), count + (last != NULL)}};
    world_say(world, "", MSG_worker_beat, &in);
    buffer_finish(&packed);
}

/* The worker lets go of what was cancelled, but for its first, which it is long at stopping. */
static unsigned let_go_of_cancelled(const struct world *world, bool let_go[GONE])
{
    unsigned number, cancels = 0;
    for (size_t i = 0; i < world->seen_count; i++) {
        const struct seen *seen = &world->seen[i];
        if (seen->kind != LANE_SEND || seen->message != MSG_job_cancel)
            continue;
        assert_int_equal(sscanf(seen->job, "run:gone/%u", &number), 1);
        let_go[number] = number >= SLOTS;
        cancels++;
    }
    return cancels;
}

static void a_beat_of_unknown_jobs_cancels_few_more_than_it_has_slots_and_the_next_ones_the_rest(void **state)
{
    (void)state;
    struct world *world = world_open();
    bool let_go[GONE] = {false};
    for (unsigned beats = 0; beats < 1 + (GONE - SLOTS) / (MOST_A_BEAT - SLOTS); beats++) {
        beat_of_gone(world, let_go, NULL, 0);
        assert_in_range(let_go_of_cancelled(world, let_go), SLOTS + 1, MOST_A_BEAT);
        assert_true(seen_count(world, LANE_SEND) <= 2 * MOST_A_BEAT + 1); /* result.ack, and once lane.hello */
    }
    for (unsigned i = SLOTS; i < GONE; i++)
        assert_true(let_go[i]);
    world_close(world);
}

static void what_a_long_list_of_unknown_jobs_ends_with_is_read(void **state)
{
    (void)state;
    struct world *world = world_open();
    bool let_go[GONE] = {false};
    world_reach_run(world, "g", 1);
    world_beat_with(world, "r1", "run", (struct beat){.slots = SLOTS, .lane = "tcp://h:1"}, NULL);
    uint64_t token = expect_job(world, "r1", "run:g/0");
    world->now_ms += 2001; /* what is not listed now is handed out again */
    beat_of_gone(world, let_go, "run:g/0", token);
    assert_false(was_told(world, "r1", MSG_job_cancel, "run:g/0"));
    assert_int_equal(seen_count(world, LANE_JOB), 0);
    beat_of_gone(world, let_go, NULL, 0);
    assert_true(was_told(world, "r1", MSG_job_cancel, "run:g/0"));
    world_close(world);
}

static void a_lane_has_room_for_what_its_worker_may_be_sent_and_no_more(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_beat(world, "r1", "run", 1, NULL);
    assert_in_range(expect(world, LANE_OPEN)->limit, 16 * (1024 + 64 + 2 * 65), 32768);
    world_beat(world, "r2", "run", 65536, NULL);
    assert_in_range(expect(world, LANE_OPEN)->limit, 2 * 65536, 8 * 65536);
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

/* ---- lost workers ------------------------------------------------------------------ */

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
    world_beat_with(world, "r1", "run", same, NULL);
    uint64_t token = expect_job(world, "r1", "run:g/0");
    for (unsigned s = 0; s < 8; s++) {
        world_beat_with(world, "r1", "run", same, "run:g/0", token, NULL);
        world_wait(world, 1000);
    }
    same.lane = "tcp://10.0.0.7:20999";
    world_beat_with(world, "r1", "run", same, NULL);
    assert_int_equal(world->seen_count, 0);
    world_result(world, "r1", "run:g/0", token, "ok"); /* taken, and acknowledged when it comes again */
    assert_int_equal(seen_count(world, PERSIST_RUN), 1);
    assert_int_equal(seen_count(world, LANE_SEND), 0);
    world_close(world);
}

static void a_worker_whose_lane_waits_is_given_nothing_until_it_leads_there(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_beat(world, "i1", "init", 4, NULL);
    core_lane_waits(world->core, world->now_ms, TEXT("i1"), TEXT("its name is being looked up"));
    world_submit(world, "g", 1);
    assert_int_equal(seen_count(world, LANE_JOB), 0);
    world_beat(world, "i1", "init", 4, NULL);
    assert_int_equal(seen_count(world, LANE_JOB), 0);
    struct buffer status = {0};
    assert_true(core_status(world->core, world->now_ms, &status) && buffer_append(&status, "", 1));
    assert_non_null(strstr((char *)status.data, "\"state\":\"unreached\",\"slots\":4"));
    assert_non_null(strstr((char *)status.data, "the broker does not reach them, i1 on node7 among them: its name"));
    assert_non_null(strstr((char *)status.data, "no init worker is ready"));
    buffer_finish(&status);
    core_lane_waits(world->core, world->now_ms, TEXT("i1"), TEXT(""));
    world_settle(world);
    expect_job(world, "i1", "init:g");
    assert_true(was_told(world, "i1", MSG_lane_hello, NULL));
    world_close(world);
}

static void a_worker_that_has_drained_leaves_and_is_no_loss(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_beat_with(world, "i1", "init", (struct beat){.slots = 4, .draining = true}, NULL);
    assert_false(core_lane_broke(world->core, world->now_ms, TEXT("i1")));
    world_settle(world);
    assert_string_equal(expect(world, LANE_CLOSE)->worker, "i1");
    world_beat(world, "i2", "init", 4, NULL);
    assert_true(core_lane_broke(world->core, world->now_ms, TEXT("i2")));
    world_settle(world);
    assert_string_equal(expect(world, LANE_CLOSE)->worker, "i2");
    assert_null(strstr(world_status(world), "i1"));
    assert_non_null(strstr(world_status(world), "its lane broke"));
    world_close(world);
}

static void a_new_lane_that_connects_is_given_nothing_before_it_has(void **state)
{
    (void)state;
    struct world *world = world_open();
    world->lane_connects = true;
    world_submit(world, "g", 1);
    world_beat(world, "i1", "init", 4, NULL);
    assert_int_equal(seen_count(world, LANE_JOB), 0);
    world_beat(world, "i1", "init", 4, NULL);
    assert_int_equal(seen_count(world, LANE_JOB), 0);
    assert_non_null(strstr(world_status(world), "the broker connects to its lane"));
    core_lane_waits(world->core, world->now_ms, TEXT("i1"), TEXT(""));
    world_settle(world);
    expect_job(world, "i1", "init:g");
    assert_true(was_told(world, "i1", MSG_lane_hello, NULL));
    world_close(world);
}

static void a_lane_that_moved_waits_no_more_for_what_the_old_one_did(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_beat(world, "i1", "init", 4, NULL);
    core_lane_waits(world->core, world->now_ms, TEXT("i1"), TEXT("its name is being looked up"));
    world_submit(world, "g", 1);
    world_beat_with(world, "i1", "init", (struct beat){.lane = "tcp://10.0.0.7:20999"}, NULL);
    expect_job(world, "i1", "init:g");
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_that_is_not_known_is_registered),
        cmocka_unit_test(a_beat_of_another_epoch_is_told_the_epoch_again),
        cmocka_unit_test(who_takes_bundles_is_told_that_they_are_read_and_nobody_else),
        cmocka_unit_test(who_shares_tasks_must_take_bundles),
        cmocka_unit_test(a_lane_that_moved_is_closed_and_opened),
        cmocka_unit_test(a_draining_worker_gets_nothing),
        cmocka_unit_test(beats_of_an_unknown_stage_are_dropped),
        cmocka_unit_test(a_job_that_the_worker_holds_stays_leased),
        cmocka_unit_test(a_job_that_never_arrived_is_handed_out_again_after_the_grace),
        cmocka_unit_test(a_job_that_no_worker_ever_keeps_ends_as_infra),
        cmocka_unit_test(what_is_leased_to_another_is_cancelled),
        cmocka_unit_test(what_nobody_knows_is_cancelled_and_its_result_released),
        cmocka_unit_test(a_stage_that_is_done_is_released),
        cmocka_unit_test(a_beat_of_unknown_jobs_cancels_few_more_than_it_has_slots_and_the_next_ones_the_rest),
        cmocka_unit_test(what_a_long_list_of_unknown_jobs_ends_with_is_read),
        cmocka_unit_test(a_lane_has_room_for_what_its_worker_may_be_sent_and_no_more),
        cmocka_unit_test(an_older_dispatch_held_by_the_same_worker_is_cancelled),
        cmocka_unit_test(being_seen_on_one_worker_says_nothing_about_the_next),
        cmocka_unit_test(a_job_of_another_stage_is_not_adopted),
        cmocka_unit_test(a_silent_worker_is_lost_and_its_jobs_go_to_the_front_in_order),
        cmocka_unit_test(a_broken_lane_loses_its_worker_at_once_and_a_beat_brings_it_back),
        cmocka_unit_test(a_worker_whose_work_stands_still_is_lost_until_it_gets_on),
        cmocka_unit_test(a_hung_worker_that_falls_silent_is_forgotten),
        cmocka_unit_test(nothing_is_sent_to_a_hung_worker_not_even_where_it_moved),
        cmocka_unit_test(a_worker_whose_lane_waits_is_given_nothing_until_it_leads_there),
        cmocka_unit_test(a_worker_that_has_drained_leaves_and_is_no_loss),
        cmocka_unit_test(a_new_lane_that_connects_is_given_nothing_before_it_has),
        cmocka_unit_test(a_lane_that_moved_waits_no_more_for_what_the_old_one_did),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
