/* A sampler's batches: what they are made of, who may ask, what is kept for them, and how it all ends. */
#include "tests/broker/core/sampler/sampler_world.h"

static const struct msg_sampler_open usual = {.has_window = true, .window = 32};

/* ---- batches ----------------------------------------------------------------------------- */

static void a_batch_has_the_groups_that_were_submitted_first_of_those_that_are_ready(void **state)
{
    (void)state;
    struct world *world = sampler_world(2, usual);
    submit_many(world, 1, 6, 2);
    finish_group(world, "g4", 0, 1);
    finish_group(world, "g2", 0, 0);
    finish_group(world, "g3", 1, 0);
    sampler_next(world, 1, 1000);
    const struct seen *batch = expect_answer(world, MSG_sampler_batch);
    assert_int_equal(batch->batch, 1);
    assert_int_equal(batch->tag, 24);
    assert_true(strstr(batch->json, "\"g3\"") < strstr(batch->json, "\"g4\""));
    expect_says(batch->json, "\"dropped\":[{\"group\":\"g2\",\"number\":2,\"verdict\":\"uniform_0\"");
    assert_string_equal(expect(world, PERSIST_BATCH)->json, batch->json);
    world_close(world);
}

static void the_current_batch_is_told_again_byte_for_byte(void **state)
{
    (void)state;
    struct world *world = sampler_world(1, usual);
    submit_many(world, 1, 4, 2);
    finish_group(world, "g1", 0, 1);
    sampler_next(world, 1, 0);
    char first[6144];
    snprintf(first, sizeof(first), "%s", expect_answer(world, MSG_sampler_batch)->json);
    finish_group(world, "g2", 0, 0);
    sampler_next(world, 1, 0);
    assert_string_equal(expect_answer(world, MSG_sampler_batch)->json, first);
    assert_int_equal(seen_count(world, PERSIST_BATCH), 0);
    world_close(world);
}

static void a_batch_that_is_waited_for_is_told_as_soon_as_it_is_full(void **state)
{
    (void)state;
    struct world *world = sampler_world(2, usual);
    submit_many(world, 1, 10, 2);
    sampler_next(world, 1, 60000);
    assert_int_equal(seen_count(world, SEND_CLIENT), 0);
    finish_group(world, "g1", 0, 1);
    assert_int_equal(seen_count(world, SEND_CLIENT), 0);
    finish_group(world, "g2", 0, 1);
    assert_int_equal(expect_answer(world, MSG_sampler_batch)->batch, 1);
    world_close(world);
}

static void a_request_that_is_sent_again_waits_on(void **state)
{
    (void)state;
    struct world *world = sampler_world(1, usual);
    submit_many(world, 1, 4, 2);
    sampler_next(world, 1, 60000);
    sampler_next(world, 1, 60000);
    assert_int_equal(seen_count(world, SEND_CLIENT), 0);
    finish_group(world, "g1", 0, 1);
    expect_answer(world, MSG_sampler_batch);
    assert_int_equal(seen_count(world, SEND_CLIENT), 1);
    world_close(world);
}

static void no_group_is_in_two_batches(void **state)
{
    (void)state;
    struct world *world = sampler_world(1, usual);
    submit_many(world, 1, 6, 2);
    finish_group(world, "g1", 0, 1);
    finish_group(world, "g2", 0, 1);
    sampler_next(world, 1, 0);
    expect_says(expect_answer(world, MSG_sampler_batch)->json, "\"groups\":[{\"group\":\"g1\"");
    sampler_next(world, 2, 0);
    expect_says(expect_answer(world, MSG_sampler_batch)->json, "\"groups\":[{\"group\":\"g2\"");
    sampler_next(world, 3, 0);
    assert_int_equal(expect_answer(world, MSG_sampler_waits)->ready, 0);
    world_close(world);
}

static void another_batch_than_the_current_and_the_next_is_refused(void **state)
{
    (void)state;
    struct world *world = sampler_world(1, usual);
    sampler_next(world, 2, 0);
    expect_says(expect_refused(world, REFUSAL_TOO_LARGE)->text,
                "batch 2 is asked for, and its sampler has made none yet: ask for batch 1");
    submit_many(world, 1, 4, 2);
    finish_group(world, "g1", 0, 1);
    finish_group(world, "g2", 0, 1);
    sampler_next(world, 1, 0);
    sampler_next(world, 3, 0);
    expect_says(expect_refused(world, REFUSAL_TOO_LARGE)->text, "the current batch is 1; ask for it again, or for 2");
    sampler_next(world, 1, 0);
    sampler_next(world, 2, 0);
    sampler_next(world, 1, 0);
    expect_refused(world, REFUSAL_TOO_SMALL);
    world_close(world);
}

static void the_account_is_of_the_time_since_the_batch_before(void **state)
{
    (void)state;
    struct world *world = sampler_world(1, usual);
    submit_many(world, 1, 8, 2);
    finish_group(world, "g1", 0, 0);
    finish_group(world, "g2", 0, 1);
    sampler_next(world, 1, 0);
    expect_says(expect_answer(world, MSG_sampler_batch)->json, "\"finished\":2,\"kept\":1,\"uniform_0\":1");
    finish_group(world, "g3", 0, 1);
    sampler_next(world, 2, 0);
    const char *json = expect_answer(world, MSG_sampler_batch)->json;
    expect_says(json, "\"finished\":1,\"kept\":1,\"uniform_0\":0");
    expect_says(json, "\"dropped\":[]");
    world_close(world);
}

/* ---- staleness ----------------------------------------------------------------------------- */

static void what_is_ready_and_too_old_is_dropped(void **state)
{
    (void)state;
    struct world *world = sampler_world(
        2, (struct msg_sampler_open){.has_staleness = true, .staleness = 1, .has_window = true, .window = 32});
    world_engine(world, MSG_engine_add, "http://e:1");
    set_version(world, "v1");
    submit_many(world, 1, 20, 2);
    run_group(world, "g1", 2, 1);
    reward(world, "g1", 0, 0);
    reward(world, "g1", 1, 1);
    set_version(world, "v2");
    expect_says(sampler_state(world), "\"ready\":1");
    set_version(world, "v3");
    expect_says(sampler_state(world), "\"ready\":0");
    run_group(world, "g2", 2, 1); /* too old when its last rollout ends */
    reward(world, "g2", 0, 0);
    reward(world, "g2", 1, 1);
    expect_says(sampler_state(world), "\"stale\":2");
    expect_says(strstr(sampler_state(world), "\"total\""), "\"finished\":2,\"kept\":0");
    sampler_next(world, 1, 0);
    expect_says(expect_answer(world, MSG_sampler_waits)->text, "2 groups were dropped as stale since the last batch");
    world_close(world);
}

/* ---- surplus --------------------------------------------------------------------------------- */

static void the_surplus_is_carried(void **state)
{
    (void)state;
    struct world *world = sampler_world(1, usual);
    submit_many(world, 1, 4, 2);
    sampler_next(world, 1, 1000);
    finish_group(world, "g2", 0, 1);
    expect_says(expect_answer(world, MSG_sampler_batch)->json, "\"surplus\":3,\"carried\":3");
    finish_group(world, "g1", 0, 1);
    sampler_next(world, 2, 0);
    expect_says(expect_answer(world, MSG_sampler_batch)->json, "\"group\":\"g1\"");
    world_close(world);
}

static void the_surplus_is_cancelled_where_the_rule_says_so(void **state)
{
    (void)state;
    struct world *world = sampler_world(1, (struct msg_sampler_open){.surplus = TEXT("cancel"), .has_surplus = true});
    submit_many(world, 1, 4, 2);
    sampler_next(world, 1, 1000);
    assert_true(is_released(world, "g2"));
    finish_group(world, "g1", 0, 1);
    expect_says(expect_answer(world, MSG_sampler_batch)->json, "\"surplus\":1,\"carried\":0");
    assert_int_equal(seen_count(world, PERSIST_END), 3); /* g1's second, and both of g2 */
    sampler_next(world, 2, 1000);
    finish_group(world, "g3", 0, 1);
    expect_says(expect_answer(world, MSG_sampler_batch)->json, "\"cancelled\":1");
    world_close(world);
}

/* ---- what is kept ---------------------------------------------------------------------------- */

static void trajectories_go_once_no_group_needs_them(void **state)
{
    (void)state;
    struct world *world = sampler_world(1, usual);
    submit_many(world, 1, 4, 2);
    finish_group(world, "g1", 0, 0); /* 1, 2 */
    assert_int_equal(expect(world, PERSIST_ACK)->seq, 2);
    finish_group(world, "g2", 0, 1); /* 3, 4 */
    finish_group(world, "g3", 0, 0); /* 5, 6 */
    assert_int_equal(seen_count(world, PERSIST_ACK), 0);
    sampler_next(world, 1, 0); /* g2: the current batch needs them */
    assert_int_equal(seen_count(world, PERSIST_ACK), 0);
    sampler_next(world, 2, 1000); /* and until the next is there */
    assert_int_equal(seen_count(world, PERSIST_ACK), 0);
    finish_group(world, "g4", 0, 1);
    assert_int_equal(expect(world, PERSIST_ACK)->seq, 6);
    world_close(world);
}

static void a_trainer_does_not_acknowledge_what_a_sampler_keeps(void **state)
{
    (void)state;
    struct world *world = sampler_world(1, usual);
    submit_many(world, 1, 1, 2);
    finish_group(world, "g1", 0, 1);
    world_ack(world, "train", 1);
    expect_says(expect_refused(world, REFUSAL_NOT_ALLOWED)->text, "ask for the next batch");
    world_close(world);
}

static void what_the_operator_lets_go_is_dropped_and_named(void **state)
{
    (void)state;
    struct world *world = sampler_world(1, usual);
    world->settings.keep_count = 1;
    core_destroy(&world->core);
    world_start(world);
    sampler_beat(world);
    sampler_open(world, 1, usual);
    submit_many(world, 1, 2, 2);
    finish_group(world, "g1", 0, 1);
    world_wait(world, 1000);
    world_wait(world, 1000);
    expect_says(sampler_state(world), "\"forgotten\":1");
    world_close(world);
}

/* ---- who asks ----------------------------------------------------------------------------------- */

static void one_trainer_samples_at_a_time(void **state)
{
    (void)state;
    struct world *world = sampler_world(1, usual);
    sampler_next(world, 1, 60000);
    struct msg_sampler_open rule = usual;
    rule.trainer = TEXT("t2");
    sampler_open(world, 1, rule);
    assert_int_equal(expect_answer(world, MSG_sampler_waits)->batch, 1); /* to the first */
    sampler_next(world, 1, 0);
    expect_says(expect_refused(world, REFUSAL_NOT_ALLOWED)->text, "not yours since t2 opened it");
    sampler_next_by(world, "t2", 1, 0);
    expect_answer(world, MSG_sampler_waits);
    world_close(world);
}

/* Were both told to ask again, they would do so for ever, as fast as they can. */
static void of_two_of_one_name_who_waits_is_refused_when_the_other_asks(void **state)
{
    (void)state;
    struct world *world = sampler_world(1, usual);
    submit_many(world, 1, 8, 2);
    sampler_next(world, 1, 60000);
    struct msg_sampler_next in = {
        .tag = 7, .stream = TEXT("train"), .trainer = TEXT("t1"), .batch = 1, .has_wait_ms = true, .wait_ms = 60000};
    world_say(world, "second", MSG_sampler_next, &in);
    const struct seen *refused = expect_refused(world, REFUSAL_NOT_ALLOWED);
    assert_string_equal(refused->client, "trainer");
    assert_int_equal(refused->tag, 24);
    assert_string_equal(refused->field, "trainer");
    expect_says(refused->text, "another process that calls itself t1, too, has asked for a batch of train since");
    finish_group(world, "g1", 0, 1);
    assert_string_equal(expect_answer(world, MSG_sampler_batch)->client, "second");
    world_close(world);
}

static void another_client_has_no_part_in_it(void **state)
{
    (void)state;
    struct world *world = world_open();
    world->name = "alice";
    sampler_open(world, 1, usual);
    world->name = "bob";
    sampler_open(world, 1, usual);
    expect_refused(world, REFUSAL_NOT_ALLOWED);
    sampler_next(world, 1, 0);
    expect_refused(world, REFUSAL_NOT_ALLOWED);
    world_close(world);
}

static void a_rule_that_makes_no_sense_is_refused_by_its_field(void **state)
{
    (void)state;
    const struct {
        struct msg_sampler_open rule;
        const char *field;
    } rows[] = {
        {{.filter = TEXT("some"), .has_filter = true}, "filter"},
        {{.surplus = TEXT("keep"), .has_surplus = true}, "surplus"},
        {{.window = 3, .has_window = true}, "window"},
        {{.surplus = TEXT("cancel"), .has_surplus = true, .ahead = 1, .has_ahead = true}, "ahead"},
    };
    struct world *world = world_open();
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        sampler_open(world, 4, rows[i].rule);
        assert_string_equal(expect_answer(world, MSG_refused)->field, rows[i].field);
    }
    world_submit(world, "g1", 1);
    sampler_open(world, 4, usual);
    expect_says(expect_refused(world, REFUSAL_NOT_ALLOWED)->text, "a sampler needs a stream of its own");
    world_close(world);
}

static void a_rule_that_changes_holds_from_the_next_batch_on(void **state)
{
    (void)state;
    struct world *world = sampler_world(1, usual);
    submit_many(world, 1, 8, 2);
    finish_group(world, "g1", 0, 1);
    sampler_next(world, 1, 0);
    sampler_open(world, 2, usual);
    expect_says(expect_answer(world, MSG_sampler_state)->json, "\"groups\":2");
    finish_group(world, "g2", 0, 1);
    sampler_next(world, 2, 0);
    expect_answer(world, MSG_sampler_waits);
    finish_group(world, "g3", 0, 1);
    sampler_next(world, 2, 0);
    expect_answer(world, MSG_sampler_batch);
    world_close(world);
}

/* ---- the watchdog -------------------------------------------------------------------------------- */

static void who_waits_in_vain_is_told_why(void **state)
{
    (void)state;
    struct world *world = sampler_world(2, usual);
    sampler_next(world, 1, 1000);
    assert_int_equal(seen_count(world, SEND_CLIENT), 0);
    world_wait(world, 1000);
    expect_says(expect_answer(world, MSG_sampler_waits)->text, "the pool is empty: 0 of 2 groups are ready");
    submit_many(world, 1, 24, 2);
    sampler_next(world, 1, 0);
    expect_says(expect_answer(world, MSG_sampler_waits)->text, "0 of 2 groups are ready, 8 are at work, 16 are held");
    for (unsigned i = 1; i <= 16; i++) {
        char group[16];
        snprintf(group, sizeof(group), "g%u", i);
        finish_group(world, group, i % 8 == 0, i % 8 == 0);
    }
    sampler_next(world, 1, 0);
    expect_says(expect_answer(world, MSG_sampler_waits)->text,
                "no group is admissible: of the last 16, 14 are uniform_0 and 2 are uniform_1; submit easier tasks");
    world_close(world);
}

static void expect_why(struct world *world, const char *words)
{
    sampler_next(world, 1, 0);
    expect_says(expect_answer(world, MSG_sampler_waits)->text, words);
}

static void who_waits_for_what_is_stale_or_has_no_reward_is_told_the_cure_of_that(void **state)
{
    (void)state;
    struct world *world = sampler_world(
        2, (struct msg_sampler_open){.has_staleness = true, .staleness = 0, .has_window = true, .window = 64});
    world_engine(world, MSG_engine_add, "http://e:1");
    set_version(world, "v1");
    submit_many(world, 1, 64, 2);
    set_version(world, "v2");
    for (unsigned i = 1; i <= 16; i++) {
        char group[16];
        snprintf(group, sizeof(group), "g%u", i);
        run_group(world, group, 2, 1);
        reward(world, group, 0, 0);
        reward(world, group, 1, 1);
    }
    expect_why(world, "of the last 16, 16 are stale: staleness is 0, the newest version 2; allow more");
    for (unsigned i = 17; i <= 33; i++) {
        char group[16];
        snprintf(group, sizeof(group), "g%u", i);
        run_group(world, group, 2, 2);
        for (unsigned k = 0; k < 2; k++) {
            snprintf(group, sizeof(group), "eval:g%u/%u", i, k);
            world_blame(world, "e1", group, "task", NULL, "its evaluator is broken");
        }
    }
    expect_why(world, "17 are no_reward and 16 are stale; their rollouts end without a reward");
    world_close(world);
}

static void who_waits_for_groups_of_one_to_differ_is_told_that_none_can(void **state)
{
    (void)state;
    struct world *world = sampler_world(2, usual);
    submit_many(world, 1, 1, 2);
    assert_string_equal(expect_answer(world, MSG_group_accepted)->text, "");
    submit_many(world, 2, 33, 1);
    expect_says(expect_answer(world, MSG_group_accepted)->text, "those of one rollout cannot");
    world_cancel(world, NULL, "g1", NULL);
    sampler_next(world, 1, 0);
    for (unsigned i = 2; i <= 17; i++) {
        char group[16];
        snprintf(group, sizeof(group), "g%u", i);
        run_group(world, group, 1, 0);
        reward(world, group, 0, i % 2);
    }
    expect_why(world, "each has one rollout, and the rewards of one cannot differ: submit them with 2 samples or more");
    world_close(world);
}

static void who_waits_without_an_engine_is_told_so(void **state)
{
    (void)state;
    struct world *world = sampler_world(1, usual);
    world_engine(world, MSG_engine_add, "http://e:1");
    world->task.needs_engine = true;
    submit_many(world, 1, 4, 2);
    world_engine(world, MSG_engine_remove, "http://e:1");
    sampler_next(world, 1, 0);
    expect_says(expect_answer(world, MSG_sampler_waits)->text, "no engine is registered: sluice engine add URL");
    world_close(world);
}

static void a_group_whose_lease_is_over_is_dropped_held_or_not(void **state)
{
    (void)state;
    struct world *world = sampler_world(1, usual);
    world->lease_ms = 2000;
    submit_many(world, 1, 4, 2); /* two of them are held */
    world_wait(world, 2001);
    assert_int_equal(seen_count(world, PERSIST_END), 8);
    expect_says(sampler_state(world), "\"held\":0,\"live\":0");
    expect_says(sampler_state(world), "\"cancelled\":4");
    world_close(world);
}

static void who_waits_is_told_at_once_that_the_pool_has_run_empty(void **state)
{
    (void)state;
    struct world *world = sampler_world(2, usual);
    submit_many(world, 1, 8, 2);
    sampler_next(world, 1, 60000);
    submit_many(world, 9, 9, 2);
    finish_group(world, "g1", 0, 0);
    const struct seen *waits = expect_answer(world, MSG_sampler_waits);
    assert_int_equal(waits->held, 0);
    assert_int_equal(waits->submitted, 9);
    world_close(world);
}

/* ---- the end ---------------------------------------------------------------------------------------- */

static void close_it(struct world *world, bool cancel)
{
    struct msg_sampler_close in = {.tag = 25, .stream = TEXT("train"), .has_cancel = true, .cancel = cancel};
    world_say(world, "trainer", MSG_sampler_close, &in);
    world_wait(world, 1);
}

static void a_closed_sampler_leaves_an_ordinary_stream(void **state)
{
    (void)state;
    struct world *world = sampler_world(1, usual);
    submit_many(world, 1, 4, 2); /* two of them are live */
    finish_group(world, "g1", 0, 1);
    close_it(world, false);
    assert_false(expect(world, PERSIST_SAMPLER)->present);
    const struct seen *done = expect_answer(world, MSG_done);
    assert_int_equal(done->tag, 25);
    assert_int_equal(done->count, 4); /* of g3 and g4 */
    finish_group(world, "g2", 0, 1);
    assert_int_equal(seen_count(world, PERSIST_SAMPLED), 0);
    world_ack(world, "train", 8);
    assert_int_equal(expect_answer(world, MSG_done)->count, 8);
    submit_many(world, 5, 5, 1);
    assert_true(is_released(world, "g5"));
    world_close(world);
}

static void what_is_closed_is_closed_again_without_harm(void **state)
{
    (void)state;
    struct world *world = sampler_world(1, usual);
    close_it(world, false);
    struct msg_sampler_close again = {.tag = 26, .stream = TEXT("train")};
    world_say(world, "trainer", MSG_sampler_close, &again);
    assert_int_equal(expect_answer(world, MSG_done)->count, 0);
    world_close(world);
}

static void of_two_that_close_it_the_first_is_told_so(void **state)
{
    (void)state;
    struct world *world = sampler_world(1, usual);
    const struct msg_sampler_close first = {.tag = 25, .stream = TEXT("train")},
                                   second = {.tag = 26, .stream = TEXT("train")};
    world_say(world, "trainer", MSG_sampler_close, &first);
    world_say(world, "trainer", MSG_sampler_close, &first); /* sent again: it waits on */
    assert_int_equal(seen_count(world, SEND_CLIENT), 0);
    world_say(world, "admin", MSG_sampler_close, &second);
    assert_int_equal(expect_refused(world, REFUSAL_QUEUE_FULL)->tag, 25);
    world_wait(world, 1);
    assert_int_equal(expect_answer(world, MSG_done)->tag, 26);
    world_close(world);
}

static void a_closed_sampler_may_take_what_is_at_work_with_it(void **state)
{
    (void)state;
    struct world *world = sampler_world(1, usual);
    submit_many(world, 1, 4, 2);
    close_it(world, true);
    assert_int_equal(expect_answer(world, MSG_done)->count, 8);
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_has_the_groups_that_were_submitted_first_of_those_that_are_ready),
        cmocka_unit_test(the_current_batch_is_told_again_byte_for_byte),
        cmocka_unit_test(a_batch_that_is_waited_for_is_told_as_soon_as_it_is_full),
        cmocka_unit_test(a_request_that_is_sent_again_waits_on),
        cmocka_unit_test(no_group_is_in_two_batches),
        cmocka_unit_test(another_batch_than_the_current_and_the_next_is_refused),
        cmocka_unit_test(the_account_is_of_the_time_since_the_batch_before),
        cmocka_unit_test(what_is_ready_and_too_old_is_dropped),
        cmocka_unit_test(the_surplus_is_carried),
        cmocka_unit_test(the_surplus_is_cancelled_where_the_rule_says_so),
        cmocka_unit_test(trajectories_go_once_no_group_needs_them),
        cmocka_unit_test(a_trainer_does_not_acknowledge_what_a_sampler_keeps),
        cmocka_unit_test(what_the_operator_lets_go_is_dropped_and_named),
        cmocka_unit_test(one_trainer_samples_at_a_time),
        cmocka_unit_test(of_two_of_one_name_who_waits_is_refused_when_the_other_asks),
        cmocka_unit_test(another_client_has_no_part_in_it),
        cmocka_unit_test(a_rule_that_makes_no_sense_is_refused_by_its_field),
        cmocka_unit_test(a_rule_that_changes_holds_from_the_next_batch_on),
        cmocka_unit_test(who_waits_in_vain_is_told_why),
        cmocka_unit_test(who_waits_for_what_is_stale_or_has_no_reward_is_told_the_cure_of_that),
        cmocka_unit_test(who_waits_for_groups_of_one_to_differ_is_told_that_none_can),
        cmocka_unit_test(who_waits_without_an_engine_is_told_so),
        cmocka_unit_test(a_group_whose_lease_is_over_is_dropped_held_or_not),
        cmocka_unit_test(who_waits_is_told_at_once_that_the_pool_has_run_empty),
        cmocka_unit_test(a_closed_sampler_leaves_an_ordinary_stream),
        cmocka_unit_test(what_is_closed_is_closed_again_without_harm),
        cmocka_unit_test(of_two_that_close_it_the_first_is_told_so),
        cmocka_unit_test(a_closed_sampler_may_take_what_is_at_work_with_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
