/* The ledger: a file of an earlier version opens, and loses nothing. */
#include "tests/broker/ledger/ledger_world.h"

#include <sqlite3.h>

static char *read_all(const char *path)
{
    AUTO_FCLOSE FILE *file = fopen(path, "r");
    AUTO_BUFFER text = {0};
    char bytes[4096];
    if (!file)
        fail_msg("%s is not there", path);
    for (size_t got; (got = fread(bytes, 1, sizeof(bytes), file)) > 0;)
        assert_true(buffer_append(&text, bytes, got));
    assert_true(buffer_append(&text, "", 1));
    return (char *)take_ptr(&text.data);
}

/* Makes the ledger's file from the SQL of tests/broker/fixtures, as a broker of then left it. */
static void make_from(struct world *world, const char *fixture)
{
    const char *source = getenv("SLUICE_SOURCE_DIR");
    char sql_path[512], path[96];
    ledger_close(&world->ledger);
    snprintf(sql_path, sizeof(sql_path), "%s/tests/broker/fixtures/%s", source ? source : ".", fixture);
    snprintf(path, sizeof(path), "%s/ledger.db", world->dir);
    assert_int_equal(unlink(path), 0);
    AUTO_FREE char *sql = read_all(sql_path);
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static const char told_of_v1[] = "stream train 1..3\n"
                                 "stream valid 2..1\n"
                                 "engine http://e:2\n"
                                 "group b valid x1 task= init=0  0\n"
                                 "group a train x3 task=add init=1 sha256:init 35\n"
                                 " a/0 ended train 1\n"
                                 " a/1 open\n"
                                 " a/2 run agent '3 turns' 5100 http://e:1\n"
                                 "group c train x2 task=add init=0  0\n"
                                 " c/0 ended train 3\n"
                                 " c/1 open\n"
                                 "group d train x1 task=add init=0  0\n"
                                 " d/0 ended train 2\n"
                                 "group e train x1 task=think init=0  0\n"
                                 " e/0 open\n";

static void version_1_restores_what_it_held_and_goes_on(void **state)
{
    struct world *world = *state;
    make_from(world, "ledger_v1.sql");
    open_ledger(world);
    assert_string_equal(restored(world), told_of_v1);
    reopen(world);
    assert_string_equal(restored(world), told_of_v1);
    uint64_t epoch;
    struct msg_trajectory got;
    assert_int_equal(ledger_next_epoch(world->ledger, &epoch, NULL), 0);
    assert_int_equal(epoch, 8);
    assert_int_equal(ledger_load_trajectory(world->ledger, S("train"), 1, &got, NULL), 0);
    assert_true(slice_is(got.record, "record 0") && slice_is(got.detail, "half"));
    commit_one(world, group("f", "train", 1));
    reopen(world);
    assert_non_null(strstr(restored(world), "group f train x1 task=add init=0  0\n f/0 open\n"));
}

static bool check_group(void *context, const struct core_group_row *row)
{
    if (slice_is(row->group, "e")) { /* its summary were read from the task */
        assert_true(row->task.needs_engine && slice_is(row->task.image, "/img"));
        assert_int_equal(row->task.limit_ms[STAGE_RUN], 77000);
        assert_true(row->task.total_ms > 0 && row->task.bytes > 100);
    }
    if (row->task.id.len) { /* its deadline counts from the day it was brought up to date */
        assert_int_equal(row->priority, 5);
        assert_true(row->accepted_ms > 1700000000000);
    }
    ++*(unsigned *)context;
    return true;
}

static bool check_rollout(void *context, const struct core_rollout_row *row)
{
    (void)context;
    if (slice_is(row->rollout, "a/0"))
        assert_int_equal(row->record_bytes, 8);
    return true;
}

static bool ignore_stream(void *context, struct slice name, struct slice owner, uint64_t first, uint64_t head)
{
    (void)context, (void)name, (void)first, (void)head;
    assert_int_equal(owner.len, 0);
    return true;
}

static bool ignore_engine(void *context, const struct core_engine *row)
{
    (void)context, (void)row;
    return true;
}

static void version_1_gets_what_later_ones_know(void **state)
{
    struct world *world = *state;
    unsigned groups = 0;
    make_from(world, "ledger_v1.sql");
    open_ledger(world);
    struct ledger_reader reader = {.context = &groups,
                                   .stream = ignore_stream,
                                   .engine = ignore_engine,
                                   .group = check_group,
                                   .rollout = check_rollout};
    assert_int_equal(ledger_restore(world->ledger, &reader, NULL), 0);
    assert_int_equal(groups, 5);
}

#define AS_VERSION_19                                                                                                  \
    "ALTER TABLE groups RENAME COLUMN summary TO task_id; ALTER TABLE groups ADD COLUMN needs_engine INTEGER;"         \
    "ALTER TABLE groups ADD COLUMN init_limit_ms INTEGER; ALTER TABLE groups ADD COLUMN run_limit_ms INTEGER;"         \
    "ALTER TABLE groups ADD COLUMN eval_limit_ms INTEGER; ALTER TABLE groups ADD COLUMN total_ms INTEGER;"             \
    "ALTER TABLE groups ADD COLUMN task_bytes INTEGER; ALTER TABLE groups ADD COLUMN policy TEXT NOT NULL DEFAULT '';" \
    "ALTER TABLE groups ADD COLUMN run_needs TEXT; ALTER TABLE groups ADD COLUMN eval_needs TEXT;"                     \
    "ALTER TABLE groups ADD COLUMN reads_record INTEGER; ALTER TABLE groups ADD COLUMN judge TEXT;"                    \
    "UPDATE groups SET task_id = 'add', needs_engine = 1, init_limit_ms = 1, run_limit_ms = 2, eval_limit_ms = 3,"     \
    " total_ms = 4, task_bytes = 5; PRAGMA user_version = 19;"
#define AS_VERSION_18 AS_VERSION_19 "DROP TABLE samplers; DROP TABLE sampled; PRAGMA user_version = 18;"
#define AS_VERSION_17                                                                                                  \
    AS_VERSION_18                                                                                                      \
    "ALTER TABLE groups ADD COLUMN metadata TEXT;"                                                                     \
    "UPDATE groups SET metadata = json_extract(task, '$.metadata') WHERE has_metadata AND json_valid(task);"           \
    "ALTER TABLE groups DROP COLUMN has_metadata; PRAGMA user_version = 17;"
#define AS_VERSION_16 AS_VERSION_17 "ALTER TABLE troubles DROP COLUMN missing; PRAGMA user_version = 16;"
#define AS_VERSION_15 AS_VERSION_16 "ALTER TABLE groups DROP COLUMN judge; PRAGMA user_version = 15;"
#define AS_VERSION_14                                                                                                  \
    AS_VERSION_15                                                                                                      \
    "ALTER TABLE groups DROP COLUMN run_needs; ALTER TABLE groups DROP COLUMN eval_needs;"                             \
    "ALTER TABLE groups DROP COLUMN reads_record; PRAGMA user_version = 14;"
#define AS_VERSION_13                                                                                                  \
    AS_VERSION_14                                                                                                      \
    "ALTER TABLE groups DROP COLUMN metadata; ALTER TABLE runs DROP COLUMN sampled_tokens;"                            \
    "ALTER TABLE runs DROP COLUMN truncated; ALTER TABLE runs DROP COLUMN verdict;"                                    \
    "ALTER TABLE ends DROP COLUMN raw_reward; ALTER TABLE ends DROP COLUMN group_ended; PRAGMA user_version = 13;"
#define AS_VERSION_12                                                                                                  \
    AS_VERSION_13 "ALTER TABLE engines DROP COLUMN policy; ALTER TABLE engines DROP COLUMN tokenizer;"                 \
                  "ALTER TABLE engines DROP COLUMN template; ALTER TABLE groups DROP COLUMN policy;"                   \
                  "DROP TABLE policies; PRAGMA user_version = 12;"
#define AS_VERSION_11 AS_VERSION_12 "ALTER TABLE ends DROP COLUMN clock_ms; PRAGMA user_version = 11;"
#define AS_VERSION_10 AS_VERSION_11 "DROP TABLE leases; PRAGMA user_version = 10;"
#define AS_VERSION_9 AS_VERSION_10 "DROP TABLE past_groups; PRAGMA user_version = 9;"
#define AS_VERSION_8 AS_VERSION_9 "ALTER TABLE engines DROP COLUMN credentials; PRAGMA user_version = 8;"
#define AS_VERSION_7 AS_VERSION_8 "DELETE FROM meta WHERE name = 'versions'; PRAGMA user_version = 7;"
#define AS_VERSION_6 AS_VERSION_7 "ALTER TABLE engines DROP COLUMN version_number; PRAGMA user_version = 6;"
#define AS_VERSION_5                                                                                                   \
    AS_VERSION_6 "ALTER TABLE engines DROP COLUMN version;"                                                            \
                 "ALTER TABLE engines DROP COLUMN calls;"                                                              \
                 "ALTER TABLE engines DROP COLUMN paused_until_ms; PRAGMA user_version = 5;"
#define AS_VERSION_4                                                                                                   \
    AS_VERSION_5 "ALTER TABLE engines DROP COLUMN runs_max;"                                                           \
                 "ALTER TABLE engines DROP COLUMN draining; PRAGMA user_version = 4;"
#define AS_VERSION_3 AS_VERSION_4 "DROP INDEX inits_stored; DROP INDEX runs_stored; PRAGMA user_version = 3;"
#define AS_VERSION_2 AS_VERSION_3 "ALTER TABLE troubles DROP COLUMN spent; PRAGMA user_version = 2;"

/* The ledger's file as a broker of an earlier version left it. */
static void take_back(struct world *world, const char *sql)
{
    char path[96];
    sqlite3 *db;
    ledger_close(&world->ledger);
    snprintf(path, sizeof(path), "%s/ledger.db", world->dir);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static int count_stored_indexes(struct world *world)
{
    char path[96];
    sqlite3 *db;
    sqlite3_stmt *ask;
    snprintf(path, sizeof(path), "%s/ledger.db", world->dir);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db,
                                        "SELECT count(*) FROM sqlite_schema WHERE type = 'index'"
                                        " AND name LIKE '%_stored'",
                                        -1, &ask, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(ask), SQLITE_ROW);
    int count = sqlite3_column_int(ask, 0);
    sqlite3_finalize(ask);
    sqlite3_close(db);
    return count;
}

static bool check_age(void *context, const struct core_rollout_row *row)
{
    assert_true(row->ended);
    assert_int_equal(row->ended_ms, 5); /* as its ended_ms said */
    ++*(unsigned *)context;
    return true;
}

static bool ignore_group(void *context, const struct core_group_row *row)
{
    (void)context, (void)row;
    return true;
}

static void version_11_took_ages_from_the_wall_clock(void **state)
{
    struct world *world = *state;
    unsigned count = 0;
    commit_ended(world, 2);
    take_back(world, AS_VERSION_11);
    open_ledger(world);
    struct ledger_reader reader = {.context = &count,
                                   .stream = ignore_stream,
                                   .engine = ignore_engine,
                                   .group = ignore_group,
                                   .rollout = check_age};
    assert_int_equal(ledger_restore(world->ledger, &reader, NULL), 0);
    assert_int_equal(count, 2);
}

static void version_9_knew_the_last_groups_by_name_and_forgot_all_others(void **state)
{
    struct world *world = *state;
    uint64_t hash;
    commit_ended(world, 3);
    commit_one(world, ack("train", 3));
    do_all_chores(world);
    take_back(world, AS_VERSION_9);
    struct ledger_options options = {.dir = world->dir, .forgotten_max = 1};
    assert_int_equal(ledger_open(&world->ledger, &options, NULL), 0);
    commit_one(world, group("g4", "train", 1));
    commit_one(world, end_of("train", 4, "g4", "g4/0"));
    commit_one(world, ack("train", 4));
    do_all_chores(world);
    for (int i = 1; i <= 4; i++) {
        char id[16];
        snprintf(id, sizeof(id), "g%d", i);
        assert_int_equal(ledger_find_past(world->ledger, S(id), &hash, NULL), 1);
    }
}

static struct effect group_with(const char *id, const char *task)
{
    struct effect effect = group(id, "train", 2);
    effect.task = S(task);
    return effect;
}

/* What the task says of itself is found in it; how many had ended of a group, nobody knows any more. */
static const char with[] = "{\"task\":\"t\",\"prompt\":\"p\",\"metadata\":{\"k\": [1, \"x\"]}}";

static bool check_asked_for(void *context, const struct core_group_row *row)
{
    ++*(unsigned *)context;
    assert_int_equal(row->priority, 9);
    assert_int_equal(row->lease_ms, 60000);
    assert_int_equal(row->accepted_ms, 1763697600000);
    assert_true(slice_is(row->task.id, "add") && row->task.bytes > 5); /* read from the task */
    return true;
}

static bool ignore_rollout(void *context, const struct core_rollout_row *row)
{
    (void)context, (void)row;
    return true;
}

static void version_19_had_a_column_for_each_part_of_the_summary(void **state)
{
    struct world *world = *state;
    unsigned count = 0;
    struct effect asked = group("a", "train", 1);
    asked.priority = 9;
    asked.lease_ms = 60000;
    asked.accepted_ms = 1763697600000;
    commit_one(world, asked);
    take_back(world, AS_VERSION_19);
    open_ledger(world);
    asked.group = S("b");
    commit_one(world, asked); /* beside what is not read any more */
    struct ledger_reader reader = {.context = &count,
                                   .stream = ignore_stream,
                                   .engine = ignore_engine,
                                   .group = check_asked_for,
                                   .rollout = ignore_rollout};
    assert_int_equal(ledger_restore(world->ledger, &reader, NULL), 0);
    assert_int_equal(count, 2);
}

static void version_17_kept_metadata_beside_the_task(void **state)
{
    struct world *world = *state;
    const struct effect effects[] = {group_with("a", with), group_with("b", "{\"task\":\"t\"}"),
                                     end_of("train", 1, "a", "a/0"), end_of("train", 2, "b", "b/0")};
    struct msg_trajectory got;
    commit(world, effects, 4);
    take_back(world, AS_VERSION_17);
    open_ledger(world);
    assert_int_equal(ledger_load_trajectory(world->ledger, S("train"), 1, &got, NULL), 0);
    assert_true(slice_is(got.metadata, "{\"k\": [1, \"x\"]}"));
    assert_int_equal(ledger_load_trajectory(world->ledger, S("train"), 2, &got, NULL), 0);
    assert_false(got.has_metadata);
}

static void version_13_kept_no_metadata_and_no_verdicts(void **state)
{
    struct world *world = *state;
    const struct effect effects[] = {
        group_with("a", with),         group_with("b", "{\"task\":\"t\"}"), group_with("c", "{\"metadata\":[[["),
        run_of("a/0", S("record")),    end_of("train", 1, "a", "a/0"),      end_of("train", 2, "b", "b/0"),
        end_of("train", 3, "c", "c/0")};
    struct msg_trajectory got;
    commit(world, effects, 7);
    take_back(world, AS_VERSION_13);
    open_ledger(world);
    assert_int_equal(ledger_load_trajectory(world->ledger, S("train"), 1, &got, NULL), 0);
    assert_true(slice_is(got.metadata, "{\"k\": [1, \"x\"]}") && got.group_size == 2 && slice_is(got.record, "record"));
    assert_false(got.has_group_ended || got.has_raw_reward || got.has_verdict);
    assert_int_equal(ledger_load_trajectory(world->ledger, S("train"), 2, &got, NULL), 0);
    assert_false(got.has_metadata);
    assert_int_equal(ledger_load_trajectory(world->ledger, S("train"), 3, &got, NULL), 0);
    assert_false(got.has_metadata);
}

static void version_15_knew_no_judges(void **state)
{
    struct world *world = *state;
    struct core_task summary = {.id = S("add"), .judge = S("critic")};
    struct effect judged = group("a", "train", 1);
    judged.summary = &summary;
    commit_one(world, judged);
    reopen(world);
    assert_non_null(strstr(restored(world), "task=add init=0  0 judged by critic\n"));
    take_back(world, AS_VERSION_15);
    open_ledger(world);
    assert_non_null(strstr(restored(world), "task=add init=0  0\n"));
}

static void version_14_did_not_keep_what_stages_need(void **state)
{
    static const char told[] = "group a train x1 task=ask init=0  0 run needs agent:mine tool:look.up"
                               " eval needs evaluator:grade and the record\n";
    struct world *world = *state;
    struct task_summary summary;
    struct refusal no;
    struct effect effect = group("a", "train", 1);
    effect.task = S("{\"task\":\"ask\",\"prompt\":\"?\",\"agent\":{\"kind\":\"mine\",\"tools\":[\"look.up\",\"bash\"]},"
                    "\"eval\":{\"kind\":\"grade\"}}");
    if (!task_summary_read(effect.task, &summary, &no))
        fail_msg("%s", no.text);
    effect.summary = &summary.task;
    commit_one(world, effect);
    assert_non_null(strstr(restored(world), told));
    take_back(world, AS_VERSION_14);
    open_ledger(world);
    assert_non_null(strstr(restored(world), told));
}

static void version_12_knew_no_policies_and_not_what_engines_serve(void **state)
{
    struct world *world = *state;
    struct core_task summary = {.id = S("add"), .needs_engine = true, .policy = S("critic")};
    struct effect critic = group("b", "train", 1);
    critic.summary = &summary;
    const struct effect effects[] = {
        {.kind = PERSIST_POLICY, .present = true, .policy = {S("critic"), S("t1"), S("c1")}},
        {.kind = PERSIST_POLICY, .present = true, .policy = {S("gone"), S("t2"), S("c2")}},
        {.kind = PERSIST_POLICY, .policy = {.name = S("gone")}},
        {.kind = PERSIST_ENGINE,
         .engine = S("http://e:1"),
         .present = true,
         .row = {.policy = S("critic"), .tokenizer = S("t1"), .template = S("c1")}},
        group("a", "train", 1),
        critic};
    commit(world, effects, 6);
    reopen(world);
    const char *all = restored(world);
    assert_non_null(strstr(all, "policy critic t1 c1\nengine http://e:1 of critic, t1 c1\n"));
    assert_null(strstr(all, "gone"));
    assert_non_null(strstr(all, "group b train x1 task=add init=0  0 of critic\n"));
    take_back(world, AS_VERSION_12);
    open_ledger(world);
    all = restored(world);
    assert_non_null(strstr(all, "stream train 1..0\nengine http://e:1\n"));
    assert_non_null(strstr(all, "group b train x1 task=add init=0  0\n"));
}

/* Until then they were part of an engine's name wherever it stood. */
static void version_8_kept_an_engines_credentials_in_its_url(void **state)
{
    struct world *world = *state;
    struct effect run = run_of("a/0", S("record"));
    run.engine = S("http://u:pa@ss@e:1/v1");
    const struct effect effects[] = {{.kind = PERSIST_ENGINE, .engine = S("http://u:pa@ss@e:1/v1"), .present = true},
                                     {.kind = PERSIST_ENGINE, .engine = S("https://token@[::1]:2"), .present = true},
                                     {.kind = PERSIST_ENGINE, .engine = S("http://e:3/v1/@x"), .present = true},
                                     group("a", "train", 2),
                                     init_of("a", S(""), S("")),
                                     run};
    struct effect end = end_of("train", 1, "a", "a/1");
    end.end.engine = S("http://u:p@e:4");
    commit(world, effects, 6);
    commit_one(world, end);
    take_back(world, AS_VERSION_8);
    open_ledger(world);
    const char *all = restored(world);
    assert_non_null(strstr(all, "engine http://e:1/v1 credentials=u:pa@ss\n"));
    assert_non_null(strstr(all, "engine https://[::1]:2 credentials=token\n"));
    assert_non_null(strstr(all, "engine http://e:3/v1/@x\n"));
    assert_non_null(strstr(all, " 5100 http://e:1/v1\n"));
    struct msg_trajectory got;
    assert_int_equal(ledger_load_trajectory(world->ledger, S("train"), 1, &got, NULL), 0);
    assert_true(slice_is(got.engine, "http://e:4"));
}

static void version_7_did_not_keep_the_highest_number_apart(void **state)
{
    struct world *world = *state;
    uint64_t versions;
    const struct effect effects[] = {{.kind = PERSIST_ENGINE,
                                      .engine = S("http://e:1"),
                                      .present = true,
                                      .row = {.version = S("v7"), .version_number = 9}},
                                     {.kind = PERSIST_ENGINE, .engine = S("http://e:1")}};
    commit(world, effects, 1);
    take_back(world, AS_VERSION_7);
    open_ledger(world);
    commit(world, effects + 1, 1);
    assert_int_equal(ledger_get_versions(world->ledger, &versions, NULL), 0);
    assert_int_equal(versions, 9);
}

static void version_6_did_not_number_the_versions_of_the_policy(void **state)
{
    struct world *world = *state;
    const struct effect effects[] = {{.kind = PERSIST_ENGINE,
                                      .engine = S("http://e:1"),
                                      .present = true,
                                      .row = {.version = S("v7"), .version_number = 9}}};
    commit(world, effects, 1);
    take_back(world, AS_VERSION_6);
    open_ledger(world);
    assert_string_equal(restored(world), "engine http://e:1 version=v7 #0\n");
}

static void version_4_knew_only_the_urls_of_engines(void **state)
{
    struct world *world = *state;
    const struct effect effects[] = {
        {.kind = PERSIST_ENGINE, .engine = S("http://e:1"), .present = true, .row = {.runs_max = 8, .draining = true}}};
    commit(world, effects, 1);
    take_back(world, AS_VERSION_4);
    open_ledger(world);
    assert_string_equal(restored(world), "engine http://e:1\n");
}

static void version_3_did_not_know_which_layers_lie_in_the_store(void **state)
{
    struct world *world = *state;
    assert_int_equal(count_stored_indexes(world), 2);
    take_back(world, AS_VERSION_3);
    assert_int_equal(count_stored_indexes(world), 0);
    open_ledger(world);
    assert_int_equal(count_stored_indexes(world), 2);
}

static void version_2_knew_failures_and_not_which_dispatches_they_were_of(void **state)
{
    struct world *world = *state;
    const struct effect effects[] = {group("a", "train", 1),
                                     init_of("a", S(""), S("")),
                                     {.kind = PERSIST_FAILURES,
                                      .failures = {.job = S("run:a/0"),
                                                   .attempt = 3,
                                                   .infras = 2,
                                                   .missing = 1,
                                                   .history = S("once, twice"),
                                                   .fenced_up_to = 7}}};
    commit(world, effects, 3);
    take_back(world, AS_VERSION_2);
    open_ledger(world);
    assert_non_null(strstr(restored(world), " run:a/0 attempt=3 infras=2 faults=0 blames=0 deaths=0"
                                            " missing=0 fenced_up_to=0 'once, twice'\n"));
}

/* Nobody can prove that it holds a job: what is at work at the upgrade is done again. */
static void version_10_did_not_know_who_has_which_job(void **state)
{
    struct world *world = *state;
    struct effect lease = {.kind = PERSIST_LEASE, .lease = {.job = S("init:a"), .token = 7, .worker = S("i1")}};
    const struct effect effects[] = {group("a", "train", 1), lease};
    commit(world, effects, 2);
    take_back(world, AS_VERSION_10);
    open_ledger(world);
    assert_null(strstr(restored(world), "leased"));
    commit_one(world, lease);
    assert_non_null(strstr(restored(world), " init:a leased 7 to i1 of \n"));
}

/* Every table's columns, in the order of their names. */
static char *columns_of(struct world *world)
{
    char path[96];
    AUTO_BUFFER text = {0};
    sqlite3 *db;
    sqlite3_stmt *ask;
    snprintf(path, sizeof(path), "%s/ledger.db", world->dir);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db,
                                        "SELECT m.name, c.name, c.type, c.\"notnull\", c.dflt_value,"
                                        " c.pk FROM sqlite_schema m JOIN pragma_table_info(m.name) c"
                                        " ORDER BY 1, 2",
                                        -1, &ask, NULL),
                     SQLITE_OK);
    while (sqlite3_step(ask) == SQLITE_ROW)
        for (int column = 0; column < 6; column++) {
            const char *value = (const char *)sqlite3_column_text(ask, column);
            assert_true(buffer_printf(&text, "%s%c", value ? value : "-", column < 5 ? ' ' : '\n'));
        }
    sqlite3_finalize(ask);
    sqlite3_close(db);
    assert_true(buffer_append(&text, "", 1));
    return (char *)take_ptr(&text.data);
}

static void an_upgraded_file_has_the_columns_of_a_new_one(void **state)
{
    struct world *world = *state;
    AUTO_FREE char *new = columns_of(world);
    make_from(world, "ledger_v1.sql");
    open_ledger(world);
    AUTO_FREE char *upgraded = columns_of(world);
    assert_string_equal(upgraded, new);
    assert_non_null(strstr(new, "tombs owner TEXT"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(version_1_restores_what_it_held_and_goes_on),
        TEST(version_1_gets_what_later_ones_know),
        TEST(version_19_had_a_column_for_each_part_of_the_summary),
        TEST(version_17_kept_metadata_beside_the_task),
        TEST(version_15_knew_no_judges),
        TEST(version_14_did_not_keep_what_stages_need),
        TEST(version_13_kept_no_metadata_and_no_verdicts),
        TEST(version_12_knew_no_policies_and_not_what_engines_serve),
        TEST(version_11_took_ages_from_the_wall_clock),
        TEST(version_10_did_not_know_who_has_which_job),
        TEST(version_9_knew_the_last_groups_by_name_and_forgot_all_others),
        TEST(version_8_kept_an_engines_credentials_in_its_url),
        TEST(version_7_did_not_keep_the_highest_number_apart),
        TEST(version_6_did_not_number_the_versions_of_the_policy),
        TEST(version_2_knew_failures_and_not_which_dispatches_they_were_of),
        TEST(version_4_knew_only_the_urls_of_engines),
        TEST(version_3_did_not_know_which_layers_lie_in_the_store),
        TEST(an_upgraded_file_has_the_columns_of_a_new_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
