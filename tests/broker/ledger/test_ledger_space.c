/* The ledger: what is acknowledged and swept goes back to the disk, of the file and of its log. */
#include "tests/broker/ledger/ledger_world.h"

#include <sqlite3.h>
#include <sys/stat.h>

enum { RECORD_BYTES = 1 << 20, RECORDS = 40 };

static int64_t bytes_of(struct world *world, const char *name)
{
    char path[96];
    struct stat found;
    snprintf(path, sizeof(path), "%s/%s", world->dir, name);
    return stat(path, &found) == 0 ? (int64_t)found.st_size : 0;
}

static void commit_large(struct world *world, unsigned count)
{
    AUTO_FREE char *record = calloc(1, RECORD_BYTES);
    for (unsigned i = 1; i <= count; i++) {
        char id[16], rollout[32];
        snprintf(id, sizeof(id), "g%u", i);
        snprintf(rollout, sizeof(rollout), "g%u/0", i);
        const struct effect effects[] = {group(id, "train", 1), run_of(rollout, slice_of(record, RECORD_BYTES)),
                                         end_of("train", i, id, rollout)};
        commit(world, effects, 3);
    }
}

static void the_file_and_its_log_are_cut_once_all_is_acknowledged(void **state)
{
    struct world *world = *state;
    commit_large(world, RECORDS);
    assert_true(bytes_of(world, "ledger.db-wal") > RECORDS * RECORD_BYTES);
    commit_one(world, ack("train", RECORDS));
    do_all_chores(world);
    assert_true(bytes_of(world, "ledger.db") < 12 << 20); /* 8 MiB are kept for what comes next */
    assert_int_equal(bytes_of(world, "ledger.db-wal"), 0);
}

static void where_the_disk_is_low_nothing_is_kept_back(void **state)
{
    struct world *world = *state;
    commit_large(world, RECORDS);
    commit_one(world, ack("train", RECORDS));
    do_all_chores(world);
    ledger_be_tight(world->ledger, true);
    do_all_chores(world);
    assert_true(bytes_of(world, "ledger.db") < 2 << 20);
    assert_int_equal(bytes_of(world, "ledger.db-wal"), 0);
}

static void a_reader_in_the_way_is_not_waited_for_and_the_cut_comes_after_it(void **state)
{
    struct world *world = *state;
    char path[96];
    sqlite3 *reader;
    snprintf(path, sizeof(path), "%s/ledger.db", world->dir);
    commit_large(world, RECORDS);
    assert_int_equal(sqlite3_open(path, &reader), SQLITE_OK);
    assert_int_equal(sqlite3_exec(reader, "BEGIN; SELECT * FROM streams", NULL, NULL, NULL), SQLITE_OK);
    commit_one(world, ack("train", RECORDS));
    do_all_chores(world); /* there is an end to them */
    assert_true(bytes_of(world, "ledger.db-wal") > RECORDS * RECORD_BYTES);
    sqlite3_close(reader);
    assert_int_equal(ledger_look(world->ledger, NULL), 0);
    do_all_chores(world);
    assert_int_equal(bytes_of(world, "ledger.db-wal"), 0);
    assert_true(bytes_of(world, "ledger.db") < 12 << 20);
}

/* As a batch does: what it sends is loaded in the transaction that it commits. */
static void what_was_loaded_is_not_in_the_way_when_a_long_log_is_brought_home(void **state)
{
    struct world *world = *state;
    struct fail fail = {0};
    struct msg_trajectory loaded;
    commit_large(world, RECORDS);
    ledger_be_tight(world->ledger, true);
    assert_int_equal(ledger_begin(world->ledger, &fail), 0);
    const struct effect next = group("next", "train", 1);
    assert_int_equal(ledger_apply(world->ledger, &next, &fail), 0);
    assert_int_equal(ledger_load_trajectory(world->ledger, S("train"), 1, &loaded, &fail), 0);
    if (ledger_commit(world->ledger, &fail) != 0)
        fail_msg("%s", fail.text);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_file_and_its_log_are_cut_once_all_is_acknowledged),
        TEST(where_the_disk_is_low_nothing_is_kept_back),
        TEST(what_was_loaded_is_not_in_the_way_when_a_long_log_is_brought_home),
        TEST(a_reader_in_the_way_is_not_waited_for_and_the_cut_comes_after_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
