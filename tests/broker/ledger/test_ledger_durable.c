/* From committed to durable: on a disk whose syncs are held up, or fail. */
#include "tests/broker/ledger/ledger_world.h"
#include "tests/broker/ledger/slow_disk.h"

#include <poll.h>

enum { UNASKED_MS = 50 }; /* so long no sync ends that nobody has asked for */

static uint64_t committed(struct world *world) { return ledger_committed(world->ledger).number; }

static void ask(struct world *world)
{
    const struct commit_point last = ledger_committed(world->ledger);
    ledger_ask_durable(world->ledger, &last);
}

static uint64_t durable(struct world *world)
{
    struct fail fail = {0};
    uint64_t number = 0;
    if (ledger_durable(world->ledger, &number, &fail) != 0)
        fail_msg("%s", fail.text);
    return number;
}

static void commit_group(struct world *world, const char *id)
{
    struct effect effect = group(id, "train", 1);
    assert_int_equal(commit_undurable(world->ledger, &effect, 1, NULL), 0);
    ask(world);
}

static void commits_go_on_while_the_disk_syncs_and_are_durable_behind_it(void **state)
{
    struct world *world = *state;
    char id[16];
    commit_one(world, group("first", "train", 1));
    const uint64_t before = committed(world);
    assert_int_equal(durable(world), before);
    atomic_store(&slow_disk()->is_held, true);
    const unsigned syncs = atomic_load(&slow_disk()->syncs);
    for (unsigned i = 0; i < 50; i++) {
        snprintf(id, sizeof(id), "g%u", i);
        commit_group(world, id);
    }
    assert_int_equal(committed(world), before + 50);
    assert_int_equal(durable(world), before);
    assert_non_null(strstr(restored(world), "group g49 ")); /* what is committed is there to read */
    atomic_store(&slow_disk()->is_held, false);
    assert_int_equal(ledger_sync(world->ledger, NULL), 0);
    assert_int_equal(durable(world), before + 50);
    assert_in_range(atomic_load(&slow_disk()->syncs), syncs + 1, syncs + 2); /* one for many */
}

static void its_descriptor_is_readable_when_more_is_durable(void **state)
{
    struct world *world = *state;
    struct pollfd item = {ledger_sync_fd(world->ledger), POLLIN, 0};
    assert_true(item.fd >= 0);
    durable(world);
    assert_int_equal(poll(&item, 1, 0), 0);
    commit_group(world, "a");
    assert_int_equal(poll(&item, 1, 10000), 1);
    assert_int_equal(durable(world), committed(world));
    assert_int_equal(poll(&item, 1, 0), 0);
}

static void what_only_reads_needs_no_sync(void **state)
{
    struct world *world = *state;
    commit_one(world, group("a", "train", 1));
    const uint64_t before = committed(world);
    assert_int_equal(ledger_read_begin(world->ledger, NULL), 0);
    assert_int_equal(ledger_read_end(world->ledger, NULL), 0);
    assert_int_equal(ledger_begin(world->ledger, NULL), 0);
    assert_int_equal(ledger_commit(world->ledger, NULL), 0); /* of nothing */
    assert_int_equal(committed(world), before);
}

static void nothing_is_synced_before_somebody_asks_for_it(void **state)
{
    struct world *world = *state;
    commit_one(world, group("a", "train", 1));
    const unsigned syncs = atomic_load(&slow_disk()->syncs);
    const uint64_t before = durable(world);
    struct effect effect = group("b", "train", 1);
    assert_int_equal(commit_undurable(world->ledger, &effect, 1, NULL), 0);
    struct pollfd item = {ledger_sync_fd(world->ledger), POLLIN, 0};
    assert_int_equal(poll(&item, 1, UNASKED_MS), 0);
    assert_int_equal(durable(world), before);
    assert_int_equal(atomic_load(&slow_disk()->syncs), syncs);
    ask(world);
    assert_int_equal(ledger_sync(world->ledger, NULL), 0);
    assert_int_equal(atomic_load(&slow_disk()->syncs), syncs + 1); /* it was asked for once */
}

static void a_sync_that_fails_is_final_and_what_was_durable_is_kept(void **state)
{
    struct world *world = *state;
    struct fail fail = {0};
    uint64_t number;
    commit_one(world, group("kept", "train", 1));
    atomic_store(&slow_disk()->is_broken, true);
    commit_group(world, "lost");
    assert_int_equal(ledger_sync(world->ledger, &fail), -EIO);
    assert_non_null(strstr(fail.text, "the disk refused a read, a write or a sync"));
    assert_int_equal(ledger_durable(world->ledger, &number, NULL), -EIO);
    assert_int_equal(ledger_begin(world->ledger, NULL), -EIO);
    atomic_store(&slow_disk()->is_broken, false);
    reopen(world);
    assert_non_null(strstr(restored(world), "group kept "));
}

static int let_go(void **state)
{
    atomic_store(&slow_disk()->is_held, false);
    atomic_store(&slow_disk()->is_broken, false);
    return tear_down(state);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, let_go)
    const struct CMUnitTest tests[] = {
        TEST(commits_go_on_while_the_disk_syncs_and_are_durable_behind_it),
        TEST(its_descriptor_is_readable_when_more_is_durable),
        TEST(what_only_reads_needs_no_sync),
        TEST(nothing_is_synced_before_somebody_asks_for_it),
        TEST(a_sync_that_fails_is_final_and_what_was_durable_is_kept),
    };
    slow_disk();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    slow_disk_remove();
    return failed;
}
