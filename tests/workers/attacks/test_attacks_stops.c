/* A process that stops whatever is started beside it, before that has executed its program. */
#include "tests/workers/attacks/attack_world.h"

#include <poll.h>
#include <signal.h>

#include "common/base/clock.h"
#include "workers/sandbox/requests.h"

enum { AT_ONCE = 8, ROUNDS_MAX = 20, LIMIT_MS = 30000, SETTLED_MS = 2000 };

static struct {
    struct sandbox *sandbox;
    size_t answered, begun, late;
} starts;

static void start_one(void *arg)
{
    const char *argv[] = {"/bin/true", NULL};
    struct fail fail = {0};
    pid_t pid;
    (void)arg;
    int code = sandbox_start(starts.sandbox, &(struct sandbox_exec){.argv = argv}, &pid, &fail);
    starts.answered++;
    starts.begun += code == 0;
    if (code == -ENOEXEC && strcmp(fail.text, "the process was stopped before it began, and killed") == 0)
        starts.late++;
    else if (code < 0)
        print_message("start: %d, %s\n", code, fail.text);
}

/* Returns when it is at it. */
static void start_stopper(struct sandbox *sandbox)
{
    char line[32];
    const char *argv[] = {attack_path, "processes", "stops", NULL};
    struct fail fail = {0};
    pid_t pid;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    struct sandbox_exec exec = {.argv = argv, .fds = &ends[1], .targets = (int[]){1}, .fd_count = 1};
    assert_int_equal(sandbox_start(sandbox, &exec, &pid, &fail), 0);
    close(ends[1]);
    assert_int_equal(poll(&(struct pollfd){ends[0], POLLIN, 0}, 1, LIMIT_MS), 1);
    assert_true(read(ends[0], line, sizeof(line)) > 0);
    close(ends[0]);
}

static void await_answers(int64_t limit_ms)
{
    for (int64_t until_ms = clock_ms() + limit_ms; starts.answered < AT_ONCE && clock_ms() < until_ms;)
        await_sleep(10);
}

static void begin_starts(struct sandbox *sandbox)
{
    memset(&starts, 0, sizeof(starts));
    starts.sandbox = sandbox;
    start_stopper(sandbox);
    for (size_t i = 0; i < AT_ONCE; i++)
        assert_non_null(fiber_start(loop, start_one, NULL, NULL));
    await_answers(SETTLED_MS);
}

/* Some of AT_ONCE starts are held up when this returns; the next round if all slipped through. */
static struct sandbox *open_with_starts_held_up(void)
{
    struct sandbox_plan plan = host_plan();
    struct fail fail = {0};
    struct sandbox *sandbox = open_attacked(&plan);
    for (int round = 0; round < ROUNDS_MAX; round++) {
        begin_starts(sandbox);
        if (starts.answered < AT_ONCE)
            return sandbox;
        assert_int_equal(sandbox_kill_all(sandbox, 0, &fail), 0);
    }
    fail_msg("nothing was held up in %d rounds", ROUNDS_MAX);
    return NULL;
}

FIBER_TEST(pid_1_serves_while_what_it_starts_is_stopped)
{
    struct fail fail = {0};
    struct sandbox *neighbour = open_neighbour(), *sandbox = open_with_starts_held_up();
    AUTO_CLOSE int fd = sandbox_open_file(sandbox, "/tmp/served", O_WRONLY | O_CREAT, 0600, &fail);
    assert_true(fd >= 0);
    assert_true(starts.answered < AT_ONCE);
    assert_int_equal(sandbox_kill_all(sandbox, 0, &fail), 0);
    await_answers(LIMIT_MS);
    assert_int_equal(starts.answered, AT_ONCE);
    expect_works(sandbox);
    sandbox_close(&sandbox);
    expect_unharmed(&neighbour);
}

FIBER_TEST(what_was_written_is_packed_while_what_pid_1_starts_is_stopped)
{
    struct fail fail = {0};
    uint64_t bytes = 0;
    char path[128];
    struct sandbox *sandbox = open_with_starts_held_up();
    snprintf(path, sizeof(path), "%s/layer", directory);
    AUTO_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (sandbox_pack(sandbox, fd, &bytes, &fail) < 0)
        fail_msg("%s", fail.text);
    assert_true(bytes > 0);
    await_answers(LIMIT_MS);
    assert_int_equal(starts.answered, AT_ONCE);
    sandbox_close(&sandbox);
}

FIBER_TEST(who_is_stopped_before_it_began_is_killed_in_time_and_told_of)
{
    struct fail fail = {0};
    struct sandbox *sandbox = open_with_starts_held_up();
    await_answers(LIMIT_MS);
    assert_int_equal(starts.answered, AT_ONCE);
    assert_in_range(starts.late, 1, AT_ONCE);
    assert_int_equal(starts.begun + starts.late, AT_ONCE);
    assert_int_equal(sandbox_kill_all(sandbox, 0, &fail), 0);
    expect_works(sandbox);
    sandbox_close(&sandbox);
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(pid_1_serves_while_what_it_starts_is_stopped),
        TEST(what_was_written_is_packed_while_what_pid_1_starts_is_stopped),
        TEST(who_is_stopped_before_it_began_is_killed_in_time_and_told_of),
    };
    return cmocka_run_group_tests_name("attacks on beginnings", tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
