/* session.get: where the loop of a rollout speaks to it, to whom that is told, and when. */
#include "tests/broker/core/core_world.h"

static const char a_url[] = "http://n:1/s/a", b_url[] = "http://n:1/s/b";

static void offer(struct world *world, const char *worker, const char *job, uint64_t token)
{
    world_beat_with(world, worker, "run", (struct beat){.slots = 8, .offers = "agent:session@1"}, job, token, NULL);
}

static void open_at(struct world *world, const char *worker, const char *job, uint64_t token, const char *url)
{
    struct msg_session_open in = {.worker = TEXT(worker), .job = TEXT(job), .token = token, .url = TEXT(url)};
    world_say(world, "", MSG_session_open, &in);
}

static void ask(struct world *world, uint64_t tag, const char *rollout, uint64_t after, uint64_t wait_ms)
{
    struct msg_session_get in = {.tag = tag,
                                 .rollout = TEXT(rollout),
                                 .has_after = after > 0,
                                 .after = after,
                                 .has_wait_ms = wait_ms > 0,
                                 .wait_ms = wait_ms};
    world_say(world, "trainer", MSG_session_get, &in);
}

/* The one answer there was just now. */
static const struct seen *expect_session(struct world *world, uint64_t tag, const char *url, uint64_t attempt)
{
    const struct seen *seen = expect_answer(world, MSG_session_state);
    assert_int_equal(seen_count(world, SEND_CLIENT), 1);
    assert_int_equal(seen->tag, tag);
    assert_string_equal(seen->endpoint, url);
    assert_int_equal(seen->attempt, attempt);
    return seen;
}

static void expect_words(const struct seen *seen, const char *words)
{
    if (!strstr(seen->text, words))
        fail_msg("'%s' is not in '%s'", words, seen->text);
}

/* A group whose runs are sessions, of n samples; its runs are queued. */
static struct world *world_of(uint64_t samples)
{
    struct world *world = world_open();
    world->task.needs[STAGE_RUN] = TEXT("agent:session");
    world_reach_run(world, "g", samples);
    return world;
}

static void who_waits_is_told_as_soon_as_the_session_is_open(void **state)
{
    (void)state;
    struct world *world = world_of(2);
    ask(world, 31, "g/0", 0, 5000);
    assert_int_equal(seen_count(world, SEND_CLIENT), 0);
    offer(world, "r1", NULL, 0);
    const uint64_t token = expect_job(world, "r1", "run:g/0");
    open_at(world, "r1", "run:g/1", expect_job(world, "r1", "run:g/1"), b_url);
    world_wait(world, 0);
    assert_int_equal(seen_count(world, SEND_CLIENT), 0); /* that was another's */
    open_at(world, "r1", "run:g/0", token, a_url);
    world_wait(world, 0);
    expect_session(world, 31, a_url, 1);
    ask(world, 32, "g/1", 0, 0);
    expect_session(world, 32, b_url, 1);
    world_wait(world, 6000);
    assert_int_equal(seen_count(world, SEND_CLIENT), 0); /* once */
    world_close(world);
}

static void who_has_waited_long_enough_is_told_what_for(void **state)
{
    (void)state;
    struct world *world = world_of(1);
    ask(world, 31, "g/0", 0, 0);
    expect_words(expect_session(world, 31, "", 0), "no run worker is connected");
    world_beat(world, "r0", "run", 8, NULL);
    ask(world, 32, "g/0", 0, 4000);
    ask(world, 32, "g/0", 0, 4000); /* it was sent again */
    world_wait(world, 3000);
    assert_int_equal(seen_count(world, SEND_CLIENT), 0);
    assert_in_range(world->due_ms, world->now_ms, world->now_ms + 1000);
    world_wait(world, 1000);
    expect_words(expect_session(world, 32, "", 0),
                 "the agent session, which no run worker offers: start one with --sessions HOST:PORT");
    world_close(world);
}

static void what_is_no_session_or_has_ended_is_refused_by_name(void **state)
{
    (void)state;
    struct world *world = world_of(2);
    ask(world, 31, "g/7", 0, 5000);
    expect_refused(world, REFUSAL_UNKNOWN_ROLLOUT);
    world->task.needs[STAGE_RUN] = TEXT("");
    world_submit(world, "h", 1);
    ask(world, 32, "h/0", 0, 5000);
    expect_words(expect_refused(world, REFUSAL_NO_SESSION),
                 "h/0 has no session: only tasks whose agent.kind is session");
    ask(world, 33, "g/0", 0, 5000);
    world_cancel(world, "g/0", NULL, NULL);
    world_wait(world, 0);
    const struct seen *no = expect_refused(world, REFUSAL_NO_SESSION);
    assert_int_equal(no->tag, 33);
    expect_words(no, "g/0 has ended");
    ask(world, 34, "g/0", 0, 0);
    expect_words(expect_refused(world, REFUSAL_NO_SESSION), "g/0 has ended");
    offer(world, "r1", NULL, 0);
    world_result(world, "r1", "run:g/1", expect_job(world, "r1", "run:g/1"), "ok");
    ask(world, 35, "g/1", 0, 0);
    expect_words(expect_refused(world, REFUSAL_NO_SESSION), "the session of g/1 has ended, and is evaluated");
    world_close(world);
}

static void a_url_goes_with_its_lease_and_the_next_attempt_has_another(void **state)
{
    (void)state;
    struct world *world = world_of(1);
    offer(world, "r1", NULL, 0);
    const uint64_t token = expect_job(world, "r1", "run:g/0");
    open_at(world, "r2", "run:g/0", token, b_url);     /* of nobody */
    open_at(world, "r1", "run:g/0", token + 1, b_url); /* of another dispatch */
    open_at(world, "r1", "run:g/0", token, a_url);
    ask(world, 31, "g/0", 0, 0);
    expect_session(world, 31, a_url, 1);
    ask(world, 32, "g/0", 1, 60000); /* one of a later attempt */
    assert_int_equal(seen_count(world, SEND_CLIENT), 0);
    world_break_lane(world, "r1");
    ask(world, 33, "g/0", 0, 0);
    expect_session(world, 33, "", 1);
    offer(world, "r3", NULL, 0);
    open_at(world, "r1", "run:g/0", token, a_url); /* it is lost, and speaks for nothing */
    open_at(world, "r3", "run:g/0", token_of(world, "run:g/0"), b_url);
    world_wait(world, 0);
    expect_session(world, 32, b_url, 2);
    world_close(world);
}

static void only_its_owner_and_admins_are_told(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->name = "alice";
    world_start(world);
    world->task.needs[STAGE_RUN] = TEXT("agent:session");
    world_reach_run(world, "g", 1);
    offer(world, "r1", NULL, 0);
    open_at(world, "r1", "run:g/0", expect_job(world, "r1", "run:g/0"), a_url);
    world->name = "mallory";
    ask(world, 31, "g/0", 0, 0);
    expect_refused(world, REFUSAL_NOT_ALLOWED);
    world->is_admin = true;
    ask(world, 32, "g/0", 0, 0);
    expect_session(world, 32, a_url, 1);
    assert_null(strstr(world_status(world), a_url)); /* and nobody by looking around */
    world_get(world, "g/0");
    assert_null(strstr(expect_answer(world, MSG_rollout_state)->text, a_url));
    world_close(world);
}

static void as_many_wait_as_may(void **state)
{
    (void)state;
    struct world *world = world_of(1);
    for (uint64_t tag = 1; tag <= 4096; tag++)
        ask(world, tag, "g/0", 0, 60000);
    ask(world, 1, "g/0", 0, 60000);
    assert_int_equal(seen_count(world, SEND_CLIENT), 0);
    ask(world, 5000, "g/0", 0, 60000);
    assert_int_equal(expect_refused(world, REFUSAL_QUEUE_FULL)->retry_ms, 1000);
    world_cancel(world, NULL, "g", NULL);
    world_wait(world, 0);
    assert_int_equal(seen_count(world, SEND_CLIENT), 4096);
    world_close(world);
}

static void one_client_leaves_room_for_others_to_wait(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.client_percent = 75;
    world->name = "greedy";
    world_start(world);
    world->task.needs[STAGE_RUN] = TEXT("agent:session");
    world_reach_run(world, "g", 1);
    for (uint64_t tag = 1; tag <= 3072; tag++)
        ask(world, tag, "g/0", 0, 60000);
    assert_int_equal(seen_count(world, SEND_CLIENT), 0);
    ask(world, 5000, "g/0", 0, 60000);
    expect_words(expect_refused(world, REFUSAL_QUEUE_FULL), "4096 in all and 3072 of one client");
    world->name = "modest";
    world->is_admin = true;
    ask(world, 5001, "g/0", 0, 60000);
    assert_int_equal(seen_count(world, SEND_CLIENT), 0);
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_waits_is_told_as_soon_as_the_session_is_open),
        cmocka_unit_test(who_has_waited_long_enough_is_told_what_for),
        cmocka_unit_test(what_is_no_session_or_has_ended_is_refused_by_name),
        cmocka_unit_test(a_url_goes_with_its_lease_and_the_next_attempt_has_another),
        cmocka_unit_test(only_its_owner_and_admins_are_told),
        cmocka_unit_test(as_many_wait_as_may),
        cmocka_unit_test(one_client_leaves_room_for_others_to_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
