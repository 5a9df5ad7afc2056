/* The ledger: samplers and their groups come back as they were written. */
#include "tests/broker/ledger/ledger_world.h"

struct told {
    unsigned samplers, groups;
    struct core_sampler sampler;
    struct core_sampled sampled;
    char owner[32], trainer[32], answer[64], group[32];
};

static bool take_stream(void *context, struct slice name, struct slice owner, uint64_t first, uint64_t head)
{
    struct told *told = context;
    (void)first, (void)head;
    assert_true(slice_is(name, "train"));
    snprintf(told->owner, sizeof(told->owner), "%.*s", SLICE_ARG(owner));
    return true;
}

static bool take_group(void *context, const struct core_group_row *row)
{
    (void)context, (void)row;
    return true;
}

static bool take_rollout(void *context, const struct core_rollout_row *row)
{
    (void)context, (void)row;
    return true;
}

static bool take_sampler(void *context, const struct core_sampler *row, struct slice answer)
{
    struct told *told = context;
    assert_true(slice_is(row->stream, "train"));
    told->samplers++;
    told->sampler = *row;
    snprintf(told->trainer, sizeof(told->trainer), "%.*s", SLICE_ARG(row->trainer));
    snprintf(told->answer, sizeof(told->answer), "%.*s", SLICE_ARG(answer));
    return true;
}

static bool take_sampled(void *context, const struct core_sampled *row)
{
    struct told *told = context;
    assert_int_equal(told->samplers, 1); /* after its sampler */
    told->groups++;
    told->sampled = *row;
    snprintf(told->group, sizeof(told->group), "%.*s", SLICE_ARG(row->group));
    return true;
}

static struct told restore(struct world *world)
{
    struct told told = {0};
    struct ledger_reader reader = {.context = &told,
                                   .stream = take_stream,
                                   .group = take_group,
                                   .rollout = take_rollout,
                                   .sampler = take_sampler,
                                   .sampled = take_sampled};
    assert_int_equal(ledger_restore(world->ledger, &reader, NULL), 0);
    return told;
}

static struct core_sampler full_sampler(void)
{
    struct core_sampler row = {.stream = S("train"),
                               .trainer = S("node7-4711"),
                               .owner = S("ann"),
                               .rule = {.groups = 8,
                                        .staleness = 2,
                                        .window = 64,
                                        .ahead = 1,
                                        .over_sample = 1500,
                                        .early = 4,
                                        .replace_max = 3,
                                        .has_staleness = true,
                                        .has_replace_max = true,
                                        .keeps_uniform = true,
                                        .cancels_surplus = true},
                               .submitted = 960,
                               .batch = 11,
                               .batched = 80,
                               .unlisted = 5,
                               .close_count = 7,
                               .is_closing = true,
                               .cancels = true};
    for (unsigned i = 0; i < SAMPLER_COUNTS; i++) {
        row.since[i] = i + 1;
        row.total[i] = UINT64_MAX - i;
    }
    for (unsigned i = 0; i < SAMPLER_VERDICTS; i++)
        row.recent[i] = 100 * i;
    return row;
}

static const struct core_sampled full_group = {.stream = {(const uint8_t *)"train", 5},
                                               .group = {(const uint8_t *)"g7", 2},
                                               .number = 7,
                                               .state = 2,
                                               .verdict = 1,
                                               .first_seq = 42,
                                               .tokens = 4096,
                                               .oldest_version = 120,
                                               .released_ms = 1700000000000,
                                               .samples = 8,
                                               .ended = 6,
                                               .scored = 5,
                                               .cancelled = 1,
                                               .replaced = 2,
                                               .least = -0.5,
                                               .most = 1.25,
                                               .sum = 1e300,
                                               .is_low = true,
                                               .is_forgotten = true};

static struct effect sampler_effect(const struct core_sampler *row)
{
    return (struct effect){.kind = PERSIST_SAMPLER, .present = true, .stream = S("train"), .sampler = row};
}

static struct effect sampled_effect(const struct core_sampled *row)
{
    return (struct effect){
        .kind = PERSIST_SAMPLED, .present = true, .stream = S("train"), .seq = row->number, .sampled = row};
}

static struct effect batch_effect(const char *answer)
{
    return (struct effect){.kind = PERSIST_BATCH, .stream = S("train"), .detail = S(answer)};
}

static void what_was_written_of_a_sampler_comes_back(void **state)
{
    struct world *world = *state;
    const struct core_sampler row = full_sampler();
    const struct effect effects[] = {batch_effect("{\"batch\":11}"), sampler_effect(&row), sampled_effect(&full_group)};
    commit(world, effects, 3);
    reopen(world);
    struct told told = restore(world);
    assert_int_equal(told.samplers, 1);
    assert_int_equal(told.groups, 1);
    assert_string_equal(told.owner, "ann"); /* of a stream that has no group yet */
    assert_string_equal(told.trainer, "node7-4711");
    assert_string_equal(told.answer, "{\"batch\":11}");
    assert_string_equal(told.group, "g7");
    told.sampler.stream = row.stream;
    told.sampler.trainer = row.trainer;
    assert_memory_equal(&told.sampler.rule, &row.rule, sizeof(row.rule));
    assert_memory_equal(told.sampler.since, row.since, sizeof(row.since));
    assert_memory_equal(told.sampler.total, row.total, sizeof(row.total));
    assert_memory_equal(told.sampler.recent, row.recent, sizeof(row.recent));
    assert_true(told.sampler.submitted == 960 && told.sampler.batch == 11 && told.sampler.batched == 80);
    assert_true(told.sampler.unlisted == 5 && told.sampler.close_count == 7);
    assert_true(told.sampler.is_closing && told.sampler.cancels);
    told.sampled.stream = full_group.stream;
    told.sampled.group = full_group.group;
    assert_memory_equal(&told.sampled, &full_group, offsetof(struct core_sampled, is_forgotten)); /* padding follows */
    assert_int_equal(told.sampled.is_forgotten, full_group.is_forgotten);
}

static void a_change_replaces_what_was_there_and_keeps_the_answer(void **state)
{
    struct world *world = *state;
    struct core_sampler row = full_sampler();
    struct core_sampled group = full_group;
    commit_one(world, sampler_effect(&row));
    commit_one(world, batch_effect("{}"));
    commit_one(world, sampled_effect(&group));
    memset(row.since, 0, sizeof(row.since));
    row.rule.has_staleness = false;
    row.batch = 12;
    group.state = 3;
    commit_one(world, sampler_effect(&row));
    commit_one(world, sampled_effect(&group));
    reopen(world);
    struct told told = restore(world);
    assert_true(told.sampler.batch == 12 && told.sampler.since[0] == 0 && !told.sampler.rule.has_staleness);
    assert_string_equal(told.answer, "{}");
    assert_true(told.groups == 1 && told.sampled.state == 3);
}

static void nothing_is_left_of_what_was_removed(void **state)
{
    struct world *world = *state;
    const struct core_sampler row = full_sampler();
    struct core_sampled group = full_group;
    commit_one(world, sampler_effect(&row));
    commit_one(world, sampled_effect(&group));
    group.number = 8;
    commit_one(world, sampled_effect(&group));
    commit_one(world, (struct effect){.kind = PERSIST_SAMPLED, .stream = S("train"), .seq = 7});
    struct told told = restore(world);
    assert_true(told.groups == 1 && told.sampled.number == 8);
    commit_one(world, (struct effect){.kind = PERSIST_SAMPLER, .stream = S("train")});
    told = restore(world);
    assert_true(told.samplers == 0 && told.groups == 0);
}

static void an_init_is_begun_again_without_what_went_wrong(void **state)
{
    struct world *world = *state;
    commit_one(world, group("a", "train", 2));
    commit_one(world, (struct effect){.kind = PERSIST_FAILURES, .failures = {.job = S("init:a"), .infras = 3}});
    commit_one(world, (struct effect){.kind = PERSIST_AGAIN, .group = S("a")});
    reopen(world);
    assert_null(strstr(restored(world), "failures"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_written_of_a_sampler_comes_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_change_replaces_what_was_there_and_keeps_the_answer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_is_left_of_what_was_removed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_init_is_begun_again_without_what_went_wrong, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
