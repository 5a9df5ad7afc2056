/* rollout.list: what has not ended from the core, what has from the ledger. */
#include "tests/broker/io/io_world.h"

#include <jansson.h>

static json_t *list(struct world *world, struct msg_rollout_list in)
{
    struct msg_rollouts got;
    in.tag = ++world->tag;
    world_ask(world, MSG_rollout_list, &in, MSG_rollouts, &got);
    assert_int_equal(got.tag, in.tag);
    json_t *answer = json_loadb((const char *)got.json.data, got.json.len, 0, NULL);
    assert_true(json_is_object(answer));
    return answer;
}

static json_int_t count_of(struct world *world, struct msg_rollout_list in)
{
    json_t *answer = list(world, in);
    const json_int_t matched = json_integer_value(json_object_get(answer, "matched"));
    assert_int_equal(json_array_size(json_object_get(answer, "rollouts")), in.has_limit ? in.limit : (uint64_t)matched);
    json_decref(answer);
    return matched;
}

static void expect_refused(struct world *world, struct msg_rollout_list in, const char *reason, const char *field)
{
    struct msg_refused refused;
    in.tag = ++world->tag;
    world_ask(world, MSG_rollout_list, &in, MSG_refused, &refused);
    assert_true(slice_is(refused.reason, reason) && slice_is(refused.field, field));
}

/* Asking serves the world's workers, too. */
static void await_ended(struct world *world, json_int_t count)
{
    const struct msg_rollout_list all = {.ended = true, .stream = S("train"), .has_stream = true};
    for (int64_t end_ms = clock_ms() + 60000; count_of(world, all) != count;)
        assert_true(clock_ms() < end_ms);
}

#define TEXT_IS(object, key, text) assert_string_equal(json_string_value(json_object_get(object, key)), text)

static void what_has_not_ended_is_listed_with_what_it_is_at(void **state)
{
    struct world *world = *state;
    struct fake *init = fake_add(world, STAGE_INIT), *run = fake_add(world, STAGE_RUN);
    run->allowance = 0;
    submit(world, "a", 2, false);
    world_until(world, run->held_count == 2);
    init->allowance = 0;
    submit(world, "b", 3, false);
    world_until(world, init->held_count == 1);
    assert_int_equal(count_of(world, (struct msg_rollout_list){0}), 5);
    assert_int_equal(count_of(world, (struct msg_rollout_list){.stage = S("run"), .has_stage = true}), 2);
    assert_int_equal(count_of(world, (struct msg_rollout_list){.group = S("b"), .has_group = true}), 3);
    assert_int_equal(count_of(world, (struct msg_rollout_list){.state = S("queued"), .has_state = true}), 0);
    assert_int_equal(count_of(world, (struct msg_rollout_list){.image = S("host"), .has_image = true}), 5);
    assert_int_equal(count_of(world, (struct msg_rollout_list){.age_ms = 3600000, .has_age_ms = true}), 0);
    assert_int_equal(count_of(world, (struct msg_rollout_list){.limit = 1, .has_limit = true}), 5);
    json_t *answer = list(world, (struct msg_rollout_list){.stage = S("run"), .has_stage = true});
    const json_t *first = json_array_get(json_object_get(answer, "rollouts"), 0);
    TEXT_IS(first, "rollout", "a/0");
    TEXT_IS(first, "stream", "train");
    TEXT_IS(first, "task", "add");
    TEXT_IS(first, "state", "leased");
    TEXT_IS(first, "worker", run->id);
    TEXT_IS(first, "image", "host");
    assert_int_equal(json_integer_value(json_object_get(first, "attempt")), 1);
    json_decref(answer);
}

static void what_has_ended_is_listed_newest_first_until_it_is_acknowledged(void **state)
{
    struct world *world = *state;
    struct msg_done done;
    fakes_add(world);
    submit(world, "a", 2, false);
    await_ended(world, 2);
    submit(world, "b", 1, false);
    await_ended(world, 3);
    const struct msg_rollout_list all = {.ended = true, .stream = S("train"), .has_stream = true};
    json_t *answer = list(world, all);
    const json_t *newest = json_array_get(json_object_get(answer, "rollouts"), 0);
    TEXT_IS(newest, "rollout", "b/0");
    TEXT_IS(newest, "outcome", "ok");
    assert_int_equal(json_integer_value(json_object_get(newest, "seq")), 3);
    assert_true(json_is_true(json_object_get(newest, "trainable")));
    json_decref(answer);
    assert_int_equal(count_of(world, (struct msg_rollout_list){.ended = true, .group = S("a"), .has_group = true}), 2);
    struct msg_rollout_list infra = all;
    infra.outcome = S("infra"), infra.has_outcome = true;
    assert_int_equal(count_of(world, infra), 0);
    infra.outcome = S("ok");
    assert_int_equal(count_of(world, infra), 3);
    struct msg_rollout_list image = all;
    image.image = S("host"), image.has_image = true;
    assert_int_equal(count_of(world, image), 3);
    struct msg_rollout_list few = all;
    few.limit = 2, few.has_limit = true;
    assert_int_equal(count_of(world, few), 3);
    struct msg_rollout_list old = all;
    old.age_ms = 3600000, old.has_age_ms = true;
    assert_int_equal(count_of(world, old), 0);
    struct msg_stream_ack ack = {.tag = ++world->tag, .stream = S("train"), .seq = 2};
    world_ask(world, MSG_stream_ack, &ack, MSG_done, &done);
    assert_int_equal(count_of(world, all), 1);
    assert_int_equal(count_of(world, (struct msg_rollout_list){.ended = true, .group = S("a"), .has_group = true}), 0);
}

static void what_makes_no_sense_is_refused_by_field(void **state)
{
    struct world *world = *state;
    submit(world, "a", 1, false);
    expect_refused(world, (struct msg_rollout_list){.ended = true}, "bad-name", "stream");
    expect_refused(world, (struct msg_rollout_list){.stage = S("walk"), .has_stage = true}, "bad-name", "stage");
    expect_refused(world, (struct msg_rollout_list){.state = S("ended"), .has_state = true}, "bad-name", "state");
    expect_refused(world, (struct msg_rollout_list){.outcome = S("ok"), .has_outcome = true}, "bad-name", "outcome");
    expect_refused(world, (struct msg_rollout_list){.stream = S("none"), .has_stream = true}, "unknown-stream",
                   "stream");
    expect_refused(world, (struct msg_rollout_list){.group = S("none"), .has_group = true}, "unknown-group", "group");
    struct msg_rollout_list mixed = {.ended = true, .stream = S("train"), .has_stream = true};
    mixed.outcome = S("well"), mixed.has_outcome = true;
    expect_refused(world, mixed, "bad-name", "outcome");
    mixed.has_outcome = false, mixed.stage = S("run"), mixed.has_stage = true;
    expect_refused(world, mixed, "bad-name", "stage");
}

int main(int argc, char **argv)
{
    if (world_is_broker(argc, argv))
        return world_be_broker(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_has_not_ended_is_listed_with_what_it_is_at),
        TEST(what_has_ended_is_listed_newest_first_until_it_is_acknowledged),
        TEST(what_makes_no_sense_is_refused_by_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
