/* The ledger: what scheduling needs of a task, in one column of its group's row. */
#include "tests/broker/ledger/ledger_world.h"

#include <sqlite3.h>

#include "broker/ledger/inner.h"

static const struct core_task full = {
    .id = {(const uint8_t *)"math-1", 6},
    .image = {(const uint8_t *)"/images/debian.sif", 18},
    .needs_engine = true,
    .limit_ms = {0, 127, 128},
    .total_ms = INT64_MAX,
    .bytes = UINT64_MAX,
    .policy = {(const uint8_t *)"critic", 6},
    .needs = {[STAGE_RUN] = {(const uint8_t *)"agent:mine tool:x", 17}, [STAGE_EVAL] = {(const uint8_t *)"e", 1}},
    .reads_record = true,
    .judge = {(const uint8_t *)"judge", 5}};
static const struct core_task least = {.id = {(const uint8_t *)"m", 1}};

static void expect_same(const struct core_task *one, const struct core_task *other)
{
    assert_true(slice_equal(one->id, other->id) && slice_equal(one->image, other->image));
    assert_true(slice_equal(one->policy, other->policy) && slice_equal(one->judge, other->judge));
    for (unsigned stage = 0; stage < STAGE_COUNT; stage++) {
        assert_true(slice_equal(one->needs[stage], other->needs[stage]));
        assert_int_equal(one->limit_ms[stage], other->limit_ms[stage]);
    }
    assert_int_equal(one->needs_engine, other->needs_engine);
    assert_int_equal(one->reads_record, other->reads_record);
    assert_int_equal(one->total_ms, other->total_ms);
    assert_true(one->bytes == other->bytes);
}

static void what_was_packed_is_unpacked(void **state)
{
    (void)state;
    const struct core_task *const tasks[] = {&full, &least};
    for (size_t i = 0; i < 2; i++) {
        uint8_t bytes[SUMMARY_BYTES_MAX];
        struct core_task got = {0};
        struct slice packed = ledger_summary_pack(tasks[i], bytes, sizeof(bytes));
        assert_true(packed.len > 0 && ledger_summary_unpack(packed, &got));
        expect_same(&got, tasks[i]);
    }
}

static void what_has_no_room_is_not_packed(void **state)
{
    (void)state;
    uint8_t bytes[256];
    const size_t len = ledger_summary_pack(&full, bytes, sizeof(bytes)).len;
    assert_int_equal(ledger_summary_pack(&full, bytes, len).len, len);
    for (size_t size = 0; size < len; size++)
        assert_int_equal(ledger_summary_pack(&full, bytes, size).len, 0);
}

/* Each beginning of one, one with a byte more, and one without an id. */
static void what_is_no_summary_is_not_taken_for_one(void **state)
{
    (void)state;
    uint8_t bytes[256];
    struct core_task got;
    struct slice packed = ledger_summary_pack(&full, bytes, sizeof(bytes));
    for (size_t len = 0; len < packed.len; len++) {
        AUTO_FREE uint8_t *cut = malloc(len + 1); /* its own: that a byte behind it is read would be seen */
        memcpy(cut, bytes, len);
        assert_false(ledger_summary_unpack(slice_of(cut, len), &got));
    }
    bytes[packed.len] = 0;
    assert_false(ledger_summary_unpack(slice_of(bytes, packed.len + 1), &got));
    memset(bytes, 0xff, sizeof(bytes));
    assert_false(ledger_summary_unpack(slice_of(bytes, sizeof(bytes)), &got));
    packed = ledger_summary_pack(&(struct core_task){.bytes = 5}, bytes, sizeof(bytes));
    assert_false(ledger_summary_unpack(packed, &got));
}

static void where_a_row_has_no_summary_the_task_is_read(void **state)
{
    struct world *world = *state;
    static const char *const rows[] = {"NULL", "x'00'", "'text'", "7", "zeroblob(100)"};
    struct effect said = group("a", "train", 1);
    said.summary = &full;
    commit_one(world, said);
    assert_non_null(strstr(restored(world), "group a train x1 task=math-1 "));
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char path[96], sql[96];
        sqlite3 *db;
        ledger_close(&world->ledger);
        snprintf(path, sizeof(path), "%s/ledger.db", world->dir);
        snprintf(sql, sizeof(sql), "UPDATE groups SET summary = %s", rows[i]);
        assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        open_ledger(world);
        assert_non_null(strstr(restored(world), "group a train x1 task=add "));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_packed_is_unpacked),
        cmocka_unit_test(what_has_no_room_is_not_packed),
        cmocka_unit_test(what_is_no_summary_is_not_taken_for_one),
        cmocka_unit_test_setup_teardown(where_a_row_has_no_summary_the_task_is_read, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
