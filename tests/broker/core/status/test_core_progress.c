/* What rollout.get says of a rollout that has not ended: how far it has come, and why it does not get on. */
#include "tests/broker/core/core_breaker_world.h"

static const char a_url[] = "http://a:1", b_url[] = "http://b:1";

static void progress(struct world *world, const char *worker, const char *job, uint64_t token, uint64_t turn,
                     const char *tool, const char *why)
{
    struct msg_job_progress in = {.worker = TEXT(worker),
                                  .job = TEXT(job),
                                  .token = token,
                                  .turn = turn,
                                  .tool = TEXT(tool),
                                  .has_tool = tool,
                                  .why = TEXT(why),
                                  .has_why = why};
    world_say(world, "", MSG_job_progress, &in);
}

static const struct seen *state_now(struct world *world, const char *rollout)
{
    world_get(world, rollout);
    return expect_answer(world, MSG_rollout_state);
}

static void expect_progress(struct world *world, uint64_t turn, const char *tool, const char *why)
{
    const struct seen *now = state_now(world, "g/0");
    assert_int_equal(now->count, turn);
    assert_string_equal(now->tool, tool);
    assert_string_equal(now->text, why);
}

static void expect_why(struct world *world, const char *rollout, const char *words)
{
    const struct seen *now = state_now(world, rollout);
    if (!strstr(now->text, words))
        fail_msg("'%s' is not in '%s'", words, now->text);
}

static void a_worker_says_how_far_a_job_has_come_until_it_is_no_longer_its(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_run(world, "g", 1);
    world_beat(world, "r1", "run", 8, NULL);
    const uint64_t token = expect_job(world, "r1", "run:g/0");
    expect_progress(world, 0, "", "");
    progress(world, "r1", "run:g/0", token, 1, NULL, NULL);
    expect_progress(world, 1, "", "");
    progress(world, "r1", "run:g/0", token, 3, "bash", "http://a:1: 503; tried 2 times");
    expect_progress(world, 3, "bash", "http://a:1: 503; tried 2 times");
    progress(world, "r1", "run:g/0", token + 1, 9, "x", NULL); /* of another dispatch */
    progress(world, "r2", "run:g/0", token, 9, "x", NULL);     /* of nobody */
    progress(world, "r1", "run:g/7", token, 9, "x", NULL);
    expect_progress(world, 3, "bash", "http://a:1: 503; tried 2 times");
    world_break_lane(world, "r1");
    assert_int_equal(state_now(world, "g/0")->count, 0);
    assert_string_equal(state_now(world, "g/0")->tool, "");
    progress(world, "r1", "run:g/0", token, 9, "x", NULL);
    assert_int_equal(state_now(world, "g/0")->count, 0);
    world_close(world);
}

static void what_is_queued_says_which_workers_are_missing_or_busy(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_submit(world, "g", 2);
    expect_why(world, "g/0", "no init worker is connected: sluice worker init --broker URL");
    world_cancel(world, NULL, "g", NULL);
    world_reach_run(world, "h", 2);
    world_beat_with(world, "r1", "run", (struct beat){.slots = 1, .draining = true}, NULL);
    expect_why(world, "h/0", "every run worker is draining, hung or unreached");
    world_beat(world, "r2", "run", 1, NULL);
    expect_why(world, "h/1", "all 1 slots of run workers are taken");
    world_close(world);
}

static void what_waits_for_an_engine_says_which_and_what_it_answered(void **state)
{
    (void)state;
    struct world *world = open_with(1);
    world->task.needs_engine = true;
    world_engine(world, MSG_engine_add, a_url);
    world_reach_run(world, "g", 2);
    world_engine(world, MSG_engine_remove, a_url);
    world_beat(world, "r1", "run", 8, NULL);
    expect_why(world, "g/0", "no engine is registered for the policy default: sluice engine add URL");
    world_engine(world, MSG_engine_add, a_url);
    world_blame(world, "r1", "run:g/0", "infra", "engine", "HTTP 503: loading");
    expect_why(world, "g/0", "the engine http://a:1 is failing, and is tried again in 2 s: HTTP 503: loading");
    expect_why(world, "g/0", "; before: infra on r1, engine http://a:1: HTTP 503: loading");
    world_engine(world, MSG_engine_add, b_url);
    expect_why(world, "g/1", "");
    world_close(world);
}

static void what_failed_says_how_and_when_it_is_tried_again(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_run(world, "g", 1);
    world_beat(world, "r1", "run", 8, NULL);
    world_blame(world, "r1", "run:g/0", "infra", "node", "no memory");
    const struct seen *now = state_now(world, "g/0");
    assert_string_equal(now->state, "delayed");
    expect_why(world, "g/0", "it failed, and is tried again in 1 s; before: infra on r1, node: no memory");
    world_close(world);
}

static void news_of_engines_are_for_the_log(void **state)
{
    (void)state;
    struct world *world = open_with(2);
    world->task.needs_engine = true;
    world_engine(world, MSG_engine_add, a_url);
    world_reach_run(world, "g", 3);
    world_beat(world, "r1", "run", 8, NULL);
    world_blame(world, "r1", "run:g/0", "infra", "engine", "HTTP 500");
    assert_string_equal(expect(world, HEALTH_CHANGED)->state, "fault");
    world_blame(world, "r1", "run:g/1", "infra", "engine", "HTTP 502");
    assert_string_equal(expect(world, HEALTH_CHANGED)->state, "failing");
    assert_string_equal(expect(world, HEALTH_CHANGED)->detail, "HTTP 502");
    world_result(world, "r1", "run:g/2", token_of(world, "run:g/2"), "ok");
    assert_string_equal(expect(world, HEALTH_CHANGED)->state, "healthy");
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_says_how_far_a_job_has_come_until_it_is_no_longer_its),
        cmocka_unit_test(what_is_queued_says_which_workers_are_missing_or_busy),
        cmocka_unit_test(what_waits_for_an_engine_says_which_and_what_it_answered),
        cmocka_unit_test(what_failed_says_how_and_when_it_is_tried_again),
        cmocka_unit_test(news_of_engines_are_for_the_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
