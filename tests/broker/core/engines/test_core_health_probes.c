/* Looks at engines: who is asked and how often, what silence does, and what a full cache says. */
#include "tests/broker/core/core_breaker_world.h"

static const char a_url[] = "http://a:8000", b_url[] = "http://b:8000";

/* Two engines, known well; two run workers, each looked from once. */
static struct world *open_with_engines(void)
{
    struct world *world = world_create();
    world->settings.beat_timeout_ms = 100000000;
    world->settings.hold_grace_ms = 100000000;
    world->settings.breaker_faults = 2;
    world->settings.engine_probe_interval_ms = 5000;
    world->task.needs_engine = true;
    world_start(world);
    world_settle(world);
    world_engine(world, MSG_engine_add, a_url);
    world_engine(world, MSG_engine_add, b_url);
    return world;
}

static void beat(struct world *world, const char *worker) { world_beat(world, worker, "run", 8, NULL); }

static void say_probe(struct world *world, const char *worker, const char *url, bool answers)
{
    struct msg_engine_load in = {.worker = TEXT(worker),
                                 .url = TEXT(url),
                                 .has_answers = true,
                                 .answers = answers,
                                 .has_error = !answers,
                                 .error = TEXT(answers ? NULL : "Connection refused")};
    world_say(world, "", MSG_engine_load, &in);
}

/* Whether this worker was asked for this engine just now. */
static bool was_asked(const struct world *world, const char *worker, const char *url)
{
    for (size_t i = 0; i < world->seen_count; i++) {
        const struct seen *seen = &world->seen[i];
        if (seen->kind == LANE_SEND && seen->message == MSG_engine_probe && !strcmp(seen->worker, worker) &&
            !strcmp(seen->engine, url))
            return true;
    }
    return false;
}

static size_t asked(const struct world *world)
{
    size_t count = 0;
    for (size_t i = 0; i < world->seen_count; i++)
        count += world->seen[i].kind == LANE_SEND && world->seen[i].message == MSG_engine_probe;
    return count;
}

static void silence(struct world *world, const char *url)
{
    for (unsigned i = 0; i < 2; i++)
        say_probe(world, "r1", url, false);
}

/* The engine of a group of one, handed out just now; "" if it waits. */
static const char *place(struct world *world, const char *group)
{
    world_reach_run(world, group, 1);
    const struct seen *job = seen_nth(world, LANE_JOB, 0);
    return job ? job->engine : "";
}

/* ---- who is asked ------------------------------------------------------------------ */

static void each_engine_is_probed_once_in_its_time_however_many_workers_beat(void **state)
{
    (void)state;
    struct world *world = open_with_engines();
    world_beat(world, "e1", "eval", 4, NULL);
    assert_int_equal(asked(world), 0); /* run workers alone reach engines */
    beat(world, "r1");
    assert_true(was_asked(world, "r1", a_url) && was_asked(world, "r1", b_url));
    for (unsigned i = 0; i < 20; i++) {
        char worker[8];
        snprintf(worker, sizeof(worker), "w%u", i);
        beat(world, worker);
        assert_int_equal(asked(world), 0);
    }
    world_wait(world, 4999);
    beat(world, "r1");
    assert_int_equal(asked(world), 0);
    world_wait(world, 1);
    beat(world, "w3");
    assert_int_equal(asked(world), 2);
    world_close(world);
}

static void nobody_is_asked_where_probes_are_off_or_the_engine_is_gone_or_paused(void **state)
{
    (void)state;
    struct world *world = open_with_engines();
    struct msg_policy_pause pause = {
        .tag = 20, .calls = TEXT("finish"), .bound_ms = 60000, .engine = TEXT(a_url), .has_engine = true};
    world_say(world, "trainer", MSG_policy_pause, &pause);
    world_engine(world, MSG_engine_remove, b_url);
    beat(world, "r1");
    assert_int_equal(asked(world), 0);
    say_probe(world, "r1", a_url, false); /* it loads its weights */
    say_probe(world, "r1", a_url, false);
    struct msg_policy_resume resume = {.tag = 21};
    world_say(world, "trainer", MSG_policy_resume, &resume);
    assert_string_equal(state_in(world, "engines", NULL), "healthy");
    beat(world, "r1");
    assert_true(was_asked(world, "r1", a_url));
    world_close(world);
    world = world_create();
    world->settings.engine_probe_interval_ms = 0;
    world_start(world);
    world_engine(world, MSG_engine_add, a_url);
    beat(world, "r1");
    assert_int_equal(asked(world), 0);
    silence(world, a_url);
    assert_string_equal(state_in(world, "engines", NULL), "healthy");
    world_close(world);
}

static void what_one_worker_did_not_reach_another_is_asked_for_at_once(void **state)
{
    (void)state;
    struct world *world = open_with_engines();
    beat(world, "r1");
    say_probe(world, "r1", a_url, false);
    beat(world, "r1"); /* as a worker does with what it has seen */
    assert_int_equal(asked(world), 0);
    world_wait(world, 100);
    beat(world, "r2");
    assert_true(was_asked(world, "r2", a_url));
    assert_int_equal(asked(world), 1);
    assert_string_equal(state_in(world, "engines", NULL), "healthy");
    say_probe(world, "r2", a_url, true); /* r1's network it was */
    say_probe(world, "r1", a_url, false);
    assert_string_equal(state_in(world, "engines", NULL), "healthy"); /* not two in a row */
    world_close(world);
}

/* ---- silence ----------------------------------------------------------------------- */

static void an_engine_that_died_while_idle_gets_no_rollout_until_it_answers(void **state)
{
    (void)state;
    struct world *world = open_with_engines();
    beat(world, "r1");
    silence(world, a_url);
    assert_string_equal(state_in(world, "engines", NULL), "silent");
    for (unsigned i = 0; i < 4; i++) {
        char group[8];
        snprintf(group, sizeof(group), "g%u", i);
        assert_string_equal(place(world, group), b_url);
    }
    silence(world, b_url);
    assert_string_equal(place(world, "later"), ""); /* it waits, and is not blamed */
    world_wait(world, 5000);
    beat(world, "r1");
    assert_int_equal(asked(world), 2); /* silent ones too */
    say_probe(world, "r1", a_url, true);
    assert_string_equal(expect(world, LANE_JOB)->engine, a_url);
    assert_string_equal(state_in(world, "engines", NULL), "healthy");
    world_close(world);
}

static void one_that_answers_again_after_silence_was_started_anew(void **state)
{
    (void)state;
    struct world *world = open_with_engines();
    world_engine(world, MSG_engine_remove, b_url);
    beat(world, "r1");
    world_reach_run(world, "g", 2);
    world_blame(world, "r1", "run:g/0", "infra", "engine", "Connection refused");
    world_blame(world, "r1", "run:g/1", "infra", "engine", "Connection refused");
    assert_string_equal(state_in(world, "engines", NULL), "failing");
    silence(world, a_url);
    assert_string_equal(state_in(world, "engines", NULL), "silent");
    world_wait(world, 100000); /* its trial is long due, and who would try it knows better */
    assert_int_equal(seen_count(world, LANE_JOB), 0);
    say_probe(world, "r1", a_url, true);
    assert_string_equal(state_in(world, "engines", NULL), "healthy");
    assert_int_equal(seen_count(world, LANE_JOB), 2); /* and not one, as a trial */
    world_close(world);
}

static void one_that_says_it_is_well_and_fails_at_calls_stays_set_aside(void **state)
{
    (void)state;
    struct world *world = open_with_engines();
    world_engine(world, MSG_engine_remove, b_url);
    beat(world, "r1");
    world_reach_run(world, "g", 2);
    world_blame(world, "r1", "run:g/0", "infra", "engine", "HTTP 500");
    say_probe(world, "r1", a_url, true); /* nor does it begin the count again */
    world_blame(world, "r1", "run:g/1", "infra", "engine", "HTTP 500");
    assert_string_equal(state_in(world, "engines", NULL), "failing");
    say_probe(world, "r1", a_url, true);
    assert_string_equal(state_in(world, "engines", NULL), "failing");
    world_close(world);
}

static void a_run_that_ends_well_says_more_than_probes(void **state)
{
    (void)state;
    struct world *world = open_with_engines();
    world_engine(world, MSG_engine_remove, b_url);
    beat(world, "r1");
    world_reach_run(world, "g", 2);
    silence(world, a_url);
    world_reach_run(world, "h", 1);
    assert_int_equal(seen_count(world, LANE_JOB), 0);
    world_result(world, "r1", "run:g/0", token_of(world, "run:g/0"), "ok");
    assert_string_equal(state_in(world, "engines", NULL), "healthy");
    expect_job(world, "r1", "run:h/0");
    world_close(world);
}

static void an_engine_that_is_added_anew_begins_anew(void **state)
{
    (void)state;
    struct world *world = open_with_engines();
    beat(world, "r1");
    silence(world, a_url);
    world_engine(world, MSG_engine_remove, a_url);
    world_engine(world, MSG_engine_add, a_url);
    beat(world, "r1");
    assert_true(was_asked(world, "r1", a_url));
    silence(world, b_url); /* the first of the list by now */
    assert_string_equal(state_in(world, "engines", NULL), "silent");
    assert_string_equal(place(world, "g"), a_url);
    world_close(world);
}

static bool is_advised(struct world *world, const char *words)
{
    struct buffer out = {0};
    assert_true(core_status(world->core, world->now_ms, &out));
    char *text = buffer_take_str(&out);
    const bool is_there = strstr(text, words) != NULL;
    free(text);
    return is_there;
}

static void what_answers_and_is_no_engine_that_is_known_is_advised_of(void **state)
{
    (void)state;
    static const char words[] =
        "1 of 2 engines answer, but as none that is known here: sluice engine check http://a:8000 says";
    struct world *world = open_with_engines();
    beat(world, "r1");
    assert_false(is_advised(world, words));
    say_probe(world, "r1", a_url, true);
    assert_true(is_advised(world, words));
    struct msg_engine_load known = {
        .worker = TEXT("r1"), .url = TEXT(a_url), .template_digest = TEXT("sha256:aa"), .has_template_digest = true};
    world_say(world, "", MSG_engine_load, &known);
    assert_false(is_advised(world, words));
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_engine_is_probed_once_in_its_time_however_many_workers_beat),
        cmocka_unit_test(nobody_is_asked_where_probes_are_off_or_the_engine_is_gone_or_paused),
        cmocka_unit_test(what_one_worker_did_not_reach_another_is_asked_for_at_once),
        cmocka_unit_test(an_engine_that_died_while_idle_gets_no_rollout_until_it_answers),
        cmocka_unit_test(one_that_answers_again_after_silence_was_started_anew),
        cmocka_unit_test(one_that_says_it_is_well_and_fails_at_calls_stays_set_aside),
        cmocka_unit_test(a_run_that_ends_well_says_more_than_probes),
        cmocka_unit_test(an_engine_that_is_added_anew_begins_anew),
        cmocka_unit_test(what_answers_and_is_no_engine_that_is_known_is_advised_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
