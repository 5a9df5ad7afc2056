/* The ledger: which groups were ever committed, told from their ids alone. */
#include "tests/broker/ledger/ledger_world.h"

#include "broker/task_summary.h"

enum { BY_NAME = 3 };

static void open_small(struct world *world)
{
    struct ledger_options options = {.dir = world->dir, .forgotten_max = BY_NAME};
    struct fail fail;
    ledger_close(&world->ledger);
    if (ledger_open(&world->ledger, &options, &fail) != 0)
        fail_msg("%s", fail.text);
}

static bool was_there(struct world *world, const char *id)
{
    uint64_t hash = 0;
    int found = ledger_find_past(world->ledger, S(id), &hash, NULL);
    assert_true(found >= 0);
    assert_int_equal(hash, found ? task_summary_hash(S("train"), 1, S(task_json)) : 0);
    return found > 0;
}

static void expect_all_were_there(struct world *world, unsigned count)
{
    for (unsigned i = 1; i <= count; i++) {
        char id[16];
        snprintf(id, sizeof(id), "g%u", i);
        if (!was_there(world, id))
            fail_msg("%s is not known", id);
    }
    assert_false(was_there(world, "g0"));
    assert_false(was_there(world, ""));
}

static unsigned count_groups_told(struct world *world)
{
    unsigned count = 0;
    for (const char *at = restored(world); (at = strstr(at, "group ")); at++)
        count++;
    return count;
}

static void an_id_is_known_from_its_commit_on_through_everything_that_is_forgotten(void **state)
{
    struct world *world = *state;
    open_small(world);
    commit_ended(world, 150);
    expect_all_were_there(world, 150);
    commit_one(world, ack("train", 149)); /* some are swept, most wait for it */
    expect_all_were_there(world, 150);
    do_all_chores(world);
    expect_all_were_there(world, 150);
    assert_int_equal(count_groups_told(world), BY_NAME + 1); /* no start reads the others */
    open_small(world);
    expect_all_were_there(world, 150);
}

static void fewer_by_name_than_before_loses_none(void **state)
{
    struct world *world = *state;
    commit_ended(world, 20);
    commit_one(world, ack("train", 20));
    do_all_chores(world);
    open_small(world);
    expect_all_were_there(world, 20);
    commit_one(world, group("more", "train", 1));
    expect_all_were_there(world, 20);
}

static void what_was_rolled_back_was_never_there(void **state)
{
    struct world *world = *state;
    struct effect effect = group("a", "train", 1);
    assert_int_equal(ledger_begin(world->ledger, NULL), 0);
    assert_int_equal(ledger_apply(world->ledger, &effect, NULL), 0);
    reopen(world);
    assert_false(was_there(world, "a"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(an_id_is_known_from_its_commit_on_through_everything_that_is_forgotten),
        TEST(fewer_by_name_than_before_loses_none),
        TEST(what_was_rolled_back_was_never_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
