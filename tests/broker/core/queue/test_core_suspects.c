/* Jobs whose workers die: suspects, running alone, blame. */
#include "tests/broker/core/core_world.h"

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
    world_reach_run(world, "h", 2);
    world_beat(world, "r2", "run", 1, NULL);
    uint64_t token = expect_job(world, "r2", "run:h/0");
    world->priority = 9;
    world_reach_run(world, "g", 1);
    for (unsigned death = 0; death < 2; death++) {
        world_beat(world, "r1", "run", 1, NULL);
        expect_job(world, "r1", "run:g/0");
        world_break_lane(world, "r1");
    }
    world_beat(world, "r2", "run", 2, "run:h/0", token, NULL); /* busy with h/0 */
    assert_int_equal(seen_count(world, LANE_JOB), 0);          /* and kept for g/0 */
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
        cmocka_unit_test(a_suspect_reruns_then_runs_alone_and_only_then_is_blamed),
        cmocka_unit_test(a_busy_worker_is_kept_from_new_work_until_it_can_take_a_suspect_alone),
        cmocka_unit_test(a_worker_kept_for_a_suspect_is_free_again_when_the_suspect_is_cancelled),
        cmocka_unit_test(a_poison_job_is_set_aside_and_no_innocent_is),
        cmocka_unit_test(a_suspect_that_succeeds_is_cleared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
