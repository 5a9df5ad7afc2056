#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/loop/loop.h"

static struct loop *loop;

static int set_up(void **state)
{
    (void)state;
    return (loop = loop_create()) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    loop_destroy(&loop);
    return 0;
}

static void stop(void *arg) { loop_stop(arg ? arg : loop); }

static void out_of_time(void *arg)
{
    (void)arg;
    fail_msg("nothing stopped the loop within 10 seconds");
}

/* Runs until something stops the loop, or fails. */
static void run(void)
{
    struct loop_timer *bound = loop_after(loop, 10000, out_of_time, NULL);
    loop_run(loop);
    loop_cancel(loop, &bound);
}

/* ---- timers ----------------------------------------------------------------------------- */

static int order[1000], order_count;

static void note(void *arg) { order[order_count++] = *(int *)arg; }

static void timers_fire_by_time_and_among_equals_by_age(void **state)
{
    (void)state;
    static int names[] = {0, 1, 2, 3, 4};
    order_count = 0;
    loop_after(loop, 30, note, &names[3]);
    loop_after(loop, 0, note, &names[0]);
    loop_after(loop, 0, note, &names[1]);
    loop_after(loop, 10, note, &names[2]);
    loop_after(loop, 40, stop, NULL);
    run();
    assert_int_equal(order_count, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(order[i], i);
}

static int64_t fired_at_us[200];

static void note_time(void *arg) { *(int64_t *)arg = clock_us(); }

static void a_timer_never_fires_early(void **state)
{
    (void)state;
    int64_t start_us = clock_us();
    for (int i = 0; i < 200; i++)
        loop_after(loop, i % 20, note_time, &fired_at_us[i]);
    loop_after(loop, 25, stop, NULL);
    run();
    for (int i = 0; i < 200; i++)
        assert_true(fired_at_us[i] >= start_us + i % 20 * 1000);
}

static void a_cancelled_timer_does_not_fire_and_the_others_keep_their_order(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    static int names[COUNT];
    static int64_t due_us[COUNT][2]; /* not before, nor after */
    static struct loop_timer *timers[COUNT];
    order_count = 0;
    srand(7);
    for (int i = 0; i < COUNT; i++) {
        int ms = rand() % 40;
        names[i] = i;
        due_us[i][0] = clock_us() + ms * 1000;
        timers[i] = loop_after(loop, ms, note, &names[i]);
        due_us[i][1] = clock_us() + ms * 1000;
        assert_non_null(timers[i]);
    }
    int left = COUNT;
    for (int i = 0; i < COUNT; i += 1 + rand() % 3, left--)
        loop_cancel(loop, &timers[i]);
    loop_after(loop, 60, stop, NULL);
    run();
    assert_int_equal(order_count, left);
    for (int i = 1; i < order_count; i++)
        assert_true(due_us[order[i - 1]][0] <= due_us[order[i]][1]);
}

static struct loop_timer *victim;

static void cancel_victim(void *arg)
{
    (void)arg;
    loop_cancel(loop, &victim);
    assert_null(victim);
}

static void a_timer_may_be_cancelled_by_another_that_is_due_with_it(void **state)
{
    (void)state;
    static int name = 1;
    order_count = 0;
    loop_after(loop, 5, cancel_victim, NULL);
    victim = loop_after(loop, 5, note, &name);
    loop_after(loop, 15, stop, NULL);
    run();
    assert_int_equal(order_count, 0);
}

static void again_at_once(void *arg)
{
    (void)arg;
    loop_after(loop, 0, again_at_once, NULL);
}

static void read_and_stop(void *arg, uint32_t events)
{
    (void)arg, (void)events;
    loop_stop(loop);
}

static void a_timer_that_always_renews_itself_does_not_starve_descriptors(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    struct loop_watch *watch = loop_watch(loop, ends[0], EPOLLIN, read_and_stop, NULL);
    again_at_once(NULL);
    run();
    loop_unwatch(loop, &watch);
    close(ends[0]);
    close(ends[1]);
}

/* ---- watches ---------------------------------------------------------------------------- */

static struct loop_watch *watches[2];
static int pipes[2][2], calls;

static void unwatch_both(void *arg, uint32_t events)
{
    (void)arg;
    assert_true(events & EPOLLIN);
    calls++;
    for (int i = 0; i < 2; i++)
        loop_unwatch(loop, &watches[i]);
    loop_after(loop, 5, stop, NULL);
}

static void unwatching_in_a_callback_silences_events_already_in_hand(void **state)
{
    (void)state;
    calls = 0;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pipe(pipes[i]), 0);
        assert_int_equal(write(pipes[i][1], "x", 1), 1);
        watches[i] = loop_watch(loop, pipes[i][0], EPOLLIN, unwatch_both, NULL);
        assert_non_null(watches[i]);
    }
    run();
    assert_int_equal(calls, 1);
    for (int i = 0; i < 4; i++)
        close(pipes[i / 2][i % 2]);
}

static int readable, writable;

static void count_events(void *arg, uint32_t events)
{
    ++*(int *)arg;
    readable += !!(events & EPOLLIN);
    writable += !!(events & EPOLLOUT);
    if (readable >= 3 && writable >= 3)
        loop_stop(loop);
}

static void one_descriptor_may_have_two_watches(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    int fd = ends[0];
    int in = 0, out = 0;
    readable = writable = 0;
    struct loop_watch *a = loop_watch(loop, fd, EPOLLIN, count_events, &in);
    struct loop_watch *b = loop_watch(loop, fd, EPOLLOUT, count_events, &out);
    assert_non_null(a);
    assert_non_null(b);
    run();
    assert_true(in >= 3 && out >= 3);
    loop_unwatch(loop, &a);
    loop_unwatch(loop, &b);
    close(ends[0]);
    close(ends[1]);
}

static void rewatch_once(void *arg, uint32_t events)
{
    struct loop_watch **watch = arg;
    if (events & EPOLLOUT) {
        calls++;
        assert_true(loop_rewatch(loop, *watch, 0));
        loop_after(loop, 5, stop, NULL);
    }
}

static void rewatching_changes_what_is_waited_for(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    calls = 0;
    struct loop_watch *watch = loop_watch(loop, ends[1], EPOLLOUT, rewatch_once, &watch);
    run();
    assert_int_equal(calls, 1);
    loop_unwatch(loop, &watch);
    close(ends[0]);
    close(ends[1]);
}

static void a_file_is_refused_with_eperm(void **state)
{
    (void)state;
    FILE *file = tmpfile();
    assert_non_null(file);
    errno = 0;
    assert_null(loop_watch(loop, fileno(file), EPOLLIN, read_and_stop, NULL));
    assert_int_equal(errno, EPERM);
    fclose(file);
}

static void unwatching_nothing_is_allowed(void **state)
{
    (void)state;
    struct loop_watch *watch = NULL;
    struct loop_timer *timer = NULL;
    loop_unwatch(loop, &watch);
    loop_cancel(loop, &timer);
}

/* ---- posts and turns -------------------------------------------------------------------- */

struct posted {
    struct loop_soon soon;
    int runs, again;
};

static void posted_run(void *arg)
{
    struct posted *posted = arg;
    posted->runs++;
    if (posted->again-- > 0)
        loop_post(loop, &posted->soon);
    else
        loop_stop(loop);
}

static void a_post_runs_once_however_often_it_was_posted(void **state)
{
    (void)state;
    struct posted p = {.soon = {.run = posted_run, .arg = &p}};
    loop_post(loop, &p.soon);
    loop_post(loop, &p.soon);
    run();
    assert_int_equal(p.runs, 1);
}

static void a_post_from_a_post_waits_for_the_next_turn(void **state)
{
    (void)state;
    struct posted p = {.soon = {.run = posted_run, .arg = &p}, .again = 9};
    uint64_t before = loop_progress(loop);
    loop_post(loop, &p.soon);
    run();
    assert_int_equal(p.runs, 10);
    assert_int_equal(loop_progress(loop) - before, 10);
}

static void an_unposted_post_does_not_run(void **state)
{
    (void)state;
    struct posted a = {.soon = {.run = posted_run, .arg = &a}}, b = {.soon = {.run = posted_run, .arg = &b}};
    loop_post(loop, &a.soon);
    loop_post(loop, &b.soon);
    loop_unpost(loop, &b.soon);
    loop_unpost(loop, &b.soon);
    run();
    assert_int_equal(a.runs, 1);
    assert_int_equal(b.runs, 0);
}

static void count_call(void *arg) { ++*(int *)arg; }

static void prepare_runs_before_each_wait(void **state)
{
    (void)state;
    int prepared = 0;
    loop_set_prepare(loop, count_call, &prepared);
    loop_after(loop, 0, stop, NULL);
    uint64_t before = loop_progress(loop);
    run();
    assert_int_equal(prepared, loop_progress(loop) - before);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(timers_fire_by_time_and_among_equals_by_age),
        TEST(a_timer_never_fires_early),
        TEST(a_cancelled_timer_does_not_fire_and_the_others_keep_their_order),
        TEST(a_timer_may_be_cancelled_by_another_that_is_due_with_it),
        TEST(a_timer_that_always_renews_itself_does_not_starve_descriptors),
        TEST(unwatching_in_a_callback_silences_events_already_in_hand),
        TEST(one_descriptor_may_have_two_watches),
        TEST(rewatching_changes_what_is_waited_for),
        TEST(a_file_is_refused_with_eperm),
        TEST(unwatching_nothing_is_allowed),
        TEST(a_post_runs_once_however_often_it_was_posted),
        TEST(a_post_from_a_post_waits_for_the_next_turn),
        TEST(an_unposted_post_does_not_run),
        TEST(prepare_runs_before_each_wait),
    };
    return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
