/* What the kernel counts for the whole machine: a sandbox has its part, and others go on. */
#include "tests/workers/attacks/attack_world.h"
#include "workers/sandbox/requests.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>

enum { LIMIT_MS = 30000 };

/* "ptys 64 ENOSPC": what it got before it was refused. It holds that until it is killed. */
static long hold(struct sandbox *sandbox, const char *kind, const char *refusal)
{
    char line[128] = "", name[32], error[32];
    const char *argv[] = {attack_path, "kernel", kind, NULL};
    struct fail fail = {0};
    long count = 0;
    pid_t pid;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    struct sandbox_exec exec = {.argv = argv, .fds = &ends[1], .targets = (int[]){1}, .fd_count = 1};
    assert_int_equal(sandbox_start(sandbox, &exec, &pid, &fail), 0);
    close(ends[1]);
    assert_int_equal(poll(&(struct pollfd){ends[0], POLLIN, 0}, 1, LIMIT_MS), 1);
    assert_true(read(ends[0], line, sizeof(line) - 1) > 0);
    close(ends[0]);
    assert_int_equal(sscanf(line, "%31s %ld %31s", name, &count, error), 3);
    assert_string_equal(error, refusal);
    return count;
}

FIBER_TEST(who_opens_ptys_without_end_gets_64_and_leaves_the_others_theirs)
{
    struct sandbox_plan plan = host_plan();
    struct fail fail = {0};
    int number;
    struct sandbox *neighbour = open_neighbour(), *sandbox = open_attacked(&plan);
    assert_int_equal(hold(sandbox, "ptys", "ENOSPC"), 64);
    AUTO_CLOSE int other = sandbox_open_terminal(neighbour, &number, &fail);
    if (other < 0)
        fail_msg("%s", fail.text);
    assert_int_equal(sandbox_open_terminal(sandbox, &number, &fail), -ENOSPC);
    assert_int_equal(sandbox_kill_all(sandbox, 0, &fail), 0);
    AUTO_CLOSE int own = sandbox_open_terminal(sandbox, &number, &fail);
    assert_true(own >= 0);
    expect_works(sandbox);
    sandbox_close(&sandbox);
    expect_unharmed(&neighbour);
}

/* Fewer where the machine's own setting says so. */
FIBER_TEST(who_watches_files_without_end_is_refused_at_65536)
{
    struct sandbox_plan plan = host_plan();
    struct sandbox *neighbour = open_neighbour(), *sandbox = open_attacked(&plan);
    assert_in_range(hold(sandbox, "watches", "ENOSPC"), 1, 65536);
    expect_works(sandbox);
    sandbox_close(&sandbox);
    expect_unharmed(&neighbour);
}

/* The user's tens of thousands are for all sandboxes. */
FIBER_TEST(timers_and_signals_end_at_the_sandboxs_own_1024)
{
    struct sandbox_plan plan = host_plan();
    struct sandbox *neighbour = open_neighbour(), *sandbox = open_attacked(&plan);
    assert_in_range(hold(sandbox, "timers", "EAGAIN"), 1, 1024);
    assert_in_range(hold(sandbox, "signals", "EAGAIN"), 0, 1024);
    expect_works(sandbox);
    sandbox_close(&sandbox);
    sandbox = open_attacked(&plan); /* another one has as many, whatever the first had */
    assert_in_range(hold(sandbox, "timers", "EAGAIN"), 1000, 1024);
    sandbox_close(&sandbox);
    expect_unharmed(&neighbour);
}

FIBER_TEST(what_is_counted_for_the_whole_machine_or_user_is_refused)
{
    static const char *const refused[][2] = {
        {"events", "ENOSYS"}, {"pipe", "EPERM"}, {"lease", "EPERM"}, {"favour", "EROFS"}};
    struct sandbox_plan plan = host_plan();
    struct sandbox *sandbox = open_attacked(&plan);
    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
        assert_int_equal(hold(sandbox, refused[i][0], refused[i][1]), 0);
    expect_works(sandbox);
    sandbox_close(&sandbox);
}

/* The user's number: it cannot be told apart by sandboxes, but neither the worker nor first processes meet it. */
FIBER_TEST(descriptors_on_their_way_end_and_others_go_on)
{
    struct sandbox_plan plan = host_plan();
    struct sandbox *neighbour = open_neighbour(), *sandbox = open_attacked(&plan);
    assert_in_range(hold(sandbox, "flights", "ETOOMANYREFS"), 1, 4400);
    expect_works(sandbox);
    sandbox_close(&sandbox);
    expect_unharmed(&neighbour);
}

FIBER_TEST(the_hosts_own_files_are_neither_locked_nor_listened_to)
{
    struct sandbox_plan plan = host_plan();
    struct sandbox *sandbox = open_attacked(&plan);
    char *heard = NULL;
    assert_int_equal(hold(sandbox, "lock", "0"), 1);
    assert_int_equal(hold(sandbox, "news", "0"), 1);
    AUTO_CLOSE int hosts = open("/usr/bin/factor", O_RDONLY | O_CLOEXEC);
    assert_int_equal(flock(hosts, LOCK_EX | LOCK_NB), 0);
    run_text(sandbox, "touch /tmp/go; until test -e /tmp/heard; do sleep 0.01; done; cat /tmp/heard", &heard);
    assert_string_equal(heard, "0\n");
    free(heard);
    sandbox_close(&sandbox);
}

static int group(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_opens_ptys_without_end_gets_64_and_leaves_the_others_theirs, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(timers_and_signals_end_at_the_sandboxs_own_1024, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_counted_for_the_whole_machine_or_user_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(descriptors_on_their_way_end_and_others_go_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_hosts_own_files_are_neither_locked_nor_listened_to, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_watches_files_without_end_is_refused_at_65536, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("attacks on the kernel's counts", tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
