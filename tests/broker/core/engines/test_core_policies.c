/* Policies by name: whose engines a group's rollouts go to, and what an engine has to serve for that. */
#include "tests/broker/core/core_world.h"

static const char a_url[] = "http://a:8000", b_url[] = "http://b:8000";

static struct world *open_world(void)
{
    struct world *world = world_create();
    world->settings.beat_timeout_ms = 100000000;
    world->settings.hold_grace_ms = 100000000;
    world->task.needs_engine = true;
    world_start(world);
    world_settle(world);
    return world;
}

static void add(struct world *world, const char *url, const char *policy)
{
    struct msg_engine_add in = {.tag = 12, .url = TEXT(url), .policy = TEXT(policy), .has_policy = policy != NULL};
    world_say(world, "operator", MSG_engine_add, &in);
}

/* A run worker has looked there, and found this tokenizer and this template. */
static void see(struct world *world, const char *url, const char *tokenizer, const char *template)
{
    struct msg_engine_load in = {.worker = TEXT("r1"),
                                 .url = TEXT(url),
                                 .has_answers = true,
                                 .answers = true,
                                 .tokenizer_digest = TEXT(tokenizer),
                                 .has_tokenizer_digest = true,
                                 .template_digest = TEXT(template),
                                 .has_template_digest = true};
    world_say(world, "", MSG_engine_load, &in);
}

/* Two engines of the usual policy, both looked at, and a run worker. */
static struct world *open_with(const char *a_tokenizer, const char *b_tokenizer)
{
    struct world *world = open_world();
    world_beat(world, "r1", "run", 8, NULL);
    add(world, a_url, NULL);
    see(world, a_url, a_tokenizer, "chatml");
    add(world, b_url, NULL);
    see(world, b_url, b_tokenizer, "chatml");
    return world;
}

static size_t handed_out(const struct world *world, const char *url)
{
    size_t count = 0;
    for (size_t i = 0; i < world->seen_count; i++)
        count += world->seen[i].kind == LANE_JOB && !strcmp(world->seen[i].engine, url);
    return count;
}

static size_t cancels(const struct world *world)
{
    size_t count = 0;
    for (size_t i = 0; i < world->seen_count; i++)
        count += world->seen[i].kind == LANE_SEND && world->seen[i].message == MSG_job_cancel;
    return count;
}

/* Its init is done; what is handed out now is seen. */
static void begin_group(struct world *world, const char *group, const char *policy, unsigned samples)
{
    world->task.policy = TEXT(policy);
    world_reach_run(world, group, samples);
}

static void result_with(struct world *world, const char *job, const char *tokenizer)
{
    struct msg_job_result in = {.worker = TEXT("r1"),
                                .job = TEXT(job),
                                .token = token_of(world, job),
                                .outcome = TEXT("ok"),
                                .ms = 10,
                                .record = TEXT("record"),
                                .has_record = true,
                                .tokenizer_digest = TEXT(tokenizer),
                                .has_tokenizer_digest = true,
                                .template_digest = TEXT("chatml"),
                                .has_template_digest = true};
    world_say(world, "", MSG_job_result, &in);
}

static bool status_says(struct world *world, const char *words)
{
    struct buffer out = {0};
    assert_true(core_status(world->core, world->now_ms, &out));
    assert_true(buffer_append(&out, "", 1));
    bool says = strstr((char *)out.data, words) != NULL;
    buffer_finish(&out);
    return says;
}

static void engines_that_serve_the_same_share_a_policys_rollouts(void **state)
{
    (void)state;
    struct world *world = open_with("t1", "t1");
    begin_group(world, "g", NULL, 8);
    assert_int_equal(handed_out(world, a_url) + handed_out(world, b_url), 8);
    assert_false(status_says(world, "another tokenizer"));
    world_close(world);
}

static void an_engine_with_another_tokenizer_gets_nothing_and_health_says_so(void **state)
{
    (void)state;
    struct world *world = open_with("t1", "t2");
    begin_group(world, "g", NULL, 8);
    assert_int_equal(handed_out(world, a_url), 8);
    assert_true(status_says(world, "1 of 2 engines serve another tokenizer or chat template than their policy"));
    assert_true(status_says(world, "its tokenizer is not the policy's (default)"));
    world_close(world);
}

static void another_policys_engine_gets_that_policys_rollouts_alone(void **state)
{
    (void)state;
    struct world *world = open_with("t1", "t2");
    add(world, b_url, "critic");
    assert_string_equal(expect_answer(world, MSG_done)->text, "default");
    add(world, b_url, "critic");
    assert_string_equal(expect_answer(world, MSG_done)->text, "");
    assert_false(status_says(world, "another tokenizer"));
    begin_group(world, "g", NULL, 3);
    assert_int_equal(handed_out(world, a_url), 3);
    begin_group(world, "h", "critic", 3);
    assert_int_equal(handed_out(world, b_url), 3);
    world->task.policy = TEXT("nobody");
    world_submit(world, "i", 1);
    assert_string_equal(expect_refused(world, REFUSAL_NO_ENGINE)->field, "task.policy");
    add(world, b_url, "a b");
    assert_string_equal(expect_refused(world, REFUSAL_BAD_NAME)->field, "policy");
    world_close(world);
}

static void an_engine_that_was_not_probed_waits_for_it_where_the_policy_is_known(void **state)
{
    (void)state;
    struct world *world = open_world();
    world_beat(world, "r1", "run", 8, NULL);
    add(world, a_url, NULL);
    begin_group(world, "g", NULL, 2);
    assert_int_equal(handed_out(world, a_url), 2); /* nothing is known yet: it may be the first */
    see(world, a_url, "t1", "chatml");
    add(world, b_url, NULL);
    begin_group(world, "h", NULL, 4);
    assert_int_equal(handed_out(world, b_url), 0);
    see(world, b_url, "t1", "chatml");
    begin_group(world, "i", NULL, 2);
    assert_int_equal(handed_out(world, a_url) + handed_out(world, b_url), 2);
    world_close(world);
}

static void runs_on_an_engine_that_turns_out_to_be_another_begin_again_elsewhere(void **state)
{
    (void)state;
    struct world *world = open_with("t1", "t1");
    begin_group(world, "g", NULL, 8);
    size_t there = handed_out(world, b_url);
    assert_true(there > 0);
    see(world, b_url, "t2", "chatml");
    assert_int_equal(cancels(world), there);
    assert_int_equal(handed_out(world, a_url), there);
    world_close(world);
}

static void a_result_of_another_tokenizer_is_not_recorded(void **state)
{
    (void)state;
    struct world *world = open_with("t1", "t1");
    begin_group(world, "g", NULL, 3);
    result_with(world, "run:g/0", "t1");
    expect(world, PERSIST_RUN);
    result_with(world, "run:g/1", "t2"); /* whatever was seen of its engine */
    assert_int_equal(seen_count(world, PERSIST_RUN), 0);
    assert_non_null(strstr(expect(world, PERSIST_FAILURES)->history,
                           "it was sampled with another tokenizer or chat template than its policy (default) has"));
    world_close(world);
}

static void a_policy_takes_another_identity_once_nothing_holds_it(void **state)
{
    (void)state;
    struct world *world = open_with("t1", "t1");
    begin_group(world, "g", NULL, 1);
    see(world, a_url, "t2", "chatml");
    assert_true(status_says(world, "1 of 2 engines serve another")); /* b holds it */
    world_engine(world, MSG_engine_remove, b_url);
    see(world, a_url, "t2", "chatml");
    assert_false(status_says(world, "engines serve another"));
    world_close(world);
}

static void a_group_with_results_holds_its_policy(void **state)
{
    (void)state;
    struct world *world = open_with("t1", "t1");
    world_engine(world, MSG_engine_remove, b_url);
    begin_group(world, "g", NULL, 2);
    result_with(world, "run:g/0", "t1");
    expect(world, PERSIST_RUN);
    see(world, a_url, "t2", "chatml");
    assert_true(status_says(world, "1 of 1 engines serve another"));
    assert_int_equal(handed_out(world, a_url), 0); /* what was there waits */
    see(world, a_url, "t2", "chatml");
    assert_true(status_says(world, "1 of 1 engines serve another"));
    world_cancel(world, NULL, "g", NULL);
    see(world, a_url, "t2", "chatml");
    assert_false(status_says(world, "engines serve another"));
    begin_group(world, "h", NULL, 1);
    assert_int_equal(handed_out(world, a_url), 1);
    world_close(world);
}

static void a_full_policy_keeps_nobody_elses_rollouts_waiting(void **state)
{
    (void)state;
    struct world *world = open_with("t1", "t2");
    struct msg_engine_add in = {.tag = 12,
                                .url = TEXT(b_url),
                                .policy = TEXT("critic"),
                                .has_policy = true,
                                .runs_max = 1,
                                .has_runs_max = true};
    world_say(world, "operator", MSG_engine_add, &in);
    begin_group(world, "h", "critic", 3);
    assert_int_equal(handed_out(world, b_url), 1);
    begin_group(world, "g", NULL, 2);
    assert_int_equal(handed_out(world, a_url), 2);
    result_with(world, "run:h/0", "t2");
    assert_int_equal(handed_out(world, b_url), 1); /* the next one of its own */
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(engines_that_serve_the_same_share_a_policys_rollouts),
        cmocka_unit_test(an_engine_with_another_tokenizer_gets_nothing_and_health_says_so),
        cmocka_unit_test(another_policys_engine_gets_that_policys_rollouts_alone),
        cmocka_unit_test(an_engine_that_was_not_probed_waits_for_it_where_the_policy_is_known),
        cmocka_unit_test(runs_on_an_engine_that_turns_out_to_be_another_begin_again_elsewhere),
        cmocka_unit_test(a_result_of_another_tokenizer_is_not_recorded),
        cmocka_unit_test(a_policy_takes_another_identity_once_nothing_holds_it),
        cmocka_unit_test(a_group_with_results_holds_its_policy),
        cmocka_unit_test(a_full_policy_keeps_nobody_elses_rollouts_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
