#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <execinfo.h>
#include <fenv.h>
#include <signal.h>
#include <string.h>

#include "tests/workers/runtime/fiber_world.h"
#include "tests/workers/runtime/registers.h"
#include "workers/runtime/switch.h"

enum { MANY = 200, TURNS = 100, DEEP = 200 };

/* All others that are ready have a turn meanwhile. */
static void give_way(void *arg)
{
    (void)arg;
    assert_int_equal(await_sleep(0), 0);
}

/* ---- registers ------------------------------------------------------------------------------ */

#ifndef SWITCH_BY_UCONTEXT
static struct switch_point one_side, other_side;
static uint64_t differ_on_other;

/* No sanitizer is told of these switches, so it is not to look at what is called meanwhile. */
__attribute__((no_sanitize("address", "thread"))) static void go_back_again_and_again(void)
{
    for (uint64_t seed = 0x0101010101010101u;; seed *= 3)
        differ_on_other |= registers_differ(&other_side, &one_side, seed);
}

__attribute__((no_sanitize("address", "thread"))) static void both_sides_have_their_registers_back(void **state)
{
    (void)state;
    static _Alignas(16) char stack[16384];
    uint64_t differ = 0;
    switch_make(&other_side, stack, sizeof(stack), go_back_again_and_again);
    for (uint64_t turn = 0; turn < TURNS; turn++)
        differ |= registers_differ(&one_side, &other_side, 0xfedcba9876543210u + turn * 1000);
    assert_int_equal(differ, 0);
    assert_int_equal(differ_on_other, 0);
}
#endif

/* ---- floating point ------------------------------------------------------------------------- */

static double third(void)
{
    volatile double one = 1, three = 3;
    return one / three;
}

static long double long_third(void)
{
    volatile long double one = 1, three = 3;
    return one / three;
}

static void round_up(void *arg)
{
    const double up = third();
    const long double long_up = long_third();
    for (int turn = 0; turn < TURNS; turn++) {
        give_way(NULL);
        assert_int_equal(fegetround(), FE_UPWARD);
        assert_true(third() == up && long_third() == long_up);
    }
    ++*(int *)arg;
}

static void round_down(void *arg)
{
    const double up = third();
    const long double long_up = long_third();
    assert_int_equal(fegetround(), FE_UPWARD); /* as it was where the fiber was started */
    fesetround(FE_DOWNWARD);
    for (int turn = 0; turn < TURNS; turn++) {
        give_way(NULL);
        assert_int_equal(fegetround(), FE_DOWNWARD);
        assert_true(third() < up && long_third() < long_up);
    }
    ++*(int *)arg;
}

static void each_fiber_rounds_as_it_said(void **state)
{
    (void)state;
    int ended = 0;
    const double nearest = third();
    fesetround(FE_UPWARD);
    for (int i = 0; i < 20; i++)
        start(i % 2 ? round_up : round_down, &ended);
    fesetround(FE_TONEAREST);
    run_all();
    assert_int_equal(ended, 20);
    assert_int_equal(fegetround(), FE_TONEAREST);
    assert_true(third() == nearest);
}

/* ---- stacks --------------------------------------------------------------------------------- */

/* A frame for each level, which another fiber is let in on both on the way down and on the way back. */
static unsigned go_down(unsigned seed, int depth)
{
    unsigned frame[32];
    for (size_t i = 0; i < 32; i++)
        frame[i] = seed * 31 + (unsigned)depth + (unsigned)i;
    if (depth % 10 == 0)
        give_way(NULL);
    unsigned below = depth == DEEP ? 0 : go_down(seed, depth + 1);
    if (depth % 7 == 0)
        give_way(NULL);
    for (size_t i = 0; i < 32; i++)
        below += frame[i] != seed * 31 + (unsigned)depth + (unsigned)i;
    return below;
}

static void go_down_and_back(void *arg)
{
    unsigned *seed = arg;
    *seed = go_down(*seed, 0);
}

static void calls_nest_deeply_in_many_fibers_at_once(void **state)
{
    (void)state;
    static unsigned seeds[MANY];
    for (unsigned i = 0; i < MANY; i++) {
        seeds[i] = i + 1;
        start(go_down_and_back, &seeds[i]);
    }
    run_all();
    for (int i = 0; i < MANY; i++)
        assert_int_equal(seeds[i], 0);
}

static void look_at_alignment(void *arg)
{
    volatile _Alignas(16) char aligned[16];
    for (int turn = 0; turn < 3; turn++) {
        *(uintptr_t *)arg |= (uintptr_t)aligned % 16;
        give_way(NULL);
    }
}

static void stacks_are_aligned_as_calls_want_them(void **state)
{
    (void)state;
    uintptr_t wrong = 0;
    start(look_at_alignment, &wrong);
    run_all();
    assert_int_equal(wrong, 0);
}

/* ---- what is not switched, and what is seen from outside ------------------------------------- */

#ifndef SWITCH_BY_UCONTEXT
static bool is_blocked(int number)
{
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    return sigismember(&mask, number);
}

static void block(void *arg)
{
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &one, NULL);
    give_way(NULL);
    *(bool *)arg = is_blocked(SIGUSR1);
}

static void the_signal_mask_stays_the_threads(void **state)
{
    (void)state;
    sigset_t before;
    bool was_blocked = false;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    start(block, &was_blocked);
    run_all();
    assert_true(was_blocked);
    assert_true(is_blocked(SIGUSR1));
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void switch_begin(void);

struct trace {
    void *frames[64];
    int count;
};

static __attribute__((noinline)) void take_trace(void *arg)
{
    struct trace *trace = arg;
    give_way(NULL);
    trace->count = backtrace(trace->frames, 64);
    give_way(NULL);
}

static void a_backtrace_ends_where_the_fiber_began(void **state)
{
    (void)state;
    static struct trace trace;
    start(take_trace, &trace);
    run_all();
    assert_in_range(trace.count, 2, 10);
    const uintptr_t last = (uintptr_t)trace.frames[trace.count - 1], begin = (uintptr_t)switch_begin;
    assert_in_range(last, begin + 1, begin + 15);
}
#endif

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(each_fiber_rounds_as_it_said),           TEST(calls_nest_deeply_in_many_fibers_at_once),
        TEST(stacks_are_aligned_as_calls_want_them),
#ifndef SWITCH_BY_UCONTEXT
        TEST(both_sides_have_their_registers_back),   TEST(the_signal_mask_stays_the_threads),
        TEST(a_backtrace_ends_where_the_fiber_began),
#endif
    };
    return cmocka_run_group_tests_name("switch", tests, NULL, NULL);
}
