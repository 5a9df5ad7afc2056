/*
 * The ledger's files damaged in every way that is at hand: it opens with all that was committed,
 * or says what is wrong and leaves the files as they are.
 */
#include "tests/broker/ledger/ledger_world.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { WAL_HEADER = 32, WAL_FRAME = 24 + 8192 };

/* ---- files -------------------------------------------------------------------------------- */

static void path_of(const struct world *world, const char *name, char ret[96])
{
    snprintf(ret, 96, "%s/%s", world->dir, name);
}

static off_t length_of(const struct world *world, const char *name)
{
    char path[96];
    struct stat found;
    path_of(world, name, path);
    return stat(path, &found) == 0 ? found.st_size : -1;
}

static void write_at(const struct world *world, const char *name, off_t at, const void *bytes, size_t len)
{
    char path[96];
    path_of(world, name, path);
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(pwrite(fd, bytes, len, at), (ssize_t)len);
}

static void flip_byte(const struct world *world, const char *name, off_t at)
{
    char path[96];
    uint8_t byte;
    path_of(world, name, path);
    AUTO_CLOSE int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 0x5a;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
}

static void cut(const struct world *world, const char *name, off_t len)
{
    char path[96];
    path_of(world, name, path);
    assert_int_equal(truncate(path, len), 0);
}

static void run_in(const struct world *world, const char *commands)
{
    char command[256];
    snprintf(command, sizeof(command), "cd %s && %s", world->dir, commands);
    assert_int_equal(system(command), 0);
}

static uint64_t sum_of(const struct world *world, const char *name)
{
    char path[96], bytes[8192];
    uint64_t sum = 1;
    path_of(world, name, path);
    AUTO_FCLOSE FILE *file = fopen(path, "rbe");
    for (size_t got; file && (got = fread(bytes, 1, sizeof(bytes), file)) > 0;)
        for (size_t i = 0; i < got; i++)
            sum = sum * 31 + (uint8_t)bytes[i];
    return sum;
}

static void expect_damaged(struct world *world, const char *words)
{
    struct fail fail = {0};
    uint64_t before = sum_of(world, "ledger.db"), wal_before = sum_of(world, "ledger.db-wal");
    assert_int_equal(open_dir(&world->ledger, world->dir, &fail), -EBADMSG);
    assert_null(world->ledger);
    if (!strstr(fail.text, words))
        fail_msg("'%s' does not say '%s'", fail.text, words);
    assert_non_null(strstr(fail.text, "backups/"));
    assert_true(sum_of(world, "ledger.db") == before); /* nothing was touched */
    assert_true(sum_of(world, "ledger.db-wal") == wal_before);
}

/* ---- ledger.db ------------------------------------------------------------------------------ */

static void a_ledger_cut_short_is_damaged_at_every_length(void **state)
{
    struct world *world = *state;
    commit_ended(world, 100);
    ledger_close(&world->ledger);
    off_t whole = length_of(world, "ledger.db");
    for (off_t len = whole - 8192; len > 0; len -= whole / 7) {
        cut(world, "ledger.db", len);
        expect_damaged(world, "");
    }
    cut(world, "ledger.db", 100);
    expect_damaged(world, "");
    cut(world, "ledger.db", 0);
    expect_damaged(world, "it is empty");
}

static void text_in_the_ledgers_place_is_no_ledger(void **state)
{
    struct world *world = *state;
    ledger_close(&world->ledger);
    cut(world, "ledger.db", 0);
    write_at(world, "ledger.db", 0, "Dear diary,\n", 12);
    expect_damaged(world, "not a ledger");
}

static void a_flipped_byte_is_harmless_or_said(void **state)
{
    struct world *world = *state;
    unsigned said = 0;
    struct fail fail = {0};
    commit_ended(world, 60);
    ledger_close(&world->ledger);
    run_in(world, "cp ledger.db whole");
    srandom(7);
    off_t whole = length_of(world, "ledger.db");
    for (unsigned i = 0; i < 120; i++) {
        off_t at = i < 40 ? (off_t)i * 2 : random() % whole; /* the header, and all else */
        flip_byte(world, "ledger.db", at);
        int code = open_dir(&world->ledger, world->dir, &fail);
        struct ledger_reader reader = text_reader(&world->told);
        buffer_clear(&world->told);
        if (code == 0)
            code = ledger_restore(world->ledger, &reader, &fail);
        if (code != 0 && code != -EBADMSG && code != -EPROTO)
            fail_msg("byte %lld: %d, %s", (long long)at, code, fail.text);
        if (code)
            assert_non_null(strstr(fail.text, world->dir));
        said += code != 0;
        if (world->ledger && code == 0) { /* what opens can be worked with, or says so */
            struct effect one = group("more", "train", 1);
            code = commit_all(world->ledger, &one, 1, &fail);
            assert_true(code == 0 || code == -EBADMSG);
        }
        ledger_close(&world->ledger);
        run_in(world, "rm -f ledger.db*; cp whole ledger.db");
    }
    print_message("%u of 120 were said\n", said);
    assert_true(said > 15); /* most bytes are inside a record, of which nobody knows better */
}

/* A ledger of more than is checked at the start, damaged in a record in its midst. */
static void damage_in_a_large_ledger_is_found_when_met_or_when_asked_for(void **state)
{
    struct world *world = *state;
    struct fail fail = {0};
    AUTO_FREE char *record = calloc(1, 1 << 20);
    struct ledger_options options = {.dir = world->dir, .durability = LEDGER_PROCESS};
    ledger_close(&world->ledger);
    assert_int_equal(ledger_open(&world->ledger, &options, &fail), 0);
    for (unsigned i = 1; i <= 260; i++) {
        char id[16], rollout[32];
        snprintf(id, sizeof(id), "g%u", i);
        snprintf(rollout, sizeof(rollout), "g%u/0", i);
        const struct effect effects[] = {group(id, "train", 1), run_of(rollout, slice_of(record, 1 << 20)),
                                         end_of("train", i, id, rollout)};
        commit(world, effects, 3);
    }
    ledger_close(&world->ledger);
    off_t middle = length_of(world, "ledger.db") / 2 / 8192 * 8192;
    write_at(world, "ledger.db", middle, "\xff\xff\xff\xff", 4); /* the next page of a chain */
    options.check_all = true;
    assert_int_equal(ledger_open(&world->ledger, &options, &fail), -EBADMSG);
    options.check_all = false;
    assert_int_equal(ledger_open(&world->ledger, &options, &fail), 0);
    int code = 0;
    for (unsigned seq = 1; code == 0 && seq <= 260; seq++) {
        struct msg_trajectory got;
        code = ledger_load_trajectory(world->ledger, S("train"), seq, &got, &fail);
    }
    assert_int_equal(code, -EBADMSG);
    assert_non_null(strstr(fail.text, "it is damaged, and was left as it is"));
    assert_non_null(strstr(fail.text, ".recover"));
}

/* ---- ledger.db-wal: a child commits `count` groups, the first `durable` of them are, and dies without closing ---- */

static void commit_some_durable_and_die(struct world *world, unsigned count, unsigned durable)
{
    uint64_t epoch;
    ledger_close(&world->ledger);
    pid_t pid = fork();
    if (pid == 0) {
        struct ledger *ledger = NULL;
        int code = open_dir(&ledger, world->dir, NULL);
        if (code == 0)
            code = ledger_next_epoch(ledger, &epoch, NULL);
        for (unsigned i = 1; code == 0 && i <= count; i++) {
            char id[16];
            snprintf(id, sizeof(id), "g%u", i);
            struct effect effect = group(id, "train", 1);
            code = (i <= durable ? commit_all : commit_undurable)(ledger, &effect, 1, NULL);
        }
        _exit(code != 0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_true(length_of(world, "ledger.db-wal") > 0);
}

static void commit_and_die(struct world *world, unsigned count) { commit_some_durable_and_die(world, count, count); }

/* How many of the groups g1, g2 ... are told; they must be the first ones. */
static unsigned count_groups(struct world *world, unsigned most)
{
    const char *told = restored(world);
    unsigned found = 0;
    for (unsigned i = 1; i <= most; i++) {
        char line[32];
        snprintf(line, sizeof(line), "group g%u ", i);
        if (strstr(told, line)) {
            assert_int_equal(found, i - 1);
            found = i;
        }
    }
    return found;
}

static void a_log_is_read_back_after_a_kill(void **state)
{
    struct world *world = *state;
    commit_and_die(world, 20);
    open_ledger(world);
    assert_int_equal(count_groups(world, 20), 20);
}

static void a_torn_end_of_the_log_costs_the_last_commit_and_no_more(void **state)
{
    struct world *world = *state;
    for (unsigned cut_bytes = 1; cut_bytes < WAL_FRAME; cut_bytes += 2000) {
        commit_some_durable_and_die(world, 20, 19);
        cut(world, "ledger.db-wal", length_of(world, "ledger.db-wal") - cut_bytes);
        open_ledger(world);
        assert_int_equal(count_groups(world, 20), 19);
        tear_down(state);
        set_up(state);
        world = *state;
    }
    commit_some_durable_and_die(world, 20, 19);
    flip_byte(world, "ledger.db-wal", length_of(world, "ledger.db-wal") - 1000);
    open_ledger(world);
    assert_int_equal(count_groups(world, 20), 19);
}

static void commits_that_were_not_durable_may_be_lost_from_any_of_them_on(void **state)
{
    struct world *world = *state;
    off_t durable_len = 0;
    for (unsigned lost = 0; lost < 12; lost++) {
        commit_some_durable_and_die(world, 8, 8);
        durable_len = length_of(world, "ledger.db-wal");
        tear_down(state);
        set_up(state);
        world = *state;
        commit_some_durable_and_die(world, 20, 8);
        off_t at = durable_len + (length_of(world, "ledger.db-wal") - durable_len) / 12 * lost + 100;
        if (lost % 2)
            cut(world, "ledger.db-wal", at);
        else
            flip_byte(world, "ledger.db-wal", at); /* what follows it was written, as a disk may do */
        open_ledger(world);
        assert_in_range(count_groups(world, 20), 8, 19);
        tear_down(state);
        set_up(state);
        world = *state;
    }
}

static void a_log_damaged_where_it_was_durable_is_said(void **state)
{
    struct world *world = *state;
    commit_and_die(world, 20);
    off_t whole = length_of(world, "ledger.db-wal");
    for (off_t at = WAL_HEADER + 8; at < whole; at += whole / 9) {
        flip_byte(world, "ledger.db-wal", at);
        expect_damaged(world, "of its -wal cannot be read, and commits follow it");
        flip_byte(world, "ledger.db-wal", at);
    }
    flip_byte(world, "ledger.db-wal", 17); /* its header's salt */
    expect_damaged(world, "the header of its -wal cannot be read");
    flip_byte(world, "ledger.db-wal", 17);
    flip_byte(world, "ledger.db-wal", whole - 1);
    expect_damaged(world, "of its -wal cannot be read, and commits follow it");
    flip_byte(world, "ledger.db-wal", whole - 1);
    open_ledger(world); /* and as it was, it is whole */
    assert_int_equal(count_groups(world, 20), 20);
}

static void frames_of_an_earlier_log_are_no_damage(void **state)
{
    struct world *world = *state;
    uint64_t epoch;
    commit_and_die(world, 40);
    pid_t pid = fork(); /* the log begins anew over the old one, and is shorter */
    if (pid == 0) {
        struct ledger *ledger = NULL;
        struct effect effect = group("g41", "train", 1);
        int code = open_dir(&ledger, world->dir, NULL);
        while (code == 0 && ledger_has_chores(ledger))
            code = ledger_do_chores(ledger, NULL);
        for (int i = 0; code == 0 && i < 3; i++)
            code = ledger_next_epoch(ledger, &epoch, NULL);
        if (code == 0)
            code = commit_all(ledger, &effect, 1, NULL);
        _exit(code != 0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    open_ledger(world);
    assert_int_equal(count_groups(world, 41), 41);
}

static void a_log_without_its_ledger_is_said(void **state)
{
    struct world *world = *state;
    char path[96];
    commit_and_die(world, 3);
    path_of(world, "ledger.db", path);
    assert_int_equal(unlink(path), 0);
    expect_damaged(world, "it is gone, and its -wal is there");
}

static void a_log_that_went_away_after_a_kill_is_missed_and_after_a_close_is_not(void **state)
{
    struct world *world = *state;
    uint64_t epoch;
    char path[96];
    commit_and_die(world, 3);
    path_of(world, "ledger.db-wal", path);
    assert_int_equal(unlink(path), 0);
    expect_damaged(world, "its -wal is gone");
    path_of(world, "lock", path); /* as the sentence says */
    assert_int_equal(unlink(path), 0);
    open_ledger(world);
    assert_int_equal(ledger_next_epoch(world->ledger, &epoch, NULL), 0);
    reopen(world); /* closed tidily: there is no -wal, and nobody misses it */
    assert_int_equal(count_groups(world, 3), 0);
}

/* ---- rights: in a child that is nobody, as root may write anything --------------------------------- */

/* What opening says to a user without rights here; its code. */
static int open_as_nobody(struct world *world, const char *words)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct fail fail = {0};
        struct ledger *ledger = NULL;
        if (getuid() == 0 && (setgroups(0, NULL) < 0 || setgid(65534) < 0 || setuid(65534) < 0))
            _exit(1);
        int code = open_dir(&ledger, world->dir, &fail);
        if (!strstr(fail.text, words) || !strstr(fail.text, world->dir))
            fprintf(stderr, "%d: %s\n", code, fail.text);
        _exit(code == -EACCES && strstr(fail.text, words) && strstr(fail.text, world->dir) ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void set_modes(struct world *world, mode_t dir, mode_t file)
{
    char path[96];
    static const char *const names[] = {"ledger.db", "lock"};
    for (int i = 0; i < 2; i++) {
        path_of(world, names[i], path);
        assert_int_equal(chmod(path, i == 0 ? file : 0666), 0);
    }
    assert_int_equal(chmod(world->dir, dir), 0);
}

static void a_ledger_that_may_not_be_written_is_said(void **state)
{
    struct world *world = *state;
    commit_ended(world, 3);
    ledger_close(&world->ledger);
    set_modes(world, 0777, 0444);
    assert_int_equal(open_as_nobody(world, "it may not be written: check its owner and mode"), 0);
    set_modes(world, 0777, 0);
    assert_int_equal(open_as_nobody(world, "it cannot be opened"), 0);
    set_modes(world, 0700, 0644);
    open_ledger(world); /* and nothing was lost by it */
    assert_non_null(strstr(restored(world), " g3/0 ended train 3\n"));
}

static void a_directory_that_may_not_be_written_is_said(void **state)
{
    struct world *world = *state;
    char path[96];
    ledger_close(&world->ledger);
    path_of(world, "lock", path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(chmod(world->dir, 0555), 0);
    assert_int_equal(open_as_nobody(world, "cannot write in the directory"), 0);
    assert_int_equal(chmod(world->dir, 0700), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_ledger_cut_short_is_damaged_at_every_length),
        TEST(text_in_the_ledgers_place_is_no_ledger),
        TEST(a_flipped_byte_is_harmless_or_said),
        TEST(damage_in_a_large_ledger_is_found_when_met_or_when_asked_for),
        TEST(a_log_is_read_back_after_a_kill),
        TEST(a_torn_end_of_the_log_costs_the_last_commit_and_no_more),
        TEST(a_log_damaged_where_it_was_durable_is_said),
        TEST(commits_that_were_not_durable_may_be_lost_from_any_of_them_on),
        TEST(frames_of_an_earlier_log_are_no_damage),
        TEST(a_log_without_its_ledger_is_said),
        TEST(a_log_that_went_away_after_a_kill_is_missed_and_after_a_close_is_not),
        TEST(a_ledger_that_may_not_be_written_is_said),
        TEST(a_directory_that_may_not_be_written_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
