/* What may happen to the ledger's process, directory and disk. */
#include "tests/broker/ledger/ledger_world.h"
#include "tests/broker/ledger/small_disk.h"

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
        const struct effect effects[] = {group(id, stream, 1), run_of(rollout, slice_of(record, sizeof(record))),
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

/* A directory that is removed at the end, beside the world's own. */
static void make_second(const struct world *world, char ret[80])
{
    snprintf(ret, 80, "%s-2", world->dir);
    assert_int_equal(mkdir(ret, 0700), 0);
}

static void remove_second(const char *dir)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
}

static const char *const ledger_files[] = {"ledger.db", "ledger.db-wal", "ledger.db-shm"};
enum { LEDGER_FILES = sizeof(ledger_files) / sizeof(*ledger_files) };

static void expect_refused_under(struct world *world, int (*give_name)(const char *, const char *), int code,
                                 const char *words)
{
    char second[80], from[96], to[96];
    for (size_t i = 0; i < LEDGER_FILES; i++) {
        struct ledger *ledger = NULL;
        struct fail fail = {0};
        make_second(world, second);
        snprintf(from, sizeof(from), "%s/%s", world->dir, ledger_files[i]);
        snprintf(to, sizeof(to), "%s/%s", second, ledger_files[i]);
        assert_int_equal(give_name(from, to), 0);
        int got = open_dir(&ledger, second, &fail);
        remove_second(second);
        assert_int_equal(got, code);
        if (!strstr(fail.text, to) || !strstr(fail.text, words))
            fail_msg("'%s' does not say '%s %s'", fail.text, to, words);
    }
}

static void a_ledger_whose_files_are_links_is_refused_by_name_and_the_first_goes_on(void **state)
{
    struct world *world = *state;
    commit_one(world, group("a", "train", 1));
    expect_refused_under(world, link, -EMLINK, "has 2 names (hard links)");
    expect_refused_under(world, symlink, -ELOOP, "is a symbolic link");
    commit_one(world, group("b", "train", 1));
    reopen(world); /* once the links are gone */
    assert_non_null(strstr(restored(world), "group a"));
    assert_non_null(strstr(restored(world), "group b"));
}

static void a_link_to_nothing_is_refused_and_nothing_is_made_behind_it(void **state)
{
    struct world *world = *state;
    struct ledger *ledger = NULL;
    struct fail fail = {0};
    char second[80], path[96], behind[96];
    make_second(world, second);
    snprintf(path, sizeof(path), "%s/ledger.db", second);
    snprintf(behind, sizeof(behind), "%s/elsewhere.db", second);
    assert_int_equal(symlink(behind, path), 0);
    int code = open_dir(&ledger, second, &fail);
    bool is_made = access(behind, F_OK) == 0;
    remove_second(second);
    assert_int_equal(code, -ELOOP);
    assert_false(is_made);
}

static void move_files(const char *from_dir, const char *to_dir)
{
    char from[96], to[96];
    for (size_t i = 0; i < LEDGER_FILES; i++) {
        snprintf(from, sizeof(from), "%s/%s", from_dir, ledger_files[i]);
        snprintf(to, sizeof(to), "%s/%s", to_dir, ledger_files[i]);
        assert_int_equal(rename(from, to), 0);
    }
}

/* In a child, as a second descriptor closed here would end the locks of SQLite's that are tested. */
static int in_child(int (*look)(const char *), const char *path)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(look(path));
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int open_is_refused(const char *dir)
{
    struct ledger *ledger = NULL;
    struct fail fail = {0};
    int code = open_dir(&ledger, dir, &fail);
    fprintf(stderr, "%s\n", fail.text);
    return code == -EBUSY && strstr(fail.text, dir) && strstr(fail.text, "another broker uses the file") ? 0 : 1;
}

static void a_ledger_moved_elsewhere_is_refused_to_a_second_broker_while_the_first_has_it(void **state)
{
    struct world *world = *state;
    char second[80];
    struct fail fail = {0};
    commit_one(world, group("a", "train", 1));
    make_second(world, second);
    move_files(world->dir, second);
    int while_open = in_child(open_is_refused, second);
    move_files(second, world->dir);
    assert_int_equal(while_open, 0);
    assert_int_equal(ledger_look(world->ledger, &fail), 0);
    commit_one(world, group("b", "train", 1));
    ledger_close(&world->ledger);
    remove_second(second);
    assert_int_equal(rename(world->dir, second), 0); /* and once it has ended, it is anybody's */
    int code = open_dir(&world->ledger, second, &fail);
    assert_int_equal(rename(second, world->dir), 0);
    assert_int_equal(code, 0);
    assert_non_null(strstr(restored(world), "group b"));
}

enum { SQLITE_SHARED_FIRST = 0x40000002, SQLITE_SHARED_BYTES = 510 };

/* Does the parent hold the lock that every open SQLite database in WAL mode holds? */
static int has_sqlites_lock(const char *path)
{
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = SQLITE_SHARED_FIRST, .l_len = SQLITE_SHARED_BYTES};
    int fd = open(path, O_RDWR | O_CLOEXEC);
    return fd >= 0 && fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type == F_RDLCK && lock.l_pid == getppid() ? 0 : 1;
}

static void locking_the_file_leaves_sqlites_own_locks_on_it(void **state)
{
    struct world *world = *state;
    char path[96];
    snprintf(path, sizeof(path), "%s/ledger.db", world->dir);
    for (int i = 0; i < 2; i++) { /* of a new file, and of one that is there */
        commit_one(world, group(i ? "b" : "a", "train", 1));
        assert_int_equal(ledger_look(world->ledger, NULL), 0);
        assert_int_equal(in_child(has_sqlites_lock, path), 0);
        reopen(world);
    }
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
        const struct effect effects[] = {group(id, "train", 1), run_of(rollout, slice_of(record, sizeof(record))),
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
        TEST(a_ledger_whose_files_are_links_is_refused_by_name_and_the_first_goes_on),
        TEST(a_link_to_nothing_is_refused_and_nothing_is_made_behind_it),
        TEST(a_ledger_moved_elsewhere_is_refused_to_a_second_broker_while_the_first_has_it),
        TEST(locking_the_file_leaves_sqlites_own_locks_on_it),
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
