/* A sampler: what it releases, what it finds of groups, what becomes of the rest. */
#include "tests/broker/core/sampler/sampler_world.h"

static const struct msg_sampler_open usual = {.tag = 0};

/* ---- release ---------------------------------------------------------------------------- */

static void groups_are_held_in_submit_order_until_they_are_wanted(void **state)
{
    (void)state;
    struct world *world = sampler_world(
        2, (struct msg_sampler_open){.has_over_sample = true, .over_sample = 1000, .has_ahead = true, .ahead = 1});
    submit_many(world, 1, 5, 2);
    assert_true(is_released(world, "g1") && is_released(world, "g2"));
    assert_false(is_released(world, "g3"));
    world_get(world, "g3/0");
    expect_says(expect_answer(world, MSG_rollout_state)->text, "the sampler of its stream holds it");
    sampler_next(world, 1, 1000); /* asked for, and one ahead */
    assert_true(is_released(world, "g3") && is_released(world, "g4"));
    assert_false(is_released(world, "g5"));
    expect_says(sampler_state(world), "\"held\":1,\"live\":4,\"ready\":0");
    world_close(world);
}

static void nothing_is_released_before_a_batch_is_asked_for_where_none_is_made_ahead(void **state)
{
    (void)state;
    struct world *world = sampler_world(1, (struct msg_sampler_open){.has_ahead = true, .ahead = 0});
    submit_many(world, 1, 3, 2);
    assert_false(is_released(world, "g1"));
    sampler_next(world, 1, 1000);
    assert_true(is_released(world, "g1") && is_released(world, "g2")); /* half are kept, as long as nothing is known */
    assert_false(is_released(world, "g3"));
    world_close(world);
}

static void no_more_are_at_work_or_ready_than_the_window_has_room_for(void **state)
{
    (void)state;
    struct world *world = sampler_world(
        2, (struct msg_sampler_open){.has_window = true, .window = 3, .has_ahead = true, .ahead = 8});
    submit_many(world, 1, 6, 2);
    assert_true(is_released(world, "g3"));
    assert_false(is_released(world, "g4"));
    finish_group(world, "g1", 0, 1); /* ready: it still takes its place */
    assert_false(is_released(world, "g4"));
    finish_group(world, "g2", 0, 0); /* dropped */
    assert_true(is_released(world, "g4"));
    assert_false(is_released(world, "g5"));
    world_close(world);
}

static void the_less_is_kept_the_more_is_released(void **state)
{
    (void)state;
    struct world *world = sampler_world(1, (struct msg_sampler_open){.has_window = true, .window = 100});
    submit_many(world, 1, 30, 2);
    expect_says(sampler_state(world), "\"live\":2,\"ready\":0"); /* (0 + 2) / (0 + 1) for each missing one */
    for (unsigned i = 1; i <= 6; i++) {
        char group[16];
        snprintf(group, sizeof(group), "g%u", i);
        finish_group(world, group, 0, 0);
    }
    expect_says(sampler_state(world), "\"live\":8,\"ready\":0"); /* (6 + 2) / (0 + 1) */
    world_close(world);
}

static void the_time_a_group_is_held_is_not_its_own(void **state)
{
    (void)state;
    struct world *world = sampler_world(1, (struct msg_sampler_open){.has_ahead = true, .ahead = 0});
    world->task.total_ms = 5000;
    submit_many(world, 1, 1, 1);
    world_wait(world, 60000);
    sampler_beat(world);
    sampler_next(world, 1, 600000);
    assert_true(is_released(world, "g1"));
    world_wait(world, 4000);
    assert_int_equal(seen_count(world, PERSIST_END), 0);
    world_wait(world, 61001); /* its turn in the order of ends was put off, and comes */
    assert_int_equal(seen_count(world, PERSIST_END), 1);
    world_close(world);
}

static void a_stream_without_a_sampler_is_as_it_was(void **state)
{
    (void)state;
    struct world *world = sampler_world(1, usual);
    world_submit_task(world, "o1", "other", 1, "{}");
    assert_true(is_released(world, "o1"));
    assert_int_equal(seen_count(world, PERSIST_SAMPLED), 0);
    world_close(world);
}

/* ---- verdicts ------------------------------------------------------------------------------ */

static void expect_counts(struct world *world, const char *words)
{
    expect_says(strstr(sampler_state(world), "\"total\""), words);
}

static void each_group_gets_a_verdict_once_its_last_rollout_has_ended(void **state)
{
    (void)state;
    struct world *world = sampler_world(8, (struct msg_sampler_open){.has_window = true, .window = 16});
    submit_many(world, 1, 6, 2);
    finish_group(world, "g1", 0, 1);
    finish_group(world, "g2", 0, 0);
    finish_group(world, "g3", 1, 1);
    finish_group(world, "g4", 0.5, 0.5);
    run_group(world, "g5", 2, 0);
    reward(world, "g5", 0, 1);
    world_blame(world, "e1", "eval:g5/1", "task", NULL, "its evaluator is broken");
    world_cancel(world, NULL, "g6", NULL);
    expect_counts(world, "\"finished\":5,\"kept\":0,\"uniform_0\":1,\"uniform_1\":1,\"uniform_other\":1,"
                         "\"no_reward\":1,\"stale\":0,\"cancelled\":1");
    expect_says(sampler_state(world), "\"ready\":1");
    world_close(world);
}

static void the_raw_reward_is_judged_where_shaping_made_another_of_it(void **state)
{
    (void)state;
    struct world *world = sampler_world(8, usual);
    submit_many(world, 1, 1, 2);
    run_group(world, "g1", 2, 0);
    end_job(world, "e1", "eval", "g1", 0,
            (struct msg_job_result){.reward = -0.5, .has_reward = true, .raw_reward = 0, .has_raw_reward = true});
    reward(world, "g1", 1, 0);
    expect_counts(world, "\"uniform_0\":1");
    world_close(world);
}

static void the_filter_none_keeps_whatever_has_rewards(void **state)
{
    (void)state;
    struct world *world = sampler_world(8, (struct msg_sampler_open){.filter = TEXT("none"), .has_filter = true});
    submit_many(world, 1, 2, 2);
    finish_group(world, "g1", 1, 1);
    expect_says(sampler_state(world), "\"ready\":1");
    expect_counts(world, "\"kept\":0,\"uniform_0\":0,\"uniform_1\":0");
    world_close(world);
}

static void tokens_are_counted_by_what_became_of_their_groups(void **state)
{
    (void)state;
    struct world *world = sampler_world(1, (struct msg_sampler_open){.has_window = true, .window = 8});
    submit_many(world, 1, 4, 2);
    sampler_next(world, 1, 1000);
    finish_group(world, "g1", 0, 0);
    run_group(world, "g2", 2, 0);
    world_cancel(world, NULL, "g2", NULL);
    finish_group(world, "g3", 0, 1);
    assert_int_equal(expect_answer(world, MSG_sampler_batch)->batch, 1);
    expect_counts(world, "\"tokens_kept\":20,\"tokens_dropped\":20,\"tokens_cancelled\":20");
    world_close(world);
}

/* ---- replacement ------------------------------------------------------------------------------ */

static void a_rollout_that_would_end_infra_is_begun_again_from_its_run(void **state)
{
    (void)state;
    struct world *world = sampler_world(1, (struct msg_sampler_open){.has_replace_max = true, .replace_max = 2});
    submit_many(world, 1, 1, 2);
    run_group(world, "g1", 2, 0);
    world_blame(world, "e1", "eval:g1/0", "infra", NULL, "no room");
    assert_int_equal(seen_count(world, PERSIST_END), 0);
    assert_string_equal(expect(world, PERSIST_AGAIN)->rollout, "g1/0");
    expect_job(world, "r1", "run:g1/0");
    world_blame(world, "r1", "run:g1/0", "infra", NULL, "no room");
    expect_job(world, "r1", "run:g1/0"); /* the second one */
    world_blame(world, "r1", "run:g1/0", "infra", NULL, "no room");
    expect_end(world, "g1/0", OUTCOME_INFRA);
    reward(world, "g1", 1, 1);
    expect_counts(world, "\"no_reward\":1");
    expect_counts(world, "\"replaced\":2");
    world_close(world);
}

static void an_init_that_would_end_infra_is_begun_again_whole(void **state)
{
    (void)state;
    struct world *world = sampler_world(1, usual);
    submit_many(world, 1, 1, 2);
    world_blame(world, "i1", "init:g1", "infra", NULL, "no room");
    const struct seen *again = expect(world, PERSIST_AGAIN);
    assert_string_equal(again->group, "g1");
    assert_string_equal(again->rollout, "");
    finish_group(world, "g1", 0, 1);
    expect_says(sampler_state(world), "\"ready\":1");
    world_close(world);
}

static void what_is_left_out_of_a_group_is_left_out_of_its_mean(void **state)
{
    (void)state;
    struct world *world = sampler_world(1, (struct msg_sampler_open){.has_replace_max = true, .replace_max = 0});
    submit_many(world, 1, 1, 3);
    run_group(world, "g1", 3, 0);
    world_blame(world, "e1", "eval:g1/0", "infra", NULL, "no room");
    reward(world, "g1", 1, 1);
    reward(world, "g1", 2, 0);
    sampler_next(world, 1, 0);
    expect_says(expect_answer(world, MSG_sampler_batch)->json, "\"samples\":3,\"scored\":2,\"mean\":0.5");
    world_close(world);
}

/* ---- early verdicts ------------------------------------------------------------------------------ */

/* One run worker of one slot, so that the order shows. */
static void what_is_left_of_a_group_that_seems_uniform_goes_last(void **state)
{
    (void)state;
    struct world *world = sampler_world(2, (struct msg_sampler_open){.has_early = true, .early = 1});
    world_break_lane(world, "r1");
    submit_many(world, 1, 2, 3);
    end_job(world, "i1", "init", "g1", UINT32_MAX, (struct msg_job_result){0});
    world_beat(world, "r2", "run", 1, NULL);
    end_job(world, "r2", "run", "g1", 0, (struct msg_job_result){0});
    expect_job(world, "r2", "run:g1/1");
    end_job(world, "i1", "init", "g2", UINT32_MAX, (struct msg_job_result){0});
    reward(world, "g1", 0, 0);
    end_job(world, "r2", "run", "g1", 1, (struct msg_job_result){0});
    expect_job(world, "r2", "run:g2/0"); /* not g1/2, which was there before */
    reward(world, "g1", 1, 1);           /* it is not uniform after all */
    end_job(world, "r2", "run", "g2", 0, (struct msg_job_result){0});
    expect_job(world, "r2", "run:g2/1"); /* of the same priority again, and behind those that were there */
    world_close(world);
}

static void a_group_that_seems_uniform_is_written_so(void **state)
{
    (void)state;
    struct world *world = sampler_world(2, (struct msg_sampler_open){.has_early = true, .early = 1});
    submit_many(world, 1, 1, 3);
    run_group(world, "g1", 3, 0);
    reward(world, "g1", 0, 0);
    assert_true(expect(world, PERSIST_SAMPLED)->sampled.is_low);
    reward(world, "g1", 1, 1);
    assert_false(expect(world, PERSIST_SAMPLED)->sampled.is_low);
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_are_held_in_submit_order_until_they_are_wanted),
        cmocka_unit_test(nothing_is_released_before_a_batch_is_asked_for_where_none_is_made_ahead),
        cmocka_unit_test(no_more_are_at_work_or_ready_than_the_window_has_room_for),
        cmocka_unit_test(the_less_is_kept_the_more_is_released),
        cmocka_unit_test(the_time_a_group_is_held_is_not_its_own),
        cmocka_unit_test(a_stream_without_a_sampler_is_as_it_was),
        cmocka_unit_test(each_group_gets_a_verdict_once_its_last_rollout_has_ended),
        cmocka_unit_test(the_raw_reward_is_judged_where_shaping_made_another_of_it),
        cmocka_unit_test(the_filter_none_keeps_whatever_has_rewards),
        cmocka_unit_test(tokens_are_counted_by_what_became_of_their_groups),
        cmocka_unit_test(a_rollout_that_would_end_infra_is_begun_again_from_its_run),
        cmocka_unit_test(an_init_that_would_end_infra_is_begun_again_whole),
        cmocka_unit_test(what_is_left_out_of_a_group_is_left_out_of_its_mean),
        cmocka_unit_test(what_is_left_of_a_group_that_seems_uniform_goes_last),
        cmocka_unit_test(a_group_that_seems_uniform_is_written_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
