/* rollout.watch: who is told what a rollout does while it works, by whom, and for how long. */
#include "tests/broker/core/core_world.h"

static void watch_as(struct world *world, const char *client, uint64_t tag, const char *rollout, bool anew)
{
    struct msg_rollout_watch in = {.tag = tag, .rollout = TEXT(rollout), .has_anew = anew, .anew = anew};
    world_say(world, client, MSG_rollout_watch, &in);
}

static void watch(struct world *world, const char *rollout) { watch_as(world, "viewer", 41, rollout, false); }

static void tell(struct world *world, const char *worker, const char *job, uint64_t token, uint64_t number)
{
    struct msg_rollout_live in = {.worker = TEXT(worker),
                                  .job = TEXT(job),
                                  .token = token,
                                  .number = number,
                                  .count = 2,
                                  .events = TEXT("[{},{}]")};
    world_say(world, "", MSG_rollout_live, &in);
}

static const struct seen *told(const struct world *world, const char *worker)
{
    for (size_t i = 0; i < world->seen_count; i++)
        if (world->seen[i].kind == LANE_SEND && world->seen[i].message == MSG_lane_watch &&
            strcmp(world->seen[i].worker, worker) == 0)
            return &world->seen[i];
    return NULL;
}

static const struct seen *expect_told(const struct world *world, const char *worker, const char *job, bool anew)
{
    const struct seen *seen = told(world, worker);
    assert_non_null(seen);
    assert_string_equal(seen->job, job);
    assert_int_equal(seen->ms, 15000);
    assert_int_equal(seen->known, anew);
    return seen;
}

/* A group of two whose first run is at r1. */
static struct world *world_of_runs(uint64_t *ret_token)
{
    struct world *world = world_open();
    world_reach_run(world, "g", 2);
    world_beat(world, "r1", "run", 1, NULL);
    *ret_token = expect_job(world, "r1", "run:g/0");
    return world;
}

static void who_watches_is_told_where_it_is_and_then_what_its_worker_says(void **state)
{
    (void)state;
    uint64_t token;
    struct world *world = world_of_runs(&token);
    watch(world, "g/0");
    const struct seen *answer = expect_answer(world, MSG_rollout_state);
    assert_string_equal(answer->state, "leased");
    assert_string_equal(answer->worker, "r1");
    assert_int_equal(expect_told(world, "r1", "run:g/0", true)->token, token);
    tell(world, "r1", "run:g/0", token, 17);
    assert_int_equal(seen_count(world, SEND_EVENTS), 1);
    const struct seen *events = expect(world, SEND_EVENTS);
    assert_string_equal(events->client, "viewer");
    assert_string_equal(events->rollout, "g/0");
    assert_string_equal(events->stage, "run");
    assert_string_equal(events->text, "[{},{}]");
    assert_int_equal(events->tag, 41);
    assert_int_equal(events->seq, 17);
    assert_int_equal(events->count, 2);
    assert_int_equal(events->attempt, 1);
    world_close(world);
}

static void without_a_watcher_nothing_is_asked_and_nothing_told(void **state)
{
    (void)state;
    uint64_t token;
    struct world *world = world_of_runs(&token);
    assert_null(told(world, "r1"));
    tell(world, "r1", "run:g/0", token, 1);
    assert_int_equal(seen_count(world, SEND_EVENTS), 0);
    watch(world, "g/1");
    assert_null(told(world, "r1"));
    tell(world, "r1", "run:g/0", token, 1);
    assert_int_equal(seen_count(world, SEND_EVENTS), 0);
    world_close(world);
}

static void a_watch_is_over_after_its_time_unless_it_is_repeated(void **state)
{
    (void)state;
    uint64_t token;
    struct world *world = world_of_runs(&token);
    watch(world, "g/0");
    world_wait(world, 2000);
    world_beat(world, "r1", "run", 1, "run:g/0", token, NULL);
    watch(world, "g/0");
    assert_null(told(world, "r1")); /* it knows for long enough */
    watch_as(world, "viewer", 41, "g/0", true);
    expect_told(world, "r1", "run:g/0", true);
    for (int i = 0; i < 6; i++) {
        world_wait(world, 1000);
        world_beat(world, "r1", "run", 1, "run:g/0", token, NULL);
    }
    watch(world, "g/0");
    expect_told(world, "r1", "run:g/0", false);
    for (int i = 0; i < 14; i++) {
        world_wait(world, 1000);
        world_beat(world, "r1", "run", 1, "run:g/0", token, NULL);
        tell(world, "r1", "run:g/0", token, 5);
        assert_int_equal(seen_count(world, SEND_EVENTS), 1);
    }
    world_wait(world, 1000);
    tell(world, "r1", "run:g/0", token, 5);
    assert_int_equal(seen_count(world, SEND_EVENTS), 0);
    world_close(world);
}

static void what_another_worker_or_dispatch_says_is_dropped(void **state)
{
    (void)state;
    uint64_t token;
    struct world *world = world_of_runs(&token);
    watch(world, "g/0");
    tell(world, "r2", "run:g/0", token, 1);
    assert_int_equal(seen_count(world, SEND_EVENTS), 0);
    tell(world, "r1", "run:g/0", token + 1, 1);
    assert_int_equal(seen_count(world, SEND_EVENTS), 0);
    tell(world, "r1", "run:g/1", token, 1);
    assert_int_equal(seen_count(world, SEND_EVENTS), 0);
    world->key = "another"; /* under the first one's id */
    tell(world, "r1", "run:g/0", token, 1);
    assert_int_equal(seen_count(world, SEND_EVENTS), 0);
    world->key = NULL;
    world_result(world, "r1", "run:g/0", token, "ok");
    tell(world, "r1", "run:g/0", token, 1);
    assert_int_equal(seen_count(world, SEND_EVENTS), 0);
    world_close(world);
}

static void only_its_owner_and_admins_may_watch(void **state)
{
    (void)state;
    struct world *world = world_open();
    world->name = "ann";
    world_submit(world, "g", 1);
    world->name = "bob";
    watch(world, "g/0");
    assert_string_equal(expect_refused(world, REFUSAL_NOT_ALLOWED)->field, "rollout");
    world->is_admin = true;
    watch(world, "g/0");
    expect_answer(world, MSG_rollout_state);
    world->is_admin = false;
    world->name = "ann";
    watch(world, "g/0");
    expect_answer(world, MSG_rollout_state);
    watch(world, "g/9");
    expect_refused(world, REFUSAL_UNKNOWN_ROLLOUT);
    world_close(world);
}

static void one_that_is_not_at_work_yet_is_watched_from_its_hand_out_on(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_submit(world, "g", 1);
    world_submit(world, "gg", 1);
    watch(world, "g/0");
    assert_string_equal(expect_answer(world, MSG_rollout_state)->state, "queued");
    world_beat(world, "i1", "init", 8, NULL);
    const uint64_t init = expect_job(world, "i1", "init:g");
    expect_told(world, "i1", "init:g", true);
    tell(world, "i1", "init:g", init, 1); /* a group's init is each of its rollouts' */
    assert_string_equal(expect(world, SEND_EVENTS)->rollout, "g/0");
    assert_string_equal(expect(world, SEND_EVENTS)->stage, "init");
    tell(world, "i1", "init:gg", token_of(world, "init:gg"), 1);
    assert_int_equal(seen_count(world, SEND_EVENTS), 0);
    world_beat(world, "r1", "run", 8, NULL);
    world_result(world, "i1", "init:g", init, "ok");
    expect_job(world, "r1", "run:g/0");
    expect_told(world, "r1", "run:g/0", true);
    world_beat(world, "e1", "eval", 8, NULL);
    world_result(world, "r1", "run:g/0", token_of(world, "run:g/0"), "ok");
    expect_told(world, "e1", "eval:g/0", true);
    world_result(world, "e1", "eval:g/0", token_of(world, "eval:g/0"), "ok");
    watch(world, "g/0");
    assert_int_equal(expect_answer(world, MSG_done)->count, 0);
    world_close(world);
}

static void each_viewer_is_told_with_its_own_tag(void **state)
{
    (void)state;
    uint64_t token;
    struct world *world = world_of_runs(&token);
    watch_as(world, "one", 1, "g/0", true);
    watch_as(world, "two", 2, "g/0", true);
    watch_as(world, "two", 2, "g/0", false);
    tell(world, "r1", "run:g/0", token, 1);
    assert_int_equal(seen_count(world, SEND_EVENTS), 2);
    assert_string_equal(seen_nth(world, SEND_EVENTS, 0)->client, "one");
    assert_int_equal(seen_nth(world, SEND_EVENTS, 1)->tag, 2);
    world_close(world);
}

static void as_many_watch_as_may_and_those_that_are_over_make_room(void **state)
{
    (void)state;
    struct world *world = world_open();
    char rollout[32];
    world_submit(world, "g", 300);
    for (int i = 0; i < 256; i++) {
        snprintf(rollout, sizeof(rollout), "g/%d", i);
        watch(world, rollout);
        expect_answer(world, MSG_rollout_state);
    }
    watch(world, "g/256");
    assert_non_null(strstr(expect_refused(world, REFUSAL_QUEUE_FULL)->text, "as many rollouts are watched as may be"));
    for (uint64_t i = 1; i < 64; i++)
        watch_as(world, "viewer", 100 + i, "g/0", false);
    expect_answer(world, MSG_rollout_state);
    watch_as(world, "viewer", 99, "g/0", false);
    assert_non_null(strstr(expect_refused(world, REFUSAL_QUEUE_FULL)->text, "as many watch this rollout as may"));
    assert_int_equal(expect_refused(world, REFUSAL_QUEUE_FULL)->retry_ms, 1000);
    world_wait(world, 15000);
    watch(world, "g/256");
    expect_answer(world, MSG_rollout_state);
    world_close(world);
}

static void beyond_a_cycles_bytes_events_are_dropped_and_counted(void **state)
{
    (void)state;
    static char events[65001];
    uint64_t token;
    struct world *world = world_of_runs(&token);
    memset(events, ' ', sizeof(events) - 1);
    memcpy(events, "[{}]", 4);
    for (uint64_t i = 0; i < 60; i++)
        watch_as(world, "viewer", i, "g/0", false);
    struct msg_rollout_live in = {
        .worker = TEXT("r1"), .job = TEXT("run:g/0"), .token = token, .number = 1, .count = 1, .events = TEXT(events)};
    struct caller worker = {0};
    for (int i = 0; i < 3; i++) /* in one cycle */
        core_handle(world->core, world->now_ms, WALL_MS, &worker, MSG_rollout_live, &in, NULL, 0);
    world_settle(world);
    assert_in_range(seen_count(world, SEND_EVENTS), 60, 66);
    assert_non_null(strstr(world_status(world), "\"live\":3"));
    assert_null(strstr(world_status(world), "\"live_dropped\":0"));
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_watches_is_told_where_it_is_and_then_what_its_worker_says),
        cmocka_unit_test(without_a_watcher_nothing_is_asked_and_nothing_told),
        cmocka_unit_test(a_watch_is_over_after_its_time_unless_it_is_repeated),
        cmocka_unit_test(what_another_worker_or_dispatch_says_is_dropped),
        cmocka_unit_test(only_its_owner_and_admins_may_watch),
        cmocka_unit_test(one_that_is_not_at_work_yet_is_watched_from_its_hand_out_on),
        cmocka_unit_test(each_viewer_is_told_with_its_own_tag),
        cmocka_unit_test(as_many_watch_as_may_and_those_that_are_over_make_room),
        cmocka_unit_test(beyond_a_cycles_bytes_events_are_dropped_and_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
