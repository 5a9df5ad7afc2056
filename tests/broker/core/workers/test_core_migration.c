/* Rollouts leave an overloaded engine: when, which, where to, and never to and fro. */
#include "tests/broker/core/core_breaker_world.h"

static const char a_url[] = "http://a:8000", b_url[] = "http://b:8000", c_url[] = "http://c:8000";

/* An engine, and nothing that ends by itself. */
static struct world *open_with_engine(int64_t overload_ms)
{
    struct world *world = world_create();
    world->settings.beat_timeout_ms = 100000000;
    world->settings.hold_grace_ms = 100000000;
    world->settings.overload_ms = overload_ms;
    world->task.needs_engine = true;
    world->task.limit_ms[STAGE_RUN] = 10000000;
    world_start(world);
    world_settle(world);
    world_engine(world, MSG_engine_add, a_url);
    return world;
}

/* Eight rollouts on a, of 1000 tokens each; then b and c, with nothing. */
static struct world *open_with_load(void)
{
    struct world *world = open_with_engine(30000);
    world_beat(world, "r1", "run", 4, NULL);
    world_beat(world, "r2", "run", 4, NULL);
    world_reach_run(world, "g", 8);
    assert_int_equal(seen_count(world, LANE_JOB), 8);
    world_engine(world, MSG_engine_add, b_url);
    world_engine(world, MSG_engine_add, c_url);
    return world;
}

static void see(struct world *world, const char *url, uint64_t runs, uint64_t tokens, uint64_t permille)
{
    struct msg_engine_load in = {.worker = TEXT("r1"),
                                 .url = TEXT(url),
                                 .runs = runs,
                                 .tokens = tokens,
                                 .has_cache_permille = true,
                                 .cache_permille = permille};
    world_say(world, "", MSG_engine_load, &in);
}

/* The job.migrate sent just now, or NULL. */
static const struct seen *told(const struct world *world)
{
    for (size_t i = 0; i < world->seen_count; i++)
        if (world->seen[i].kind == LANE_SEND && world->seen[i].message == MSG_job_migrate)
            return &world->seen[i];
    return NULL;
}

/* a's cache is at the top for as long as it takes; what was told then. */
static const struct seen *overload(struct world *world)
{
    see(world, a_url, 8, 8000, 1000);
    assert_null(told(world));
    world_wait(world, 30000);
    see(world, a_url, 8, 8000, 1000);
    return told(world);
}

static void migrated(struct world *world, const struct seen *migration, const char *worker, const char *engine)
{
    struct msg_job_migrated in = {
        .worker = TEXT(worker), .job = TEXT(migration->job), .token = migration->token, .engine = TEXT(engine)};
    world_say(world, "", MSG_job_migrated, &in);
}

static long long live_of(struct world *world, unsigned engine)
{
    struct buffer out = {0};
    assert_true(core_status(world->core, world->now_ms, &out));
    json_t *status = json_loadb((const char *)out.data, out.len, 0, NULL);
    long long live = json_integer_value(
        json_object_get(json_array_get(json_object_get(status, "engines"), engine), "live"));
    json_decref(status);
    buffer_finish(&out);
    return live;
}

/* ---- when -------------------------------------------------------------------------- */

static void one_rollout_migrates_once_its_engine_was_overloaded_for_long_enough(void **state)
{
    (void)state;
    struct world *world = open_with_load();
    struct seen migration = *overload(world);
    assert_string_equal(migration.job, "run:g/7"); /* the last, with the shortest context */
    assert_int_equal(migration.token, token_of(world, "run:g/7"));
    assert_int_equal(live_of(world, 0), 8); /* until it says so */
    migrated(world, &migration, migration.worker, migration.engine);
    assert_int_equal(live_of(world, 0), 7);
    assert_int_equal(live_of(world, strcmp(migration.engine, b_url) ? 2 : 1), 1);
    world_result(world, migration.worker, migration.job, migration.token, "ok");
    assert_string_equal(expect(world, PERSIST_RUN)->engine, migration.engine);
    world_close(world);
}

static void what_passes_or_is_shared_by_all_migrates_nobody(void **state)
{
    (void)state;
    struct world *world = open_with_load();
    see(world, a_url, 8, 8000, 1000);
    world_wait(world, 29999);
    see(world, a_url, 8, 8000, 1000);
    assert_null(told(world));
    see(world, a_url, 8, 8000, 949); /* its cache is not at the top: the time begins again */
    world_wait(world, 30000);
    see(world, a_url, 8, 8000, 1000);
    assert_null(told(world));
    world_beat(world, "r3", "run", 12, NULL);
    world_reach_run(world, "h", 12); /* six each */
    see(world, b_url, 6, 6000, 700);
    see(world, c_url, 6, 6000, 700);
    world_wait(world, 30000);
    see(world, a_url, 8, 8000, 1000); /* 20 % above the mean: as it should be */
    assert_null(told(world));
    world_close(world);
}

static void migration_may_be_off(void **state)
{
    (void)state;
    struct world *world = open_with_engine(0);
    world_beat(world, "r1", "run", 8, NULL);
    world_reach_run(world, "g", 8);
    world_engine(world, MSG_engine_add, b_url);
    assert_null(overload(world));
    world_close(world);
}

/* ---- where to ---------------------------------------------------------------------- */

static void it_goes_to_the_engine_that_holds_least_and_has_room(void **state)
{
    (void)state;
    struct world *world = open_with_load();
    see(world, b_url, 1, 900, 100);
    see(world, c_url, 1, 10, 850); /* which holds less, but its cache is full */
    assert_string_equal(overload(world)->engine, b_url);
    world_close(world);
    world = open_with_load();
    struct msg_engine_drain drain = {.tag = 18, .url = TEXT(b_url)};
    world_say(world, "operator", MSG_engine_drain, &drain);
    assert_string_equal(overload(world)->engine, c_url);
    world_engine(world, MSG_engine_remove, c_url);
    see(world, a_url, 8, 8000, 1000);
    assert_null(told(world)); /* there is none */
    world_close(world);
}

/* ---- never to and fro -------------------------------------------------------------- */

static void a_rollout_is_told_once_in_a_run(void **state)
{
    (void)state;
    struct world *world = open_with_load();
    struct seen first = *overload(world);
    migrated(world, &first, first.worker, first.engine);
    for (unsigned i = 0; i < 4; i++) {
        see(world, a_url, 8, 8000, 1000);
        assert_non_null(told(world));
        struct seen next = *told(world);
        assert_string_not_equal(next.job, first.job);
        see(world, a_url, 8, 8000, 1000);
        assert_null(told(world)); /* one at a time */
        migrated(world, &next, next.worker, next.engine);
    }
    see(world, a_url, 8, 8000, 1000);
    assert_null(told(world)); /* what is left there is what the others have */
    see(world, a_url, 0, 0, 100);
    see(world, first.engine, 8, 80000, 1000); /* it is the other one's turn to be full */
    world_wait(world, 30000);
    see(world, first.engine, 8, 80000, 1000);
    assert_null(told(world));
    world_result(world, first.worker, first.job, first.token, "cancelled"); /* given back: a new run */
    world_beat(world, first.worker, "run", 4, NULL);
    assert_true(token_of(world, first.job) > first.token);
    world_close(world);
}

static void one_that_had_to_stay_is_not_followed_at_once(void **state)
{
    (void)state;
    struct world *world = open_with_load();
    struct seen migration = *overload(world);
    migrated(world, &migration, migration.worker, a_url);
    assert_int_equal(live_of(world, 0), 8);
    see(world, a_url, 8, 8000, 1000);
    assert_null(told(world));
    world_wait(world, 30000);
    see(world, a_url, 8, 8000, 1000);
    assert_string_equal(told(world)->job, "run:g/6");
    world_close(world);
}

/* ---- what is said of what nobody has ----------------------------------------------- */

static void only_who_has_the_job_says_where_it_is(void **state)
{
    (void)state;
    struct world *world = open_with_load();
    struct seen migration = *overload(world);
    migrated(world, &migration, strcmp(migration.worker, "r1") ? "r1" : "r2", migration.engine);
    assert_int_equal(live_of(world, 0), 8);
    struct seen other = migration;
    other.token++;
    migrated(world, &other, migration.worker, migration.engine);
    assert_int_equal(live_of(world, 0), 8);
    world_engine(world, MSG_engine_remove, migration.engine);
    migrated(world, &migration, migration.worker, migration.engine); /* it is gone since: some engine it is */
    assert_int_equal(live_of(world, 0), 7);
    world_result(world, migration.worker, migration.job, migration.token, "ok");
    migrated(world, &migration, migration.worker, a_url);
    assert_int_equal(live_of(world, 0), 7);
    world_close(world);
}

static void the_last_rollout_that_migrates_from_an_engine_that_was_removed_takes_it_along(void **state)
{
    (void)state;
    struct world *world = open_with_engine(30000);
    world_beat(world, "r1", "run", 1, NULL);
    world_reach_run(world, "g", 1);
    struct seen lease = {.token = token_of(world, "run:g/0")};
    snprintf(lease.job, sizeof(lease.job), "run:g/0");
    world_engine(world, MSG_engine_add, b_url);
    world_engine(world, MSG_engine_remove, a_url);
    assert_int_equal(live_of(world, 0), 0); /* b's: only it is listed */
    migrated(world, &lease, "r1", b_url);
    assert_int_equal(live_of(world, 0), 1);
    world_close(world);
}

static void a_pause_of_the_engine_it_went_to_gives_it_time(void **state)
{
    (void)state;
    struct world *world = open_with_load();
    struct seen migration = *overload(world);
    struct msg_policy_pause pause = {
        .tag = 20, .calls = TEXT("finish"), .bound_ms = 3600000, .engine = TEXT(migration.engine), .has_engine = true};
    world_say(world, "trainer", MSG_policy_pause, &pause);
    migrated(world, &migration, migration.worker, migration.engine);
    world_wait(world, 10000000 + 30000); /* its limit and the grace */
    assert_false(was_told(world, migration.worker, MSG_job_cancel, migration.job));
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rollout_migrates_once_its_engine_was_overloaded_for_long_enough),
        cmocka_unit_test(what_passes_or_is_shared_by_all_migrates_nobody),
        cmocka_unit_test(migration_may_be_off),
        cmocka_unit_test(it_goes_to_the_engine_that_holds_least_and_has_room),
        cmocka_unit_test(a_rollout_is_told_once_in_a_run),
        cmocka_unit_test(one_that_had_to_stay_is_not_followed_at_once),
        cmocka_unit_test(only_who_has_the_job_says_where_it_is),
        cmocka_unit_test(the_last_rollout_that_migrates_from_an_engine_that_was_removed_takes_it_along),
        cmocka_unit_test(a_pause_of_the_engine_it_went_to_gives_it_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
