/* Circuit breakers of engines that fail again and again. */
#include "tests/broker/core/core_breaker_world.h"

static const char a_url[] = "http://a:1", b_url[] = "http://b:1";

/* Engine a, a worker of n slots, and a group whose n runs are in hand. */
static struct world *open_runs(uint64_t breaker_faults, uint64_t slots, uint64_t runs)
{
    struct world *world = open_with(breaker_faults);
    world->task.needs_engine = true;
    world_engine(world, MSG_engine_add, a_url);
    world_reach_run(world, "g", runs);
    world_beat(world, "r1", "run", slots, NULL);
    return world;
}

static void engine_fails(struct world *world, const char *worker, const char *job)
{
    world_blame(world, worker, job, "infra", "engine", "HTTP 500");
}

/* ---- engines ----------------------------------------------------------------------- */

static void faults_in_a_row_set_an_engine_aside_and_a_success_between_them_does_not(void **state)
{
    (void)state;
    struct world *world = open_runs(3, 8, 8);
    json_int_t faults;
    engine_fails(world, "r1", "run:g/0");
    engine_fails(world, "r1", "run:g/1");
    world_result(world, "r1", "run:g/2", token_of(world, "run:g/2"), "ok");
    engine_fails(world, "r1", "run:g/3");
    world_blame(world, "r1", "run:g/4", "infra", "node", "no memory"); /* not the engine's */
    engine_fails(world, "r1", "run:g/5");
    assert_string_equal(state_in(world, "engines", &faults), "healthy");
    assert_int_equal(faults, 2);
    engine_fails(world, "r1", "run:g/6");
    assert_string_equal(state_in(world, "engines", &faults), "failing");
    assert_int_equal(faults, 3);
    assert_null(seen_nth(world, PERSIST_FAILURES, 0)); /* the last was not held against its job */
    world_close(world);
}

static void one_job_tries_an_engine_and_each_failure_doubles_the_wait(void **state)
{
    (void)state;
    struct world *world = open_runs(1, 4, 4);
    world->due_ms = 0;
    int64_t wait_ms = 2000;
    for (unsigned k = 0; k < 4; k++)
        engine_fails(world, "r1", k == 0 ? "run:g/0" : k == 1 ? "run:g/1" : k == 2 ? "run:g/2" : "run:g/3");
    for (unsigned trial = 0; trial < 9; trial++) {
        world_wait(world, wait_ms - 1);
        assert_string_equal(state_in(world, "engines", NULL), "failing");
        assert_int_equal(seen_count(world, LANE_JOB), 0);
        world_wait(world, 1);
        assert_int_equal(seen_count(world, LANE_JOB), 1); /* of four, with four slots free */
        assert_string_equal(state_in(world, "engines", NULL), "probing");
        char job[160];
        snprintf(job, sizeof(job), "%s", expect(world, LANE_JOB)->job);
        assert_int_equal(job[6], '0' + trial % 4); /* each in its turn */
        world_wait(world, 5000);
        assert_int_equal(seen_count(world, LANE_JOB), 0);
        engine_fails(world, "r1", job);
        assert_null(seen_nth(world, PERSIST_FAILURES, 0));
        wait_ms = 2 * wait_ms < 60000 ? 2 * wait_ms : 60000;
    }
    world_wait(world, 60000);
    world_result(world, "r1", expect(world, LANE_JOB)->job, expect(world, LANE_JOB)->token, "ok");
    assert_int_equal(seen_count(world, LANE_JOB), 3);
    assert_string_equal(state_in(world, "engines", NULL), "healthy");
    world_close(world);
}

static void what_was_handed_out_before_says_nothing_new(void **state)
{
    (void)state;
    struct world *world = open_runs(1, 8, 8);
    engine_fails(world, "r1", "run:g/0");
    for (unsigned k = 1; k < 8; k++) {
        char job[160];
        snprintf(job, sizeof(job), "run:g/%u", k);
        engine_fails(world, "r1", job);
        assert_null(seen_nth(world, PERSIST_FAILURES, 0));
        assert_null(seen_nth(world, LANE_JOB, 0));
    }
    world_wait(world, 1999);
    assert_null(seen_nth(world, LANE_JOB, 0));
    world_wait(world, 1); /* not later because of them */
    assert_int_equal(seen_count(world, LANE_JOB), 1);
    world_close(world);
}

/* Late even for the trial's time: nobody was free to begin it. */
static void what_was_handed_out_before_says_nothing_new_once_a_trial_is_due(void **state)
{
    (void)state;
    struct world *world = open_runs(1, 3, 3);
    engine_fails(world, "r1", "run:g/0");
    world_beat_with(world, "r1", "run", (struct beat){.slots = 3, .draining = true}, "run:g/1",
                    token_of(world, "run:g/1"), "run:g/2", token_of(world, "run:g/2"), NULL);
    world_wait(world, 2000);
    engine_fails(world, "r1", "run:g/1");
    engine_fails(world, "r1", "run:g/2");
    assert_null(seen_nth(world, PERSIST_FAILURES, 0));
    assert_string_equal(state_in(world, "engines", NULL), "probing"); /* due, and not put off */
    world_beat(world, "r1", "run", 3, NULL);
    char job[160];
    snprintf(job, sizeof(job), "%s", expect(world, LANE_JOB)->job);
    assert_int_equal(seen_count(world, LANE_JOB), 1);
    engine_fails(world, "r1", job);
    world_wait(world, 3999); /* the first failure of a trial */
    assert_null(seen_nth(world, LANE_JOB, 0));
    world_wait(world, 1);
    assert_int_equal(seen_count(world, LANE_JOB), 1);
    world_close(world);
}

static void a_trial_that_ends_without_a_word_is_followed_by_the_next(void **state)
{
    (void)state;
    struct world *world = open_runs(1, 1, 3);
    engine_fails(world, "r1", "run:g/0");
    world_wait(world, 2000);
    char rollout[160];
    snprintf(rollout, sizeof(rollout), "%s", expect(world, LANE_JOB)->rollout);
    world_cancel(world, rollout, NULL, NULL);
    world_wait(world, 0);
    assert_int_equal(seen_count(world, LANE_JOB), 1);
    world_break_lane(world, "r1");
    world_beat(world, "r2", "run", 2, NULL);
    assert_int_equal(seen_count(world, LANE_JOB), 1);
    world_close(world);
}

static void a_trial_that_is_let_go_and_cancelled_in_the_queue_is_replaced(void **state)
{
    (void)state;
    struct world *world = open_runs(1, 2, 2);
    engine_fails(world, "r1", "run:g/0");
    engine_fails(world, "r1", "run:g/1");
    world_beat_with(world, "r1", "run", (struct beat){.slots = 2, .draining = true}, NULL);
    world_wait(world, 2000); /* one is let go, and nobody takes it */
    world_cancel(world, "g/0", NULL, NULL);
    world_beat(world, "r1", "run", 2, NULL);
    world_wait(world, 1000);
    expect_job(world, "r1", "run:g/1");
    world_close(world);
}

static void while_one_engine_is_set_aside_the_others_do_its_work(void **state)
{
    (void)state;
    struct world *world = open_runs(1, 4, 2);
    world_engine(world, MSG_engine_add, b_url);
    engine_fails(world, "r1", "run:g/0");
    assert_string_equal(expect(world, LANE_JOB)->engine, b_url);
    expect_job(world, "r1", "run:g/0"); /* at once */
    world_reach_run(world, "h", 4);
    for (unsigned i = 0; i < 2; i++)
        assert_string_equal(seen_nth(world, LANE_JOB, i)->engine, b_url);
    world_wait(world, 2000);
    world_result(world, "r1", "run:h/0", token_of(world, "run:h/0"), "ok");
    assert_string_equal(expect(world, LANE_JOB)->engine, a_url); /* its trial */
    world_close(world);
}

static void a_rollout_that_breaks_an_engine_alone_uses_up_its_budget(void **state)
{
    (void)state;
    struct world *world = open_runs(2, 1, 1);
    unsigned faults = 0;
    while (!seen_count(world, PERSIST_END)) {
        assert_true(faults < 20);
        for (unsigned s = 0; faults && !seen_count(world, LANE_JOB); s++) {
            assert_true(s < 200);
            world_wait(world, 1000);
        }
        engine_fails(world, "r1", "run:g/0");
        faults++;
    }
    assert_int_equal(faults, 8); /* infra_budget */
    expect_end(world, "g/0", OUTCOME_INFRA);
    world_close(world);
}

static void an_engine_that_is_removed_and_added_again_begins_anew(void **state)
{
    (void)state;
    struct world *world = open_runs(1, 2, 2);
    engine_fails(world, "r1", "run:g/0");
    world_engine(world, MSG_engine_remove, a_url);
    world_wait(world, 10000);
    assert_null(seen_nth(world, LANE_JOB, 0));
    assert_string_equal(state_of(world, "g/0"), "queued");
    world_engine(world, MSG_engine_add, a_url);
    expect_job(world, "r1", "run:g/0");
    world_close(world);
}

/* An outage of an hour, with everything that waits for its end. */
struct outage {
    struct world *world;
    uint64_t handed_out, ended, ok, failures;
    bool is_down;
    struct {
        char job[64];
        uint64_t token;
    } inbox[512];
    size_t count;
};

static void take_effects(struct outage *outage)
{
    core_dispatch(outage->world->core, outage->world->now_ms);
    struct effects effects = core_effects(outage->world->core);
    for (size_t i = 0; i < effects.count; i++) {
        const struct effect *effect = &effects.items[i];
        outage->failures += effect->kind == PERSIST_FAILURES;
        outage->ended += effect->kind == PERSIST_END;
        outage->ok += effect->kind == PERSIST_END && effect->outcome == OUTCOME_OK;
        if (effect->kind != LANE_JOB)
            continue;
        assert_true(outage->count < 512);
        world_copy(outage->inbox[outage->count].job, 64, effect->job);
        outage->inbox[outage->count++].token = effect->token;
        outage->handed_out += effect->stage == STAGE_RUN;
    }
    core_effects_clear(outage->world->core);
}

static void answer_all(struct outage *outage)
{
    struct world *world = outage->world;
    for (size_t i = outage->count; i-- > 0;) {
        char job[64];
        memcpy(job, outage->inbox[i].job, sizeof(job));
        bool fails = outage->is_down && strncmp(job, "run", 3) == 0;
        char worker[4] = {job[0], '1', '\0'};
        struct msg_job_result in = {.worker = TEXT(worker),
                                    .job = TEXT(job),
                                    .token = outage->inbox[i].token,
                                    .ms = 10,
                                    .outcome = TEXT(fails ? "infra" : "ok"),
                                    .fault = TEXT("engine"),
                                    .has_fault = fails,
                                    .detail = TEXT("connection refused")};
        outage->inbox[i] = outage->inbox[--outage->count];
        core_handle(world->core, world->now_ms, WALL_MS, &(struct caller){0}, MSG_job_result, &in, NULL, 0);
        take_effects(outage);
    }
}

static void an_engine_down_for_an_hour_costs_no_rollout(void **state)
{
    (void)state;
    enum { GROUPS = 50, EACH = 200, SLOTS = 64 };
    struct world *world = open_with(5);
    struct outage outage = {.world = world, .is_down = true};
    world->task.needs_engine = true;
    world->settings.rollouts_max = 20000;
    world_engine(world, MSG_engine_add, a_url);
    world_beat(world, "i1", "init", SLOTS, NULL);
    world_beat(world, "r1", "run", SLOTS, NULL);
    world_beat(world, "e1", "eval", SLOTS, NULL);
    for (unsigned i = 0; i < GROUPS; i++) {
        char group[16], job[32];
        snprintf(group, sizeof(group), "g%u", i);
        snprintf(job, sizeof(job), "init:%s", group);
        world_submit(world, group, EACH);
        struct msg_job_result in = {
            .worker = TEXT("i1"), .job = TEXT(job), .token = token_of(world, job), .outcome = TEXT("ok"), .ms = 1};
        core_handle(world->core, world->now_ms, WALL_MS, &(struct caller){0}, MSG_job_result, &in, NULL, 0);
        take_effects(&outage);
    }
    int64_t until_ms = world->now_ms + 3600000;
    while (world->now_ms < until_ms) {
        world->now_ms += 500;
        core_tick(world->core, world->now_ms, WALL_MS);
        take_effects(&outage);
        answer_all(&outage);
    }
    assert_null(core_check(world->core));
    assert_int_equal(outage.ended, 0);
    assert_in_range(outage.failures, 1, 4);                     /* the faults before it was known */
    assert_in_range(outage.handed_out, SLOTS + 50, SLOTS + 80); /* and a trial a minute */
    outage.is_down = false;
    for (unsigned i = 0; i < 2000 && outage.ended < GROUPS * EACH; i++) {
        world->now_ms += 500;
        core_tick(world->core, world->now_ms, WALL_MS);
        take_effects(&outage);
        answer_all(&outage);
    }
    assert_int_equal(outage.ended, GROUPS * EACH);
    assert_int_equal(outage.ok, GROUPS * EACH);
    assert_null(core_check(world->core));
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_in_a_row_set_an_engine_aside_and_a_success_between_them_does_not),
        cmocka_unit_test(one_job_tries_an_engine_and_each_failure_doubles_the_wait),
        cmocka_unit_test(what_was_handed_out_before_says_nothing_new),
        cmocka_unit_test(what_was_handed_out_before_says_nothing_new_once_a_trial_is_due),
        cmocka_unit_test(a_trial_that_ends_without_a_word_is_followed_by_the_next),
        cmocka_unit_test(a_trial_that_is_let_go_and_cancelled_in_the_queue_is_replaced),
        cmocka_unit_test(while_one_engine_is_set_aside_the_others_do_its_work),
        cmocka_unit_test(a_rollout_that_breaks_an_engine_alone_uses_up_its_budget),
        cmocka_unit_test(an_engine_that_is_removed_and_added_again_begins_anew),
        cmocka_unit_test(an_engine_down_for_an_hour_costs_no_rollout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
