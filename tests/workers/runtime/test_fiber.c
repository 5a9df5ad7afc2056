#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/workers/runtime/fiber_world.h"
#include "workers/runtime/switch.h"

#ifdef __SANITIZE_THREAD__
enum { IS_COSTLY = 1 }; /* ThreadSanitizer keeps megabytes a fiber */
#else
enum { IS_COSTLY = 0 };
#endif

/* ---- running ---------------------------------------------------------------------------- */

static void set_flag(void *arg)
{
    assert_non_null(fiber_current());
    assert_ptr_equal(fiber_loop(), loop);
    *(bool *)arg = true;
}

static void a_fiber_starts_at_the_loops_next_turn_and_ends_on_the_loops_stack(void **state)
{
    (void)state;
    bool ran = false;
    start(set_flag, &ran);
    assert_false(ran);
    run_all();
    assert_true(ran);
}

static char trail[64];

static void leave_trail(void *arg)
{
    for (int i = 0; i < 3; i++) {
        strcat(trail, arg);
        assert_int_equal(await_sleep(0), 0);
    }
}

static void fibers_take_turns_where_they_await(void **state)
{
    (void)state;
    trail[0] = '\0';
    static char a[] = "a", b[] = "b";
    start(leave_trail, a);
    start(leave_trail, b);
    run_all();
    assert_string_equal(trail, "ababab");
}

static void use_the_stack(void *arg)
{
    char deep[200 * 1024];
    memset(deep, 'x', sizeof(deep));
    assert_int_equal(await_sleep(1), 0);
    for (size_t i = 0; i < sizeof(deep); i++)
        assert_true(deep[i] == 'x');
    ++*(int *)arg;
}

static void thousands_of_fibers_each_keep_their_own_stack(void **state)
{
    (void)state;
    enum { COUNT = IS_COSTLY ? 1000 : 10000 };
    int done = 0;
    static char silent[] = "";
    for (int i = 0; i < COUNT; i++)
        start(i < 100 ? use_the_stack : leave_trail, i < 100 ? (void *)&done : silent);
    run_all();
    assert_int_equal(done, 100);
}

/* ---- stacks of those that wait --------------------------------------------------------- */

static uintptr_t deep_page;
static struct fiber *deep_fiber;

static __attribute__((noinline)) void go_deep(void)
{
    char deep[128 * 1024];
    memset(deep, 'x', sizeof(deep));
    deep_page = ((uintptr_t)deep + 8192) & ~(uintptr_t)4095;
    __asm__ volatile("" : : "r"(deep) : "memory");
}

static bool is_resident(uintptr_t page)
{
    unsigned char there = 0;
    assert_int_equal(mincore((void *)page, 4096, &there), 0);
    return there & 1;
}

static void go_deep_and_wait(void *arg)
{
    int kept[256];
    for (int i = 0; i < 256; i++)
        kept[i] = i * i;
    go_deep();
    assert_int_equal(await_wake(10000), 0);
    for (int i = 0; i < 256; i++)
        assert_int_equal(kept[i], i * i);
    go_deep();
    assert_true(is_resident(deep_page));
    ++*(int *)arg;
}

static void trim_twice(void *arg)
{
    (void)arg;
    assert_true(is_resident(deep_page));
    fibers_trim();
    assert_true(is_resident(deep_page)); /* it may have begun to wait just now */
    fibers_trim();
#ifndef SWITCH_BY_UCONTEXT
    assert_false(is_resident(deep_page));
#endif
    fibers_trim();
    fiber_wake(deep_fiber);
}

static void who_waits_long_keeps_no_more_of_its_stack_than_it_uses(void **state)
{
    (void)state;
    int done = 0;
    deep_fiber = start(go_deep_and_wait, &done);
    loop_after(loop, 5, trim_twice, NULL);
    run_all();
    assert_int_equal(done, 1);
    fibers_trim(); /* of those that have ended nothing is left in its list */
}

static volatile int sink;

static void overflow(int depth)
{
    volatile char frame[4096];
    frame[0] = (char)depth;
    if (depth < 1000)
        overflow(depth + 1);
    sink += frame[0];
}

static void overflow_run(void *arg)
{
    (void)arg;
    overflow(0);
}

static void a_stack_overflow_hits_the_guard_and_no_other_stack(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr))
            _exit(2);
        for (int i = SIGHUP; i < SIGSYS; i++)
            signal(i, SIG_DFL);
        fiber_start(loop, overflow_run, NULL, NULL);
        loop_after(loop, 100, (void (*)(void *))loop_stop, loop);
        loop_run(loop);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

/* ---- descriptors ------------------------------------------------------------------------ */

struct link {
    int from, to, result;
    long moved;
};

enum { RELAYED = 2000 };

static void relay(void *arg)
{
    struct link *link = arg;
    for (link->moved = 0; link->moved < RELAYED; link->moved++) {
        char byte;
        link->result = await_fd(link->from, EPOLLIN, -1);
        assert_true(link->result > 0 && (link->result & EPOLLIN));
        assert_int_equal(read(link->from, &byte, 1), 1);
        assert_int_equal(write(link->to, &byte, 1), 1);
    }
}

static void one_descriptor_may_be_awaited_again_and_again(void **state)
{
    (void)state;
    int there[2], back[2];
    assert_int_equal(pipe(there) | pipe(back), 0);
    struct link a = {.from = there[0], .to = back[1]}, b = {.from = back[0], .to = there[1]};
    assert_int_equal(write(there[1], "x", 1), 1);
    start(relay, &a);
    start(relay, &b);
    run_all();
    assert_int_equal(a.moved + b.moved, 2 * RELAYED);
    for (int i = 0; i < 2; i++) {
        close(there[i]);
        close(back[i]);
    }
}

static void await_input(void *arg)
{
    struct link *link = arg;
    link->result = await_fd(link->from, EPOLLIN, link->moved);
}

static void many_fibers_wait_on_descriptors_of_their_own(void **state)
{
    (void)state;
    enum { COUNT = 200 };
    static struct link links[COUNT];
    for (int i = 0; i < COUNT; i++) {
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        links[i] = (struct link){.from = ends[0], .to = ends[1], .moved = i % 2 ? 20 : -1};
        if (i % 2 == 0)
            assert_int_equal(write(ends[1], "x", 1), 1);
        start(await_input, &links[i]);
    }
    run_all();
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(links[i].result, i % 2 ? -ETIMEDOUT : EPOLLIN);
        close(links[i].from);
        close(links[i].to);
    }
}

static void a_file_is_ready_at_once(void **state)
{
    (void)state;
    FILE *file = tmpfile();
    struct link link = {.from = fileno(file), .moved = -1};
    start(await_input, &link);
    run_all();
    assert_int_equal(link.result, EPOLLIN);
    fclose(file);
}

static void a_closed_descriptor_is_an_error_and_not_a_wait(void **state)
{
    (void)state;
    struct link link = {.from = 1023, .moved = -1};
    start(await_input, &link);
    run_all();
    assert_int_equal(link.result, -EBADF);
}

/* ---- cancelling ------------------------------------------------------------------------- */

static void cancel(void *arg) { fiber_cancel(arg); }

static void a_parked_fiber_wakes_cancelled_and_the_others_go_on(void **state)
{
    (void)state;
    struct link links[2];
    int ends[2][2];
    struct fiber *fibers[2];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pipe(ends[i]), 0);
        links[i] = (struct link){.from = ends[i][0], .moved = i ? 50 : 60000};
        fibers[i] = start(await_input, &links[i]);
    }
    loop_after(loop, 10, cancel, fibers[0]);
    run_all();
    assert_int_equal(links[0].result, -ECANCELED);
    assert_int_equal(links[1].result, -ETIMEDOUT);
    for (int i = 0; i < 4; i++)
        close(ends[i / 2][i % 2]);
}

static int results[8];

static void await_thrice(void *arg)
{
    (void)arg;
    results[0] = await_sleep(10000);
    results[1] = await_wake(10000);
    results[2] = await_fd(0, EPOLLIN, 10000);
    results[3] = fiber_is_cancelled();
}

static void every_await_after_a_cancel_is_cancelled(void **state)
{
    (void)state;
    loop_after(loop, 5, cancel, start(await_thrice, NULL));
    run_all();
    for (int i = 0; i < 3; i++)
        assert_int_equal(results[i], -ECANCELED);
    assert_true(results[3]);
}

static void a_fiber_cancelled_before_it_began_still_runs(void **state)
{
    (void)state;
    fiber_cancel(start(await_thrice, NULL));
    run_all();
    for (int i = 0; i < 3; i++)
        assert_int_equal(results[i], -ECANCELED);
}

static void await_shielded(void *arg)
{
    (void)arg;
    fiber_shield(true);
    fiber_shield(true);
    results[0] = await_sleep(20);
    fiber_shield(false);
    results[1] = await_sleep(1);
    fiber_shield(false);
    results[2] = await_sleep(1);
}

static void a_shield_holds_off_a_cancel_until_the_last_is_down(void **state)
{
    (void)state;
    loop_after(loop, 5, cancel, start(await_shielded, NULL));
    run_all();
    assert_int_equal(results[0], 0);
    assert_int_equal(results[1], 0);
    assert_int_equal(results[2], -ECANCELED);
}

/* ---- deadlines -------------------------------------------------------------------------- */

static void sleep_past_deadline(void *arg)
{
    (void)arg;
    int64_t begin = clock_ms();
    fiber_push_deadline(begin + 20);
    results[0] = await_sleep(5);
    results[1] = await_sleep(10000);
    results[2] = await_sleep(0);
    results[3] = await_fd(0, EPOLLIN, -1);
    results[4] = await_wake(-1);
    results[5] = (int)(clock_ms() - begin);
}

static void past_the_deadline_every_await_times_out(void **state)
{
    (void)state;
    start(sleep_past_deadline, NULL);
    run_all();
    assert_int_equal(results[0], 0);
    for (int i = 1; i < 5; i++)
        assert_int_equal(results[i], -ETIMEDOUT);
    assert_in_range(results[5], 20, 2000);
}

static void nest_deadlines(void *arg)
{
    (void)arg;
    int64_t now = clock_ms(), outer = now + 5000;
    assert_int_equal(fiber_deadline(), 0);
    fiber_push_deadline(outer);
    assert_int_equal(fiber_deadline(), outer);

    fiber_push_deadline(now + 9000);
    assert_int_equal(fiber_deadline(), outer); /* later: no effect */
    fiber_pop_deadline();
    fiber_push_deadline(outer);
    fiber_pop_deadline();
    assert_int_equal(fiber_deadline(), outer);

    fiber_push_deadline(now + 10);
    assert_int_equal(fiber_deadline(), now + 10);
    assert_int_equal(await_sleep(1000), -ETIMEDOUT);
    assert_true(fiber_is_late());
    fiber_lift_deadline(0); /* for cleaning up */
    assert_int_equal(fiber_deadline(), 0);
    assert_false(fiber_is_late());
    fiber_push_deadline(now + 8000);
    assert_int_equal(fiber_deadline(), now + 8000);
    fiber_pop_deadline();
    fiber_pop_deadline();
    fiber_lift_deadline(now + 9000);
    assert_int_equal(fiber_deadline(), now + 9000);
    fiber_pop_deadline();
    assert_int_equal(fiber_deadline(), now + 10);
    fiber_pop_deadline();
    assert_int_equal(fiber_deadline(), outer);
    assert_int_equal(await_sleep(1), 0);
}

static void an_inner_deadline_is_never_later_and_the_outer_comes_back(void **state)
{
    (void)state;
    start(nest_deadlines, NULL);
    run_all();
}

static void set_deadlines_for_ever(void *arg)
{
    (void)arg;
    int64_t outer_ms = clock_ms() + 60000;
    fiber_push_deadline(outer_ms);
    for (int i = 0; i < 1000; i++) {
        fiber_push_deadline(clock_ms() + i % 7 * 20000);
        fiber_pop_deadline();
        assert_int_equal(fiber_deadline(), outer_ms);
    }
}

static void bracketed_deadlines_take_no_room(void **state)
{
    (void)state;
    start(set_deadlines_for_ever, NULL);
    run_all();
}

/* ---- waking ----------------------------------------------------------------------------- */

static struct fiber *sleeper;

static void await_wakes(void *arg)
{
    (void)arg;
    results[0] = await_wake(10000);
    results[1] = await_wake(5);
    results[2] = await_sleep(10);   /* a wake meanwhile does not cut this short ... */
    results[3] = await_wake(10000); /* ... and is kept for this */
}

static void wake_sleeper(void *arg)
{
    (void)arg;
    fiber_wake(sleeper);
}

static void a_wake_is_kept_until_it_is_awaited(void **state)
{
    (void)state;
    sleeper = start(await_wakes, NULL);
    fiber_wake(sleeper); /* before the fiber even began */
    fiber_wake(NULL);
    loop_after(loop, 12, wake_sleeper, NULL);
    run_all();
    assert_int_equal(results[0], 0);
    assert_int_equal(results[1], -ETIMEDOUT);
    assert_int_equal(results[2], 0);
    assert_int_equal(results[3], 0);
}

static struct fiber *players[2];

static void wake_in_turn(void *arg)
{
    long me = (struct fiber **)arg - players;
    for (int i = 0; i < 1000; i++) {
        fiber_wake(players[!me]);
        assert_int_equal(await_wake(10000), 0);
    }
    fiber_wake(players[!me]);
    players[me] = NULL;
}

static void two_fibers_may_wake_each_other(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        players[i] = start(wake_in_turn, &players[i]);
    run_all();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_fiber_starts_at_the_loops_next_turn_and_ends_on_the_loops_stack),
        TEST(fibers_take_turns_where_they_await),
        TEST(thousands_of_fibers_each_keep_their_own_stack),
        TEST(who_waits_long_keeps_no_more_of_its_stack_than_it_uses),
        TEST(a_stack_overflow_hits_the_guard_and_no_other_stack),
        TEST(one_descriptor_may_be_awaited_again_and_again),
        TEST(many_fibers_wait_on_descriptors_of_their_own),
        TEST(a_file_is_ready_at_once),
        TEST(a_closed_descriptor_is_an_error_and_not_a_wait),
        TEST(a_parked_fiber_wakes_cancelled_and_the_others_go_on),
        TEST(every_await_after_a_cancel_is_cancelled),
        TEST(a_fiber_cancelled_before_it_began_still_runs),
        TEST(a_shield_holds_off_a_cancel_until_the_last_is_down),
        TEST(past_the_deadline_every_await_times_out),
        TEST(an_inner_deadline_is_never_later_and_the_outer_comes_back),
        TEST(bracketed_deadlines_take_no_room),
        TEST(a_wake_is_kept_until_it_is_awaited),
        TEST(two_fibers_may_wake_each_other),
    };
    return cmocka_run_group_tests_name("fiber", tests, NULL, NULL);
}
