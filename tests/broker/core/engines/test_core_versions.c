/* Policy versions of engines, and their pauses: what workers are told, what is on disk, what ends a pause. */
#include <jansson.h>

#include "tests/broker/core/core_world.h"

static const char a_url[] = "http://a:8000", b_url[] = "http://b:8000";

static struct world *open_with_engines(void)
{
    struct world *world = world_create();
    world->settings.beat_timeout_ms = 100000000;
    world->settings.hold_grace_ms = 100000000;
    world->task.needs_engine = true;
    world_start(world);
    world_settle(world);
    world_engine(world, MSG_engine_add, a_url);
    world_engine(world, MSG_engine_add, b_url);
    world_beat(world, "r1", "run", 4, NULL);
    return world;
}

static void set(struct world *world, const char *version, const char *engine)
{
    struct msg_policy_set in = {.tag = 19, .version = TEXT(version), .engine = TEXT(engine), .has_engine = engine};
    world_say(world, "trainer", MSG_policy_set, &in);
}

static void pause_for(struct world *world, const char *calls, uint64_t bound_ms, const char *engine)
{
    struct msg_policy_pause in = {
        .tag = 20, .calls = TEXT(calls), .bound_ms = bound_ms, .engine = TEXT(engine), .has_engine = engine};
    world_say(world, "trainer", MSG_policy_pause, &in);
}

static void resume(struct world *world, const char *engine)
{
    struct msg_policy_resume in = {.tag = 21, .engine = TEXT(engine), .has_engine = engine};
    world_say(world, "trainer", MSG_policy_resume, &in);
}

static void see_calls(struct world *world, const char *worker, const char *engine, uint64_t calls)
{
    struct msg_engine_load in = {.worker = TEXT(worker), .url = TEXT(engine), .calls = calls};
    world_say(world, "", MSG_engine_load, &in);
}

/* The n-th lane.engine to this worker just now, or NULL. */
static const struct seen *told(const struct world *world, const char *worker, unsigned n)
{
    for (size_t i = 0; i < world->seen_count; i++) {
        const struct seen *seen = &world->seen[i];
        if (seen->kind == LANE_SEND && seen->message == MSG_lane_engine && !strcmp(seen->worker, worker) && n-- == 0)
            return seen;
    }
    return NULL;
}

static uint64_t count_of(const struct world *world) { return expect_answer(world, MSG_done)->count; }

static void take(struct world *world, const char *worker, uint64_t state)
{
    world_beat_with(world, worker, "run", (struct beat){.slots = 4, .engines = state}, NULL);
}

/* ---- versions ---------------------------------------------------------------------- */

static void a_version_is_on_disk_and_told_to_every_run_worker(void **state)
{
    (void)state;
    struct world *world = open_with_engines();
    world_beat(world, "r2", "run", 4, NULL);
    world_beat(world, "e1", "eval", 4, NULL);
    set(world, "step-7", NULL);
    assert_int_equal(count_of(world), 2);
    assert_int_equal(seen_count(world, PERSIST_ENGINE), 2);
    assert_string_equal(expect(world, PERSIST_ENGINE)->version, "step-7");
    assert_string_equal(told(world, "r1", 0)->version, "step-7");
    assert_string_equal(told(world, "r2", 1)->version, "step-7");
    assert_true(told(world, "r2", 1)->token > told(world, "r2", 0)->token);
    assert_string_equal(told(world, "r2", 0)->calls, "");
    assert_null(told(world, "e1", 0));
    set(world, "step-7", NULL); /* again: nothing changes */
    assert_int_equal(count_of(world), 2);
    assert_int_equal(seen_count(world, PERSIST_ENGINE) + seen_count(world, LANE_SEND), 0);
    set(world, "step-8", b_url);
    assert_int_equal(count_of(world), 1);
    assert_string_equal(told(world, "r1", 0)->engine, b_url);
    assert_null(told(world, "r1", 1));
    world_close(world);
}

static void a_version_has_a_number_by_its_name(void **state)
{
    (void)state;
    struct world *world = open_with_engines();
    set(world, "step-7", a_url);
    assert_int_equal(told(world, "r1", 0)->count, 1);
    set(world, "step-7", b_url); /* the same one */
    assert_int_equal(told(world, "r1", 0)->count, 1);
    set(world, "step-8", NULL);
    assert_int_equal(told(world, "r1", 0)->count, 2);
    assert_int_equal(told(world, "r1", 1)->count, 2);
    set(world, "step-7", a_url); /* one that nobody serves: it is new again */
    assert_int_equal(told(world, "r1", 0)->count, 3);
    set(world, "step-8", a_url);
    assert_int_equal(told(world, "r1", 0)->count, 2);
    world_engine(world, MSG_engine_remove, a_url);
    assert_int_equal(told(world, "r1", 0)->count, 0);
    world_close(world);
}

static void who_comes_later_or_has_not_heard_is_told_again(void **state)
{
    (void)state;
    struct world *world = open_with_engines();
    set(world, "v1", a_url);
    uint64_t first = told(world, "r1", 0)->token;
    set(world, "v2", b_url);
    uint64_t second = told(world, "r1", 0)->token;
    world_beat(world, "r2", "run", 4, NULL);
    assert_string_equal(told(world, "r2", 0)->version, "v1");
    assert_string_equal(told(world, "r2", 1)->version, "v2");
    take(world, "r2", second);
    assert_null(told(world, "r2", 0));
    take(world, "r1", first); /* the second was lost */
    assert_string_equal(told(world, "r1", 0)->version, "v2");
    assert_null(told(world, "r1", 1));
    take(world, "r1", second + 1); /* of another broker: it knows nothing of this one's */
    assert_non_null(told(world, "r1", 1));
    world_close(world);
}

static void what_cannot_be_meant_is_refused(void **state)
{
    (void)state;
    struct world *world = open_with_engines();
    set(world, "a b", NULL);
    expect_refused(world, REFUSAL_BAD_NAME);
    set(world, "v1", "http://nobody:1");
    expect_refused(world, REFUSAL_UNKNOWN_ENGINE);
    assert_string_equal(expect(world, SEND_CLIENT)->field, "engine");
    pause_for(world, "sing", 1000, NULL);
    expect_refused(world, REFUSAL_BAD_NAME);
    resume(world, NULL);
    assert_int_equal(count_of(world), 0);
    world_engine(world, MSG_engine_remove, a_url);
    world_engine(world, MSG_engine_remove, b_url);
    pause_for(world, "finish", 1000, NULL);
    expect_refused(world, REFUSAL_UNKNOWN_ENGINE);
    assert_int_equal(seen_count(world, PERSIST_ENGINE), 0);
    world_close(world);
}

/* ---- pauses ------------------------------------------------------------------------ */

static void a_pause_is_complete_once_every_worker_knows_and_nothing_is_in_flight(void **state)
{
    (void)state;
    struct world *world = open_with_engines();
    world_beat(world, "r2", "run", 4, NULL);
    see_calls(world, "r1", a_url, 3);
    see_calls(world, "r2", a_url, 2);
    pause_for(world, "finish", 60000, a_url);
    assert_int_equal(count_of(world), 7);
    const struct seen *word = told(world, "r1", 0);
    assert_string_equal(word->calls, "finish");
    assert_int_equal(word->ms, 60000);
    uint64_t change = word->token;
    see_calls(world, "r1", a_url, 0);
    take(world, "r1", change);
    pause_for(world, "finish", 60000, a_url);
    assert_int_equal(count_of(world), 3);
    assert_int_equal(seen_count(world, PERSIST_ENGINE), 0); /* asked again: only how far it is */
    take(world, "r2", change);
    see_calls(world, "r2", a_url, 1);
    pause_for(world, "finish", 60000, a_url);
    assert_int_equal(count_of(world), 1);
    see_calls(world, "r2", a_url, 0);
    pause_for(world, "finish", 60000, a_url);
    assert_int_equal(count_of(world), 0);
    resume(world, a_url);
    assert_int_equal(count_of(world), 1);
    assert_string_equal(told(world, "r1", 0)->calls, "");
    world_close(world);
}

static void held_calls_are_not_waited_for(void **state)
{
    (void)state;
    struct world *world = open_with_engines();
    see_calls(world, "r1", a_url, 3);
    pause_for(world, "hold", 60000, a_url);
    assert_int_equal(count_of(world), 1); /* the worker */
    take(world, "r1", told(world, "r1", 0)->token);
    pause_for(world, "hold", 60000, a_url);
    assert_int_equal(count_of(world), 0);
    world_close(world);
}

static void nothing_is_placed_on_a_paused_engine(void **state)
{
    (void)state;
    struct world *world = open_with_engines();
    pause_for(world, "finish", 60000, a_url);
    world_reach_run(world, "g", 2);
    assert_string_equal(seen_nth(world, LANE_JOB, 0)->engine, b_url);
    assert_string_equal(seen_nth(world, LANE_JOB, 1)->engine, b_url);
    pause_for(world, "finish", 60000, NULL);
    world_reach_run(world, "h", 1);
    assert_int_equal(seen_count(world, LANE_JOB), 0);
    resume(world, NULL);
    assert_int_equal(count_of(world), 2);
    assert_int_equal(seen_count(world, LANE_JOB), 1);
    world_close(world);
}

static void a_pause_ends_by_itself_when_its_time_is_over(void **state)
{
    (void)state;
    struct world *world = open_with_engines();
    pause_for(world, "abort", 60000, NULL);
    world_reach_run(world, "g", 1);
    world_wait(world, 0);
    assert_true(world->due_ms <= world->now_ms + 60000);
    world_wait(world, 59999);
    pause_for(world, "abort", 60000, NULL); /* does not make it longer */
    assert_int_equal(seen_count(world, LANE_JOB), 0);
    world_wait(world, 1);
    assert_int_equal(seen_count(world, LANE_JOB), 1);
    assert_int_equal(seen_count(world, PERSIST_ENGINE), 2);
    assert_string_equal(expect(world, PERSIST_ENGINE)->calls, "");
    assert_string_equal(told(world, "r1", 1)->calls, "");
    resume(world, NULL);
    assert_int_equal(count_of(world), 0); /* which says that it was over */
    world_close(world);
}

static void what_runs_there_gets_the_time_of_the_pause(void **state)
{
    (void)state;
    struct world *world = open_with_engines();
    world_reach_run(world, "g", 1);
    struct seen job = *expect(world, LANE_JOB);
    pause_for(world, "finish", 100000, job.engine);
    world_wait(world, 50001); /* beyond its limit of 20 s and the grace of 30 s */
    assert_false(was_told(world, "r1", MSG_job_cancel, NULL));
    resume(world, NULL);
    world_wait(world, 100000);
    assert_true(was_told(world, "r1", MSG_job_cancel, NULL));
    world_close(world);
}

static void a_pause_outlives_the_broker_and_ends_in_its_time(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.beat_timeout_ms = 100000000;
    world_start(world);
    core_restore_clock(world->core, WALL_MS);
    assert_true(core_restore_engine(world->core, &(struct core_engine){.url = TEXT(a_url),
                                                                       .version = TEXT("v1"),
                                                                       .version_number = 9,
                                                                       .calls = TEXT("finish"),
                                                                       .paused_until_ms = WALL_MS + 30000}));
    assert_true(core_restore_engine(/* the wall clock was set back by a year */
                                    world->core, &(struct core_engine){.url = TEXT(b_url),
                                                                       .calls = TEXT("finish"),
                                                                       .paused_until_ms = WALL_MS + 31536000000}));
    world_settle(world);
    world_beat(world, "r1", "run", 4, NULL);
    assert_string_equal(told(world, "r1", 0)->version, "v1");
    assert_int_equal(told(world, "r1", 0)->count, 9);
    assert_int_equal(told(world, "r1", 0)->ms, 30000);
    assert_int_equal(told(world, "r1", 1)->ms, 3600000);
    world_wait(world, 29999);
    assert_null(told(world, "r1", 0));
    world_wait(world, 1);
    assert_string_equal(told(world, "r1", 0)->engine, a_url);
    assert_string_equal(told(world, "r1", 0)->calls, "");
    assert_string_equal(told(world, "r1", 0)->version, "v1");
    set(world, "v2", b_url);
    assert_int_equal(told(world, "r1", 0)->count, 10); /* they go on where they were */
    world_close(world);
}

static void no_number_is_given_twice_nor_two_to_the_newest(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.beat_timeout_ms = 100000000;
    world_start(world);
    core_restore_versions(world->core, 9); /* of an engine that is not there any more */
    world_settle(world);
    world_beat(world, "r1", "run", 4, NULL);
    world_engine(world, MSG_engine_add, a_url);
    set(world, "v10", a_url);
    assert_int_equal(told(world, "r1", 0)->count, 10);
    world_engine(world, MSG_engine_remove, a_url);
    world_engine(world, MSG_engine_add, a_url);
    set(world, "v10", a_url); /* it serves what it served */
    assert_int_equal(told(world, "r1", 0)->count, 10);
    set(world, "v11", a_url);
    assert_int_equal(told(world, "r1", 0)->count, 11);
    world_close(world);
}

static void an_engine_that_is_removed_in_its_pause_is_paused_no_more(void **state)
{
    (void)state;
    struct world *world = open_with_engines();
    set(world, "v1", NULL);
    pause_for(world, "finish", 60000, NULL);
    world_engine(world, MSG_engine_remove, a_url);
    assert_string_equal(told(world, "r1", 0)->calls, "");
    world_engine(world, MSG_engine_add, a_url);
    assert_string_equal(expect(world, PERSIST_ENGINE)->version, "");
    assert_string_equal(expect(world, PERSIST_ENGINE)->calls, "");
    resume(world, NULL);
    assert_int_equal(count_of(world), 1);
    world_close(world);
}

/* ---- rollouts that are left behind --------------------------------------------------- */

static void one_that_is_stale_and_stopped_ends_with_its_record_and_is_not_trained_on(void **state)
{
    (void)state;
    struct world *world = open_with_engines();
    world_reach_run(world, "g", 1);
    struct seen job = *expect(world, LANE_JOB);
    world_result_with(world, "r1", job.job, job.token, "cancelled",
                      (struct msg_job_result){.fault = TEXT("stale"),
                                              .has_fault = true,
                                              .detail = TEXT("stale: too old"),
                                              .has_detail = true,
                                              .record = TEXT("record"),
                                              .has_record = true});
    const struct seen *end = expect_end(world, "g/0", OUTCOME_CANCELLED);
    assert_string_equal(end->end_detail, "stale: too old");
    assert_string_equal(end->record, "record");
    assert_false(end->end.trainable || end->end.has_reward);
    world_reach_run(world, "h", 1); /* its worker is not leaving */
    expect_job(world, "r1", "run:h/0");
    world_close(world);
}

static void one_that_is_stale_and_refreshed_begins_again_at_once_and_uses_up_nothing(void **state)
{
    (void)state;
    struct world *world = open_with_engines();
    world_reach_run(world, "g", 1);
    for (unsigned i = 0; i < 20; i++) {
        uint64_t token = token_of(world, "run:g/0");
        world_result_with(world, "r1", "run:g/0", token, "infra",
                          (struct msg_job_result){.fault = TEXT("stale"), .has_fault = true});
        assert_int_equal(seen_count(world, PERSIST_FAILURES), 0);
        assert_true(expect_job(world, "r1", "run:g/0") > token);
    }
    world_result(world, "r1", "run:g/0", token_of(world, "run:g/0"), "ok");
    expect(world, PERSIST_RUN);
    world_close(world);
}

static void what_a_rollout_is_marked_with_stands_before_its_evaluators_words(void **state)
{
    (void)state;
    struct world *world = open_with_engines();
    world_beat(world, "e1", "eval", 1, NULL);
    world_reach_run(world, "g", 1);
    world_result_with(world, "r1", "run:g/0", token_of(world, "run:g/0"), "ok",
                      (struct msg_job_result){.detail = TEXT("stale: 3 versions"), .has_detail = true});
    world_result_with(world, "e1", "eval:g/0", token_of(world, "eval:g/0"), "ok",
                      (struct msg_job_result){.detail = TEXT("good"), .has_detail = true});
    assert_string_equal(expect_end(world, "g/0", OUTCOME_OK)->end_detail, "stale: 3 versions; good");
    world_close(world);
}

static void so_does_how_a_replay_differs_and_no_other_words_of_a_run_that_ended_well(void **state)
{
    static const struct {
        const char *run, *both;
    } cases[] = {{"differs: 1 of 2 recorded results", "differs: 1 of 2 recorded results; good"},
                 {"2 of 2 calls made", "good"}};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct world *world = open_with_engines();
        world_beat(world, "e1", "eval", 1, NULL);
        world_reach_run(world, "g", 1);
        world_result_with(world, "r1", "run:g/0", token_of(world, "run:g/0"), "ok",
                          (struct msg_job_result){.detail = slice_from_str(cases[i].run), .has_detail = true});
        world_result_with(world, "e1", "eval:g/0", token_of(world, "eval:g/0"), "ok",
                          (struct msg_job_result){.detail = TEXT("good"), .has_detail = true});
        assert_string_equal(expect_end(world, "g/0", OUTCOME_OK)->end_detail, cases[i].both);
        world_close(world);
    }
}

/* ---- credentials: told like versions, and to nobody else -------------------------------------------- */

static void assert_unsaid(struct world *world, const char *secret)
{
    for (size_t i = 0; i < world->seen_count; i++) {
        assert_null(strstr(world->seen[i].engine, secret));
        assert_null(strstr(world->seen[i].text, secret));
    }
    struct buffer status = {0};
    assert_true(core_status(world->core, world->now_ms, &status));
    assert_true(buffer_append(&status, "", 1));
    assert_null(strstr((char *)status.data, secret));
    assert_non_null(strstr((char *)status.data, "http://c:8000"));
    buffer_finish(&status);
}

static void credentials_are_taken_out_of_a_url_and_told_to_run_workers_alone(void **state)
{
    (void)state;
    struct world *world = open_with_engines();
    world_beat(world, "i1", "init", 4, NULL);
    world_engine(world, MSG_engine_add, "http://u:SECRET@c:8000/");
    const struct seen *row = expect(world, PERSIST_ENGINE);
    assert_string_equal(row->engine, "http://c:8000");
    assert_string_equal(row->credentials, "u:SECRET");
    assert_string_equal(told(world, "r1", 0)->engine, "http://c:8000");
    assert_string_equal(told(world, "r1", 0)->credentials, "u:SECRET");
    assert_null(told(world, "i1", 0));
    assert_unsaid(world, "SECRET");
    world_beat(world, "r2", "run", 4, NULL); /* one that comes later */
    assert_string_equal(told(world, "r2", 0)->credentials, "u:SECRET");
    world_close(world);
}

static void credentials_are_changed_by_saying_others_and_kept_by_saying_none(void **state)
{
    (void)state;
    struct world *world = open_with_engines();
    world_engine(world, MSG_engine_add, "http://u:one@c:8000");
    world_engine(world, MSG_engine_add, "http://c:8000");
    assert_int_equal(seen_count(world, PERSIST_ENGINE), 0);
    world_engine(world, MSG_engine_add, "http://u:two@c:8000");
    assert_string_equal(expect(world, PERSIST_ENGINE)->credentials, "u:two");
    assert_string_equal(told(world, "r1", 0)->credentials, "u:two");
    set(world, "v1", "http://u:two@c:8000"); /* by either name */
    assert_string_equal(expect(world, PERSIST_ENGINE)->credentials, "u:two");
    assert_string_equal(told(world, "r1", 0)->credentials, "u:two");
    assert_unsaid(world, "two");
    world_engine(world, MSG_engine_remove, "http://x:SECRET@d:8000");
    assert_non_null(strstr(expect_refused(world, REFUSAL_UNKNOWN_ENGINE)->text, "no engine d:8000"));
    world_engine(world, MSG_engine_add, "http://u:SEC@RET@d:8000");
    assert_null(strstr(expect_refused(world, REFUSAL_BAD_NAME)->text, "RET"));
    world_engine(world, MSG_engine_remove, "http://c:8000"); /* and they are forgotten, by workers, too */
    assert_string_equal(told(world, "r1", 0)->credentials, "");
    world_engine(world, MSG_engine_add, "http://c:8000");
    assert_string_equal(expect(world, PERSIST_ENGINE)->credentials, "");
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_version_is_on_disk_and_told_to_every_run_worker),
        cmocka_unit_test(a_version_has_a_number_by_its_name),
        cmocka_unit_test(who_comes_later_or_has_not_heard_is_told_again),
        cmocka_unit_test(what_cannot_be_meant_is_refused),
        cmocka_unit_test(a_pause_is_complete_once_every_worker_knows_and_nothing_is_in_flight),
        cmocka_unit_test(held_calls_are_not_waited_for),
        cmocka_unit_test(nothing_is_placed_on_a_paused_engine),
        cmocka_unit_test(a_pause_ends_by_itself_when_its_time_is_over),
        cmocka_unit_test(what_runs_there_gets_the_time_of_the_pause),
        cmocka_unit_test(a_pause_outlives_the_broker_and_ends_in_its_time),
        cmocka_unit_test(no_number_is_given_twice_nor_two_to_the_newest),
        cmocka_unit_test(an_engine_that_is_removed_in_its_pause_is_paused_no_more),
        cmocka_unit_test(one_that_is_stale_and_stopped_ends_with_its_record_and_is_not_trained_on),
        cmocka_unit_test(one_that_is_stale_and_refreshed_begins_again_at_once_and_uses_up_nothing),
        cmocka_unit_test(what_a_rollout_is_marked_with_stands_before_its_evaluators_words),
        cmocka_unit_test(so_does_how_a_replay_differs_and_no_other_words_of_a_run_that_ended_well),
        cmocka_unit_test(credentials_are_taken_out_of_a_url_and_told_to_run_workers_alone),
        cmocka_unit_test(credentials_are_changed_by_saying_others_and_kept_by_saying_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
