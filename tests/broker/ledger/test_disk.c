/* The broker on a disk of a few MiB: low, full, and its files taken away. */
#include "tests/broker/io/io_world.h"
#include "tests/broker/ledger/small_disk.h"

#include <sys/stat.h>

static bool has_disks; /* this process may mount one */

static int set_up_on(void **state, const char *size, const char *reserve)
{
    struct world *world = world_create();
    *state = world;
    world->options[0] = "--disk-reserve";
    world->options[1] = reserve;
    world->options[2] = "--log";
    world->options[3] = "info";
    world->keeps_words = true;
    assert_int_equal(mkdir(world->data, 0750), 0);
    if (has_disks && !small_disk_mount(world->data, size))
        has_disks = false;
    world_start(world);
    world_connect(world);
    return 0;
}

static int set_up_full(void **state) { return set_up_on(state, "4m", "0"); }
static int set_up_low(void **state) { return set_up_on(state, "16m", "6MiB"); }
static int set_up_large(void **state) { return set_up_on(state, "96m", "24MiB"); }
static int set_up_plain(void **state) { return set_up_on(state, "64m", "0"); }

static int tear_down(void **state)
{
    struct world *world = *state;
    if (world->broker)
        world_stop(world, SIGKILL);
    umount2(world->data, MNT_DETACH);
    return world_tear_down(state);
}

static void need_a_disk(void)
{
    if (has_disks)
        return;
    print_message("no small disk can be mounted here: not tested\n");
    skip();
}

/* What the broker said when it ended, and its status. */
static int await_end(struct world *world, char *text, size_t size)
{
    int status;
    world_read_until(world->words, NULL, text, size);
    assert_int_equal(waitpid(world->broker, &status, 0), world->broker);
    world->broker = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool has_ended(struct world *world)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)world->broker, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid;
}

/* Submits groups of a task of `bytes` until one is not accepted; how many were. */
static unsigned submit_until_refused(struct world *world, size_t bytes, unsigned first)
{
    AUTO_FREE char *task = malloc(bytes);
    int len = snprintf(task, bytes, "{\"task\":\"add\",\"kind\":\"noop\",\"prompt\":\"");
    memset(task + len, 'x', bytes - 3 - (size_t)len);
    strcpy(task + bytes - 3, "\"}");
    for (unsigned i = first;; i++) {
        char group[32];
        snprintf(group, sizeof(group), "g%u", i);
        struct msg_group_submit message = submit_of(world, group, 1);
        struct msg_group_accepted accepted;
        message.task = S(task);
        world_send(world, world->client, MSG_group_submit, &message);
        bool answered = false;
        world_until(world, (answered = world_take_answer(world)) || has_ended(world));
        if (!answered || !world_decode(&world->answer, MSG_group_accepted, &accepted))
            return i;
    }
}

static void expect_known(struct world *world, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        char rollout[32];
        snprintf(rollout, sizeof(rollout), "g%u/0", i);
        struct msg_rollout_get request = {.tag = ++world->tag, .rollout = S(rollout)};
        struct msg_rollout_state got;
        world_ask(world, MSG_rollout_get, &request, MSG_rollout_state, &got);
    }
}

static void a_full_disk_ends_the_broker_with_75_and_loses_nothing(void **state)
{
    struct world *world = *state;
    char text[8192];
    need_a_disk();
    unsigned accepted = submit_until_refused(world, 100000, 0);
    assert_true(accepted > 3);
    assert_int_equal(await_end(world, text, sizeof(text)), 75);
    assert_non_null(strstr(text, "the disk is full: free some space, then start the broker again"));
    assert_true(small_disk_resize(world->data, "64m"));
    world_start(world);
    expect_known(world, accepted);
    submit(world, "after", 1, false);
}

static void a_disk_that_is_full_at_the_start_is_said_with_75(void **state)
{
    struct world *world = *state;
    char text[8192], path[128];
    need_a_disk();
    world_stop(world, SIGKILL);
    snprintf(path, sizeof(path), "%s/other", world->data);
    AUTO_FCLOSE FILE *file = fopen(path, "w");
    while (file && fwrite(text, 1, sizeof(text), file) == sizeof(text) && fflush(file) == 0)
        ;
    snprintf(path, sizeof(path), "%s/new", world->data);
    const char *arguments[] = {"--data", path, "--ipc", world->dir, NULL};
    assert_int_equal(world_run(arguments, text, sizeof(text)), 75);
    assert_non_null(strstr(text, "the disk is full"));
}

static void expect_disk_low(struct world *world)
{
    struct msg_refused refused;
    assert_true(world_decode(&world->answer, MSG_refused, &refused));
    assert_true(slice_is(refused.reason, "disk-low") && refused.has_retry_after_ms);
}

static void a_nearly_full_disk_refuses_submits_until_there_is_space(void **state)
{
    struct world *world = *state;
    char text[8192], path[128];
    need_a_disk();
    submit(world, "first", 1, false);
    snprintf(path, sizeof(path), "%s/other", world->data);
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(posix_fallocate(fd, 0, 12 << 20), 0);
    assert_true(world_read_until(world->words, "broker.disk-low", text, sizeof(text)));
    assert_int_equal(submit_until_refused(world, 100, 0), 0);
    expect_disk_low(world);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_true(world_read_until(world->words, "broker.disk-enough", text, sizeof(text)));
    assert_null(strstr(text, "broker.disk-low")); /* said once each way */
    submit(world, "first", 1, true);
    submit(world, "after", 1, false);
}

/* ---- what acknowledging frees ------------------------------------------------------------------ */

/* The free pages that the ledger keeps for what comes next (chores.c), and 1 MiB of what is still needed. */
enum { LEFT_BYTES = (8 + 1) << 20, LEFT_MS = 30000 };

static int64_t bytes_of(struct world *world, const char *name)
{
    char path[160];
    struct stat found;
    snprintf(path, sizeof(path), "%s/%s", world->data, name);
    return stat(path, &found) == 0 ? (int64_t)found.st_blocks * 512 : 0;
}

/* Groups until the disk is low; then all of them end, and are acknowledged. */
static void fill_and_acknowledge(struct world *world)
{
    struct msg_rollout_cancel cancel = {.stream = S("train"), .has_stream = true};
    struct msg_stream_ack ack = {.stream = S("train")};
    struct msg_done done;
    ack.seq = submit_until_refused(world, 20000, 0);
    expect_disk_low(world);
    cancel.tag = ++world->tag;
    world_ask(world, MSG_rollout_cancel, &cancel, MSG_done, &done);
    assert_int_equal(done.count, ack.seq);
    struct msg_stream_head head = {0};
    while (head.head < ack.seq) {
        struct msg_stream_fetch fetch = {.tag = ++world->tag, .stream = S("train"), .from = ack.seq + 1};
        world_ask(world, MSG_stream_fetch, &fetch, MSG_stream_head, &head);
    }
    ack.tag = ++world->tag;
    world_ask(world, MSG_stream_ack, &ack, MSG_done, &done);
}

/* The broker takes submits again before it has given back all that it can. */
static void expect_little_is_left(struct world *world)
{
    const int64_t end_ms = clock_ms() + LEFT_MS;
    while (bytes_of(world, "ledger.db") + bytes_of(world, "ledger.db-wal") > LEFT_BYTES && clock_ms() < end_ms)
        poll(NULL, 0, 20);
    if (bytes_of(world, "ledger.db") + bytes_of(world, "ledger.db-wal") > LEFT_BYTES)
        fail_msg("ledger.db has %lld bytes, its log %lld", (long long)bytes_of(world, "ledger.db"),
                 (long long)bytes_of(world, "ledger.db-wal"));
}

static void what_acknowledging_frees_ends_a_low_disk(void **state)
{
    struct world *world = *state;
    char text[8192];
    need_a_disk();
    fill_and_acknowledge(world);
    assert_true(world_read_until(world->words, "broker.disk-enough", text, sizeof(text)));
    submit(world, "after", 1, false);
    expect_little_is_left(world);
}

/* Is there something to read of what the broker says? */
static bool has_words(struct world *world)
{
    struct pollfd item = {world->words, POLLIN, 0};
    return poll(&item, 1, 0) > 0;
}

static void what_acknowledging_frees_ends_a_low_disk_though_submits_never_pause(void **state)
{
    struct world *world = *state;
    char text[8192];
    need_a_disk();
    fill_and_acknowledge(world);
    assert_true(world_read_until(world->words, "broker.disk-low", text, sizeof(text)));
    for (int i = 0; i < 64; i++) { /* so many are always on their way */
        struct msg_group_submit message = submit_of(world, "late", 1);
        world_send(world, world->client, MSG_group_submit, &message);
    }
    int64_t until_ms = clock_ms() + WAIT_MS;
    while (!has_words(world) && clock_ms() < until_ms) {
        struct msg_group_submit message = submit_of(world, "late", 1);
        world_until(world, world_take_answer(world));
        world_send(world, world->client, MSG_group_submit, &message);
    }
    assert_true(world_read_until(world->words, "broker.disk-enough", text, sizeof(text)));
}

/* ---- files that are taken away ------------------------------------------------------------------ */

static void remove_file(struct world *world, const char *name)
{
    char path[160];
    snprintf(path, sizeof(path), "%s/%s", world->data, name);
    assert_int_equal(unlink(path), 0);
}

static void a_log_that_is_removed_under_the_broker_is_brought_home(void **state)
{
    struct world *world = *state;
    char text[8192];
    submit(world, "a", 2, false);
    remove_file(world, "ledger.db-wal");
    assert_int_equal(await_end(world, text, sizeof(text)), 1);
    assert_non_null(strstr(text, "ledger.db-wal was removed while the broker ran"));
    world_start(world);
    submit(world, "a", 2, true);
}

static void a_ledger_that_is_removed_under_the_broker_is_saved_aside(void **state)
{
    struct world *world = *state;
    char text[8192], from[128], to[128];
    submit(world, "a", 2, false);
    remove_file(world, "ledger.db");
    assert_int_equal(await_end(world, text, sizeof(text)), 1);
    assert_non_null(strstr(text, "was removed, or another was put in its place"));
    snprintf(from, sizeof(from), "%s/ledger.db.saved", world->data);
    snprintf(to, sizeof(to), "%s/ledger.db", world->data);
    remove_file(world, "ledger.db-wal");
    remove_file(world, "lock");
    assert_int_equal(rename(from, to), 0);
    world_start(world);
    submit(world, "a", 2, true);
}

static void a_log_that_is_removed_from_a_killed_broker_is_missed(void **state)
{
    struct world *world = *state;
    char text[8192];
    submit(world, "a", 2, false);
    world_stop(world, SIGKILL);
    remove_file(world, "ledger.db-wal");
    const char *arguments[] = {"--data", world->data, "--ipc", world->dir, NULL};
    assert_int_equal(world_run(arguments, text, sizeof(text)), 76);
    assert_non_null(strstr(text, "its -wal is gone"));
    remove_file(world, "lock"); /* to go on with what ledger.db holds */
    world_start(world);
}

int main(int argc, char **argv)
{
    if (world_is_broker(argc, argv))
        return world_be_broker(argc, argv);
    has_disks = small_disk_enter();
    const struct CMUnitTest tests[] = {
#define TEST(name, set_up) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(a_full_disk_ends_the_broker_with_75_and_loses_nothing, set_up_full),
        TEST(a_disk_that_is_full_at_the_start_is_said_with_75, set_up_plain),
        TEST(a_nearly_full_disk_refuses_submits_until_there_is_space, set_up_low),
        TEST(what_acknowledging_frees_ends_a_low_disk, set_up_large),
        TEST(what_acknowledging_frees_ends_a_low_disk_though_submits_never_pause, set_up_large),
        TEST(a_log_that_is_removed_under_the_broker_is_brought_home, set_up_plain),
        TEST(a_ledger_that_is_removed_under_the_broker_is_saved_aside, set_up_plain),
        TEST(a_log_that_is_removed_from_a_killed_broker_is_missed, set_up_plain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
