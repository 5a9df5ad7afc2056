/* fiber_world.h - a loop for each test, which stops when all fibers that the test started have ended. */
#ifndef SLUICE_TESTS_WORKERS_RUNTIME_FIBER_WORLD_H
#define SLUICE_TESTS_WORKERS_RUNTIME_FIBER_WORLD_H

#include "workers/runtime/fiber.h"

static struct loop *loop;
static int living;

static int set_up(void **state)
{
    (void)state;
    living = 0;
    return (loop = loop_create()) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    loop_destroy(&loop);
    return 0;
}

static void out_of_time(void *arg)
{
    (void)arg;
    fail_msg("the fibers did not end within 20 seconds");
}

static void one_less(void *arg)
{
    (void)arg;
    assert_null(fiber_current());
    if (--living == 0)
        loop_stop(loop);
}

static struct fiber *start(void (*run)(void *arg), void *arg)
{
    living++;
    struct fiber *fiber = fiber_start(loop, run, one_less, arg);
    assert_non_null(fiber);
    return fiber;
}

static void run_all(void)
{
    struct loop_timer *bound = loop_after(loop, 20000, out_of_time, NULL);
    loop_run(loop);
    loop_cancel(loop, &bound);
    assert_int_equal(living, 0);
}

#endif
