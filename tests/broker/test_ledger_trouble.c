/* What may happen to the ledger's process, directory and disk. */
#include "tests/broker/ledger_world.h"
#include "tests/broker/small_disk.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void what_was_not_committed_is_not_there(void **state)
{
    struct world *world = *state;
    struct effect effect = group("a", "train", 1);
    assert_int_equal(ledger_begin(world->ledger, NULL), 0);
    assert_int_equal(ledger_apply(world->ledger, &effect, NULL), 0);
    reopen(world);
    assert_string_equal(restored(world), "");
}

/* In a child: a group, its run and its end per transaction, each told of once it is committed. */
static void write_until_killed(const char *dir, unsigned round, int told_fd)
{
    struct ledger *ledger = NULL;
    char record[20000];
    memset(record, 'r', sizeof(record));
    if (open_dir(&ledger, dir, NULL) != 0)
        _exit(1);
    for (unsigned i = 1;; i++) {
        char id[32], rollout[40], stream[32];
        snprintf(id, sizeof(id), "g%u-%u", round, i);
        snprintf(rollout, sizeof(rollout), "g%u-%u/0", round, i);
        snprintf(stream, sizeof(stream), "s%u", round);
        const struct effect effects[] = {group(id, stream, 1),
                                         run_of(rollout, slice_of(record, sizeof(record))),
                                         end_of(stream, i, id, rollout)};
        if (commit_all(ledger, effects, 3, NULL) != 0 || write(told_fd, &i, sizeof(i)) != sizeof(i))
            _exit(1);
        if (i % 50 == 0 && ledger_has_chores(ledger) && ledger_do_chores(ledger, NULL) != 0)
            _exit(1);
    }
}

static unsigned kill_a_writer(const char *dir, unsigned round)
{
    int told[2];
    assert_int_equal(pipe(told), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        write_until_killed(dir, round, told[1]);
    close(told[1]);
    unsigned last = 0, at;
    while (last < 40 + round * 37 && read(told[0], &at, sizeof(at)) == sizeof(at))
        last = at;
    kill(pid, SIGKILL);
    while (read(told[0], &at, sizeof(at)) == sizeof(at)) /* what it told before it died */
        last = at;
    close(told[0]);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    return last;
}

static void a_writer_killed_at_any_moment_leaves_whole_transactions(void **state)
{
    struct world *world = *state;
    for (unsigned round = 1; round <= 5; round++) {
        ledger_close(&world->ledger);
        unsigned last = kill_a_writer(world->dir, round);
        open_ledger(world);
        assert_null(strstr(restored(world), "open")); /* a group without its end is half a cycle */
        char stream[32];
        snprintf(stream, sizeof(stream), "s%u", round);
        for (unsigned i = 1; i <= last; i++) {
            struct msg_trajectory got;
            assert_int_equal(ledger_load_trajectory(world->ledger, S(stream), i, &got, NULL), 0);
            assert_int_equal(got.record.len, 20000);
        }
    }
}

static void a_second_broker_is_refused_and_told_the_firsts_pid(void **state)
{
    struct world *world = *state;
    struct ledger *second = NULL;
    struct fail fail;
    char pid[32];
    snprintf(pid, sizeof(pid), "(pid %d)", getpid());
    assert_int_equal(open_dir(&second, world->dir, &fail), -EBUSY);
    assert_null(second);
    assert_non_null(strstr(fail.text, pid));
    assert_non_null(strstr(fail.text, world->dir));
}

static void a_second_broker_is_refused_though_the_file_lock_was_removed(void **state)
{
    struct world *world = *state;
    struct ledger *second = NULL;
    struct fail fail = {0};
    char path[96], text[64] = "", pid[32];
    snprintf(path, sizeof(path), "%s/lock", world->dir);
    snprintf(pid, sizeof(pid), "(pid %d)", getpid());
    assert_int_equal(ledger_next_epoch(world->ledger, &(uint64_t){0}, NULL), 0); /* it is in use */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(open_dir(&second, world->dir, &fail), -EBUSY);
    assert_non_null(strstr(fail.text, "(pid unknown)"));
    assert_int_equal(ledger_look(world->ledger, &fail), 0); /* makes the file anew, with what it said */
    assert_int_equal(open_dir(&second, world->dir, &fail), -EBUSY);
    assert_non_null(strstr(fail.text, pid));
    AUTO_FCLOSE FILE *file = fopen(path, "r");
    assert_true(file && fread(text, 1, sizeof(text) - 1, file) > 0);
    assert_non_null(strstr(text, "open full"));
}

static void a_second_broker_is_refused_under_the_directorys_new_name(void **state)
{
    struct world *world = *state;
    struct ledger *second = NULL;
    struct fail fail = {0};
    char moved[80], path[96];
    snprintf(moved, sizeof(moved), "%s-moved", world->dir);
    snprintf(path, sizeof(path), "%s/lock", moved);
    assert_int_equal(rename(world->dir, moved), 0);
    assert_int_equal(unlink(path), 0);
    int code = open_dir(&second, moved, &fail);
    assert_int_equal(rename(moved, world->dir), 0);
    assert_int_equal(code, -EBUSY);
}

/* The permissions of a file of the directory. */
static unsigned mode_of(struct world *world, const char *name)
{
    char path[128];
    struct stat found;
    snprintf(path, sizeof(path), "%s/%s", world->dir, name);
    if (stat(path, &found) != 0)
        fail_msg("%s is not there", path);
    return found.st_mode & 0777;
}

static const char *const files[] = {"ledger.db", "ledger.db-wal", "ledger.db-shm", "lock"};

static void expect_private(struct world *world)
{
    commit_one(world, group("a", "train", 1));
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
        assert_int_equal(mode_of(world, files[i]), 0600);
}

static void what_it_keeps_is_its_users_alone_whatever_the_directory_and_the_umask(void **state)
{
    static const mode_t masks[] = {0, 022, 0777};
    struct world *world = *state;
    for (size_t i = 0; i < sizeof(masks) / sizeof(*masks); i++) {
        ledger_close(&world->ledger);
        char command[256];
        snprintf(command, sizeof(command), "rm -rf %s/* && chmod 755 %s", world->dir, world->dir);
        assert_int_equal(system(command), 0);
        mode_t before = umask(masks[i]);
        open_ledger(world);
        umask(before);
        expect_private(world);
    }
}

static void what_an_earlier_version_left_readable_is_so_no_more(void **state)
{
    struct world *world = *state;
    char path[128];
    expect_private(world);
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        snprintf(path, sizeof(path), "%s/%s", world->dir, files[i]);
        assert_int_equal(chmod(path, 0644), 0);
    }
    reopen(world);
    expect_private(world);
}

static void a_directory_that_cannot_be_made_is_named(void **state)
{
    (void)state;
    struct ledger *ledger = NULL;
    struct fail fail;
    assert_int_equal(open_dir(&ledger, "/dev/null/data", &fail), -ENOTDIR);
    assert_non_null(strstr(fail.text, "/dev/null/data"));
}

/* Writes over `len` bytes of the closed ledger's file. */
static void damage(struct world *world, off_t at, size_t len)
{
    char path[96];
    ledger_close(&world->ledger);
    snprintf(path, sizeof(path), "%s/ledger.db", world->dir);
    AUTO_CLOSE int fd = open(path, O_WRONLY);
    AUTO_FREE char *junk = malloc(len);
    memset(junk, 0x5a, len);
    assert_int_equal(pwrite(fd, junk, len, at), (ssize_t)len);
}

static void a_file_that_is_no_database_is_named(void **state)
{
    struct world *world = *state;
    struct fail fail;
    commit_ended(world, 3);
    damage(world, 0, 100);
    assert_int_equal(open_dir(&world->ledger, world->dir, &fail), -EBADMSG);
    assert_non_null(strstr(fail.text, world->dir));
    assert_non_null(strstr(fail.text, "not a ledger"));
}

static void a_damaged_page_is_a_sentence_that_says_what_to_do(void **state)
{
    struct world *world = *state;
    struct fail fail = {0};
    commit_ended(world, 300);
    damage(world, 8192, 60 * 8192);
    int code = open_dir(&world->ledger, world->dir, &fail);
    struct ledger_reader reader = text_reader(&world->told);
    if (code == 0)
        code = ledger_restore(world->ledger, &reader, &fail);
    assert_int_equal(code, -EBADMSG);
    assert_non_null(strstr(fail.text, world->dir));
    assert_non_null(strstr(fail.text, "backup"));
    struct effect effect = group("late", "train", 1);
    if (world->ledger) /* and it takes nothing any more */
        assert_int_equal(commit_all(world->ledger, &effect, 1, &fail), -EBADMSG);
}

static void a_ledger_of_another_version_is_left_alone(void **state)
{
    struct world *world = *state;
    struct fail fail;
    char path[96];
    ledger_close(&world->ledger);
    snprintf(path, sizeof(path), "%s/ledger.db", world->dir);
    AUTO_CLOSE int fd = open(path, O_WRONLY);
    const uint8_t version_99[] = {0, 0, 0, 99}; /* user_version is the word at 60 */
    assert_int_equal(pwrite(fd, version_99, 4, 60), 4);
    assert_int_equal(open_dir(&world->ledger, world->dir, &fail), -EPROTO);
    assert_non_null(strstr(fail.text, "version 99"));
}

enum { SMALL_DISK_GOOD = 0, SMALL_DISK_BAD = 1, SMALL_DISK_IMPOSSIBLE = 2 };

/* In a child: fills the disk; then all that was acknowledged must still be readable. */
static int fill_small_disk(const char *dir)
{
    struct ledger *ledger = NULL;
    struct fail fail = {0};
    uint64_t kept = 0;
    char record[50000] = "";
    if (!small_disk_enter() || !small_disk_mount(dir, "1m"))
        return SMALL_DISK_IMPOSSIBLE;
    int code = open_dir(&ledger, dir, &fail);
    while (code == 0 && kept < 1000) {
        char id[32], rollout[40];
        snprintf(id, sizeof(id), "g%llu", (unsigned long long)kept);
        snprintf(rollout, sizeof(rollout), "%s/0", id);
        const struct effect effects[] = {group(id, "train", 1),
                                         run_of(rollout, slice_of(record, sizeof(record))),
                                         end_of("train", kept + 1, id, rollout)};
        code = commit_all(ledger, effects, 3, &fail);
        kept += code == 0;
    }
    fprintf(stderr, "after %llu: %s\n", (unsigned long long)kept, fail.text);
    struct effect one = group("more", "train", 1);
    bool good = code == -ENOSPC && kept > 0 && strstr(fail.text, "disk is full") &&
                commit_all(ledger, &one, 1, NULL) == -ENOSPC;
    ledger_close(&ledger);
    code = open_dir(&ledger, dir, &fail);
    struct msg_trajectory got;
    for (uint64_t seq = 1; code == 0 && seq <= kept; seq++)
        code = ledger_load_trajectory(ledger, S("train"), seq, &got, &fail);
    ledger_close(&ledger);
    return good && code == 0 ? SMALL_DISK_GOOD : SMALL_DISK_BAD;
}

static void a_full_disk_ends_the_taking_and_loses_nothing(void **state)
{
    struct world *world = *state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(fill_small_disk(world->dir));
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == SMALL_DISK_IMPOSSIBLE) {
        print_message("no small disk can be mounted here: not tested\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), SMALL_DISK_GOOD);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_was_not_committed_is_not_there),
        TEST(a_writer_killed_at_any_moment_leaves_whole_transactions),
        TEST(a_second_broker_is_refused_and_told_the_firsts_pid),
        TEST(a_second_broker_is_refused_though_the_file_lock_was_removed),
        TEST(a_second_broker_is_refused_under_the_directorys_new_name),
        TEST(what_it_keeps_is_its_users_alone_whatever_the_directory_and_the_umask),
        TEST(what_an_earlier_version_left_readable_is_so_no_more),
        TEST(a_directory_that_cannot_be_made_is_named),
        TEST(a_file_that_is_no_database_is_named),
        TEST(a_damaged_page_is_a_sentence_that_says_what_to_do),
        TEST(a_ledger_of_another_version_is_left_alone),
        TEST(a_full_disk_ends_the_taking_and_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
