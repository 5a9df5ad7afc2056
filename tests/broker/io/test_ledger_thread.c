/* A thread that does one thing at a time for another. */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

#include "broker/io/ledger_thread.h"

struct world {
    struct ledger_thread *thread;
    pthread_mutex_t hold; /* while it is held nothing is done */
    atomic_int done;
};

static void work(void *context, void *thing)
{
    struct world *world = context;
    pthread_mutex_lock(&world->hold);
    *(int *)thing += 1;
    pthread_mutex_unlock(&world->hold);
    atomic_fetch_add(&world->done, 1);
}

static int set_up(void **state)
{
    static struct world world;
    world = (struct world){.hold = PTHREAD_MUTEX_INITIALIZER};
    *state = &world;
    return ledger_thread_start(&world.thread, work, &world, NULL);
}

static int tear_down(void **state)
{
    struct world *world = *state;
    ledger_thread_stop(&world->thread);
    return 0;
}

static bool is_readable(const struct world *world, int wait_ms)
{
    struct pollfd item = {ledger_thread_fd(world->thread), POLLIN, 0};
    return poll(&item, 1, wait_ms) == 1;
}

static void what_is_given_is_taken_back_when_it_is_done(void **state)
{
    struct world *world = *state;
    int thing = 1;
    assert_true(ledger_thread_is_idle(world->thread));
    assert_null(ledger_thread_take(world->thread));
    pthread_mutex_lock(&world->hold);
    ledger_thread_give(world->thread, &thing);
    assert_false(ledger_thread_is_idle(world->thread));
    assert_null(ledger_thread_take(world->thread));
    assert_false(is_readable(world, 0));
    pthread_mutex_unlock(&world->hold);
    assert_true(is_readable(world, 10000));
    assert_ptr_equal(ledger_thread_take(world->thread), &thing);
    assert_int_equal(thing, 2);
    assert_true(ledger_thread_is_idle(world->thread));
    assert_false(is_readable(world, 0));
    assert_null(ledger_thread_take(world->thread));
}

static void who_waits_gets_it(void **state)
{
    struct world *world = *state;
    int thing = 0;
    for (int i = 0; i < 1000; i++) {
        ledger_thread_give(world->thread, &thing);
        assert_ptr_equal(ledger_thread_await(world->thread), &thing);
    }
    assert_int_equal(thing, 1000);
    assert_false(is_readable(world, 0));
    assert_null(ledger_thread_await(world->thread)); /* nothing was given: nothing is waited for */
}

static void what_was_given_is_done_before_it_stops(void **state)
{
    struct world *world = *state;
    int thing = 0;
    ledger_thread_give(world->thread, &thing);
    ledger_thread_stop(&world->thread);
    assert_null(world->thread);
    assert_int_equal(thing, 1);
    assert_int_equal(atomic_load(&world->done), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_is_given_is_taken_back_when_it_is_done),
        TEST(who_waits_gets_it),
        TEST(what_was_given_is_done_before_it_stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
