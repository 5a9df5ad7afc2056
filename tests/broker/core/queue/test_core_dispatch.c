/* Who gets which job, and which engine. */
#include "tests/broker/core/core_world.h"

static void no_worker_gets_more_than_its_slots(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_run(world, "g", 10);
    world_beat(world, "r1", "run", 3, NULL);
    assert_int_equal(seen_count(world, LANE_JOB), 3);
    world_beat(world, "r2", "run", 2, NULL);
    assert_int_equal(seen_count(world, LANE_JOB), 2);
    world_result(world, "r1", "run:g/0", token_of(world, "run:g/0"), "ok");
    assert_int_equal(seen_count(world, LANE_JOB), 1);
    world_close(world);
}

static void jobs_spread_to_the_worker_with_the_most_free_slots(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_beat(world, "r1", "run", 2, NULL);
    world_beat(world, "r2", "run", 6, NULL);
    world_beat(world, "r3", "run", 4, NULL);
    world_reach_run(world, "g", 9);
    size_t got[4] = {0};
    for (size_t i = 0; i < 9; i++)
        got[seen_nth(world, LANE_JOB, i)->worker[1] - '0']++;
    assert_int_equal(got[1], 1); /* each is left with one free slot */
    assert_int_equal(got[2], 5);
    assert_int_equal(got[3], 3);
    world_close(world);
}

static void tokens_grow_and_carry_the_epoch(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_beat(world, "r1", "run", 8, NULL);
    world_reach_run(world, "g", 8);
    for (size_t i = 0; i < 8; i++) {
        uint64_t token = seen_nth(world, LANE_JOB, i)->token;
        assert_int_equal(token >> 32, 3);
        assert_true(i == 0 || token > seen_nth(world, LANE_JOB, i - 1)->token);
    }
    world_close(world);
}

static void workers_only_get_jobs_of_their_stage(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_beat(world, "e1", "eval", 8, NULL);
    world_beat(world, "r1", "run", 8, NULL);
    world_submit(world, "g", 1);
    assert_int_equal(seen_count(world, LANE_JOB), 0);
    world_close(world);
}

static void fewer_slots_than_jobs_take_nothing_away(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_run(world, "g", 6);
    world_beat(world, "r1", "run", 4, NULL);
    world_beat(world, "r1", "run", 1, "run:g/0", token_of(world, "run:g/0"), NULL);
    assert_int_equal(seen_count(world, LANE_SEND) + seen_count(world, LANE_JOB), 0);
    world_result(world, "r1", "run:g/0", token_of(world, "run:g/0"), "ok");
    assert_int_equal(seen_count(world, LANE_JOB), 1); /* its slots follow at the next beat */
    world_close(world);
}

/* ---- engines ----------------------------------------------------------------------- */

static struct world *open_with_engines(unsigned count)
{
    struct world *world = world_open();
    world->task.needs_engine = true;
    for (unsigned i = 0; i < count; i++) {
        char url[64];
        snprintf(url, sizeof(url), "http://10.0.0.%u:8000", i);
        world_engine(world, MSG_engine_add, url);
        assert_int_equal(expect_answer(world, MSG_done)->count, 1);
    }
    return world;
}

static void an_engine_is_persisted_once_and_its_slash_stripped(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_engine(world, MSG_engine_add, "http://127.0.0.1:8080/");
    assert_string_equal(expect(world, PERSIST_ENGINE)->engine, "http://127.0.0.1:8080");
    assert_true(expect(world, PERSIST_ENGINE)->present);
    world_engine(world, MSG_engine_add, "http://127.0.0.1:8080");
    assert_int_equal(expect_answer(world, MSG_done)->count, 0);
    assert_int_equal(seen_count(world, PERSIST_ENGINE), 0);
    world_engine(world, MSG_engine_remove, "http://127.0.0.1:8080//");
    assert_false(expect(world, PERSIST_ENGINE)->present);
    assert_string_equal(expect(world, PERSIST_ENGINE)->engine, "http://127.0.0.1:8080");
    world_engine(world, MSG_engine_remove, "http://127.0.0.1:8080");
    expect_refused(world, REFUSAL_UNKNOWN_ENGINE);
    world_close(world);
}

static void an_engine_that_is_no_url_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"127.0.0.1:8080", "ftp://host/x",   "http://",         "https:////",
                                      "http://a b",     "HTTP",           "http://h:0",      "http://h:99999",
                                      "http://[::1",    "http://h/#part", "http://h/?key=1", "http://u:p@q@h"};
    struct world *world = world_open();
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        world_engine(world, MSG_engine_add, bad[i]);
        assert_string_equal(expect_refused(world, REFUSAL_BAD_NAME)->field, "url");
        assert_int_equal(seen_count(world, PERSIST_ENGINE), 0);
    }
    world_engine(world, MSG_engine_add, "https://engines.example/a");
    expect(world, PERSIST_ENGINE);
    world_close(world);
}

static void engines_are_bounded(void **state)
{
    (void)state;
    struct world *world = world_open();
    char url[64];
    unsigned added = 0;
    for (unsigned i = 0; i < 2000; i++) {
        snprintf(url, sizeof(url), "http://host-%u:80", i);
        world_engine(world, MSG_engine_add, url);
        added += seen_count(world, PERSIST_ENGINE);
    }
    expect_refused(world, REFUSAL_QUEUE_FULL);
    assert_int_equal(added, 1024);
    world_engine(world, MSG_engine_remove, "http://host-0:80");
    world_engine(world, MSG_engine_add, url);
    expect(world, PERSIST_ENGINE);
    world_close(world);
}

static void runs_go_to_the_engine_with_the_fewest(void **state)
{
    (void)state;
    struct world *world = open_with_engines(3);
    world_beat(world, "r1", "run", 64, NULL);
    world_reach_run(world, "g", 6);
    unsigned load[3] = {0};
    for (size_t i = 0; i < 6; i++)
        load[seen_nth(world, LANE_JOB, i)->engine[strlen("http://10.0.0.")] - '0']++;
    assert_true(load[0] == 2 && load[1] == 2 && load[2] == 2);
    struct seen first = *seen_nth(world, LANE_JOB, 0);
    world_result(world, "r1", first.job, first.token, "ok");
    assert_string_equal(expect(world, PERSIST_RUN)->engine, first.engine);
    world_reach_run(world, "h", 1); /* to the one that has become freer */
    assert_string_equal(expect(world, LANE_JOB)->engine, first.engine);
    world_beat(world, "e1", "eval", 1, NULL);
    assert_string_equal(expect(world, LANE_JOB)->engine, ""); /* an eval samples nothing */
    world_reward(world, "e1", "eval:g/0", token_of(world, "eval:g/0"), 1);
    assert_string_equal(expect_end(world, "g/0", OUTCOME_OK)->end_engine, first.engine);
    world_close(world);
}

static void after_an_infra_fault_another_engine_is_tried(void **state)
{
    (void)state;
    struct world *world = open_with_engines(2);
    world->settings.beat_timeout_ms = 1000000;
    world_beat(world, "r1", "run", 1, NULL);
    world_reach_run(world, "g", 1);
    for (unsigned i = 0; i < 3; i++) {
        struct seen job = *expect(world, LANE_JOB);
        world_result(world, "r1", job.job, job.token, "infra");
        world_beat(world, "r1", "run", 1, NULL);
        world_wait(world, 4000);
        assert_string_not_equal(expect(world, LANE_JOB)->engine, job.engine);
    }
    world_close(world);
}

static void the_engine_of_an_older_dispatch_is_not_made_up(void **state)
{
    (void)state;
    struct world *world = open_with_engines(2);
    world_beat(world, "r1", "run", 1, NULL);
    world_reach_run(world, "g", 1);
    uint64_t first = token_of(world, "run:g/0");
    world_break_lane(world, "r1");
    world_beat(world, "r2", "run", 1, NULL);
    expect_job(world, "r2", "run:g/0");
    world_result(world, "r1", "run:g/0", first, "ok");
    assert_string_equal(expect(world, PERSIST_RUN)->engine, "");
    world_close(world);
}

static void the_engine_of_an_adopted_older_dispatch_is_not_made_up(void **state)
{
    (void)state;
    struct world *world = open_with_engines(2);
    world_beat(world, "r1", "run", 1, NULL);
    world_reach_run(world, "g", 1);
    uint64_t first = token_of(world, "run:g/0");
    world_break_lane(world, "r1");
    world_beat(world, "r2", "run", 1, NULL);
    expect_job(world, "r2", "run:g/0");
    world_break_lane(world, "r2");
    world_beat(world, "r1", "run", 1, "run:g/0", first, NULL);
    world_result(world, "r1", "run:g/0", first, "ok");
    assert_string_equal(expect(world, PERSIST_RUN)->engine, "");
    world_close(world);
}

static void runs_wait_while_there_is_no_engine_and_others_overtake_them(void **state)
{
    (void)state;
    struct world *world = open_with_engines(1);
    world_reach_run(world, "g", 3);
    world_engine(world, MSG_engine_remove, "http://10.0.0.0:8000");
    world->task.needs_engine = false;
    world_reach_run(world, "h", 1);
    world_beat(world, "r1", "run", 8, NULL);
    assert_int_equal(seen_count(world, LANE_JOB), 1);
    expect_job(world, "r1", "run:h/0");
    world_engine(world, MSG_engine_add, "http://10.0.0.9:8000");
    for (size_t k = 0; k < 3; k++)
        assert_int_equal(seen_nth(world, LANE_JOB, k)->rollout[2], '0' + k);
    assert_string_equal(expect(world, LANE_JOB)->engine, "http://10.0.0.9:8000");
    world_close(world);
}

static void a_removed_engine_keeps_its_runs_and_gets_no_more(void **state)
{
    (void)state;
    struct world *world = open_with_engines(2);
    world_beat(world, "r1", "run", 8, NULL);
    world_reach_run(world, "g", 1);
    struct seen job = *expect(world, LANE_JOB);
    world_engine(world, MSG_engine_remove, job.engine);
    assert_int_equal(seen_count(world, LANE_SEND), 0);
    world_reach_run(world, "h", 4);
    for (size_t k = 0; k < 4; k++)
        assert_string_not_equal(seen_nth(world, LANE_JOB, k)->engine, job.engine);
    world_result(world, "r1", job.job, job.token, "ok");
    assert_string_equal(expect(world, PERSIST_RUN)->engine, job.engine);
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_worker_gets_more_than_its_slots),
        cmocka_unit_test(jobs_spread_to_the_worker_with_the_most_free_slots),
        cmocka_unit_test(tokens_grow_and_carry_the_epoch),
        cmocka_unit_test(workers_only_get_jobs_of_their_stage),
        cmocka_unit_test(fewer_slots_than_jobs_take_nothing_away),
        cmocka_unit_test(an_engine_is_persisted_once_and_its_slash_stripped),
        cmocka_unit_test(an_engine_that_is_no_url_is_refused),
        cmocka_unit_test(engines_are_bounded),
        cmocka_unit_test(runs_go_to_the_engine_with_the_fewest),
        cmocka_unit_test(after_an_infra_fault_another_engine_is_tried),
        cmocka_unit_test(the_engine_of_an_older_dispatch_is_not_made_up),
        cmocka_unit_test(the_engine_of_an_adopted_older_dispatch_is_not_made_up),
        cmocka_unit_test(runs_wait_while_there_is_no_engine_and_others_overtake_them),
        cmocka_unit_test(a_removed_engine_keeps_its_runs_and_gets_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
