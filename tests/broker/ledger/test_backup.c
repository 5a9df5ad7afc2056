/* ledger.backup, as an admin sees it: the broker is a process, its directory can be looked at. */
#include "tests/broker/io/io_world.h"

#include <dirent.h>
#include <sqlite3.h>
#include <sys/stat.h>

static void ask_for_backup(struct world *world, const char *name)
{
    struct msg_ledger_backup request = {.tag = ++world->tag, .name = S(name)};
    world_send(world, world->client, MSG_ledger_backup, &request);
}

static uint64_t back_up(struct world *world, const char *name)
{
    struct msg_done done;
    ask_for_backup(world, name);
    world_expect(world, MSG_done, &done);
    assert_int_equal(done.tag, world->tag);
    return done.count;
}

static void expect_refused(struct world *world, const char *reason, const char *words)
{
    struct msg_refused refused;
    world_expect(world, MSG_refused, &refused);
    assert_true(slice_is(refused.reason, reason) && slice_is(refused.request, "ledger.backup"));
    if (!memmem(refused.text.data, refused.text.len, words, strlen(words)))
        fail_msg("'%.*s' does not say '%s'", SLICE_ARG(refused.text), words);
}

static void backup_path(const struct world *world, const char *file, char ret[160])
{
    snprintf(ret, 160, "%s/backups/%s", world->data, file);
}

static void check_whole(const char *path)
{
    sqlite3 *db;
    sqlite3_stmt *check;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &check, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(check), SQLITE_ROW);
    assert_string_equal(sqlite3_column_text(check, 0), "ok");
    sqlite3_finalize(check);
    sqlite3_close(db);
}

/* The files of backups/ but . and .. */
static unsigned count_files(const struct world *world)
{
    char path[160];
    unsigned count = 0;
    backup_path(world, "", path);
    DIR *dir = opendir(path);
    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    return count < 2 ? 0 : count - 2;
}

/* Puts a backup in the ledger's place, as docs/operations.md says. */
static void restore_backup(struct world *world, const char *name)
{
    char command[512];
    snprintf(command, sizeof(command),
             "cd %s && rm -f ledger.db ledger.db-wal ledger.db-shm lock &&"
             " cp backups/%s.db ledger.db",
             world->data, name);
    assert_int_equal(system(command), 0);
}

static void a_backup_is_whole_and_a_broker_starts_from_it(void **state)
{
    struct world *world = *state;
    char path[160];
    struct stat found;
    submit(world, "before", 2, false);
    uint64_t bytes = back_up(world, "monday");
    backup_path(world, "monday.db", path);
    assert_int_equal(stat(path, &found), 0);
    assert_int_equal(found.st_size, bytes);
    check_whole(path);
    submit(world, "after", 1, false);
    world_stop(world, SIGKILL);
    restore_backup(world, "monday");
    world_start(world);
    submit(world, "before", 2, true);
    submit(world, "after", 1, false);
}

static unsigned mode_of(const char *path)
{
    struct stat found;
    assert_int_equal(stat(path, &found), 0);
    return found.st_mode & 0777;
}

static void a_backup_is_its_users_alone(void **state)
{
    struct world *world = *state;
    char path[160];
    back_up(world, "monday");
    backup_path(world, "monday.db", path);
    assert_int_equal(mode_of(path), 0600);
    assert_int_equal(chmod(path, 0644), 0); /* as an earlier version left it */
    world_stop(world, SIGTERM);
    world_start(world);
    assert_int_equal(mode_of(path), 0600);
}

static void a_name_is_used_once_and_must_be_a_name(void **state)
{
    struct world *world = *state;
    back_up(world, "monday");
    ask_for_backup(world, "monday");
    expect_refused(world, "backup-failed", "monday exists already");
    ask_for_backup(world, "../monday");
    expect_refused(world, "bad-name", "'/'");
    assert_int_equal(count_files(world), 1);
}

/* A ledger of so many MiB: groups of large tasks. */
static void fill(struct world *world, unsigned mib)
{
    AUTO_FREE char *task = malloc(1 << 20);
    int len = snprintf(task, 1 << 20, "{\"task\":\"add\",\"kind\":\"noop\",\"prompt\":\"");
    memset(task + len, 'x', (1 << 20) - 3 - (size_t)len);
    strcpy(task + (1 << 20) - 3, "\"}");
    for (unsigned i = 0; i < mib; i++) {
        char group[32];
        snprintf(group, sizeof(group), "big-%u", i);
        struct msg_group_submit message = submit_of(world, group, 1);
        struct msg_group_accepted accepted;
        message.task = S(task);
        world_ask(world, MSG_group_submit, &message, MSG_group_accepted, &accepted);
    }
}

static void submits_go_on_while_a_backup_is_made_and_a_second_one_waits(void **state)
{
    struct world *world = *state;
    struct msg_done done = {0};
    struct msg_refused refused;
    fill(world, 160);
    ask_for_backup(world, "large");
    uint64_t tag = world->tag;
    ask_for_backup(world, "second");
    expect_refused(world, "queue-full", "another backup");
    unsigned accepted = 0;
    for (bool is_done = false; !is_done; accepted++) {
        char group[32];
        struct msg_group_accepted answer;
        snprintf(group, sizeof(group), "small-%u", accepted);
        struct msg_group_submit message = submit_of(world, group, 1);
        world_send(world, world->client, MSG_group_submit, &message);
        world_until(world, world_take_answer(world));
        is_done = world_decode(&world->answer, MSG_done, &done);
        if (world_decode(&world->answer, MSG_refused, &refused))
            fail_msg("refused: %.*s: %.*s", SLICE_ARG(refused.reason), SLICE_ARG(refused.text));
        if (!is_done)
            assert_true(world_decode(&world->answer, MSG_group_accepted, &answer));
    }
    print_message("%u submits while the copy was made\n", accepted);
    assert_true(accepted > 3);
    assert_int_equal(done.tag, tag);
    assert_true(done.count > 160u << 20);
    char path[160];
    backup_path(world, "large.db", path);
    check_whole(path);
    assert_int_equal(count_files(world), 1);
}

static void a_broker_told_to_stop_ends_its_backup_and_leaves_no_part(void **state)
{
    struct world *world = *state;
    char path[160];
    fill(world, 160);
    ask_for_backup(world, "late");
    backup_path(world, "late.db.part", path);
    world_until(world, access(path, F_OK) == 0); /* it has begun */
    int status = world_stop(world, SIGTERM);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(count_files(world), 0);
    expect_refused(world, "backup-failed", "stopped");
    world_start(world);
    back_up(world, "late");
}

static void what_a_killed_backup_left_is_gone_after_the_start(void **state)
{
    struct world *world = *state;
    char path[160];
    back_up(world, "monday");
    world_stop(world, SIGKILL);
    static const char *const left[] = {"tuesday.db.part", "tuesday.db.part-journal"};
    for (int i = 0; i < 2; i++) {
        backup_path(world, left[i], path);
        AUTO_FCLOSE FILE *file = fopen(path, "w");
        assert_non_null(file);
    }
    assert_int_equal(count_files(world), 3);
    world_start(world);
    assert_int_equal(count_files(world), 1);
    back_up(world, "tuesday");
}

static void a_backup_that_cannot_be_written_is_refused_with_the_reason(void **state)
{
    struct world *world = *state;
    char path[160];
    snprintf(path, sizeof(path), "%s/backups", world->data);
    AUTO_FCLOSE FILE *file = fopen(path, "w"); /* where the directory should be */
    assert_non_null(file);
    ask_for_backup(world, "monday");
    expect_refused(world, "backup-failed", "backups");
    submit(world, "a", 1, false); /* and the broker goes on */
}

int main(int argc, char **argv)
{
    if (world_is_broker(argc, argv))
        return world_be_broker(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_backup_is_whole_and_a_broker_starts_from_it),
        TEST(a_backup_is_its_users_alone),
        TEST(a_name_is_used_once_and_must_be_a_name),
        TEST(submits_go_on_while_a_backup_is_made_and_a_second_one_waits),
        TEST(a_broker_told_to_stop_ends_its_backup_and_leaves_no_part),
        TEST(what_a_killed_backup_left_is_gone_after_the_start),
        TEST(a_backup_that_cannot_be_written_is_refused_with_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
