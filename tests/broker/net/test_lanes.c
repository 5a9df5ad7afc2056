/* What may wait in a lane, and what becomes of one that is full. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <poll.h>

#include "broker/net/zmq_frame.h"
#include "broker/net/lanes.h"
#include "common/base/clock.h"
#include "common/net/bundle.h"

enum { ROOM = 100, WAIT_MS = 20000 };

struct place {
    void *context, *pull;
    char endpoint[256];
    struct auth auth;
    struct lanes *lanes;
};

static int set_up(void **state)
{
    static struct place place;
    size_t size = sizeof(place.endpoint);
    int one = 1, none = 0, wait_ms = WAIT_MS;
    struct fail fail;
    place = (struct place){.context = zmq_ctx_new()};
    assert_int_equal(auth_open(&place.auth, place.context, NULL, &fail), 0);
    place.lanes = lanes_create(place.context, &place.auth, (struct lane_rules){0});
    assert_non_null(place.lanes);
    place.pull = zmq_socket(place.context, ZMQ_PULL);
    zmq_setsockopt(place.pull, ZMQ_RCVHWM, &one, sizeof(one));
    zmq_setsockopt(place.pull, ZMQ_LINGER, &none, sizeof(none));
    zmq_setsockopt(place.pull, ZMQ_RCVTIMEO, &wait_ms, sizeof(wait_ms));
    assert_int_equal(zmq_bind(place.pull, "tcp://127.0.0.1:*"), 0);
    assert_int_equal(zmq_getsockopt(place.pull, ZMQ_LAST_ENDPOINT, place.endpoint, &size), 0);
    *state = &place;
    return 0;
}

static int tear_down(void **state)
{
    struct place *place = *state;
    lanes_destroy(&place->lanes);
    zmq_close(place->pull);
    auth_close(&place->auth);
    zmq_ctx_term(place->context);
    return 0;
}

static void open_lane_of(struct place *place, struct lane_limits limits)
{
    struct fail fail;
    assert_int_equal(lanes_open(place->lanes, slice_from_str("w"), slice_from_str(place->endpoint),
                                slice_from_str("127.0.0.1"), limits, clock_ms(), &fail),
                     0);
}

static void open_lane(struct place *place) { open_lane_of(place, (struct lane_limits){.messages_max = ROOM}); }

static bool take_broken(struct place *place, int64_t now_ms, char ret_worker[LANE_NAME_SIZE], const char **ret_why)
{
    lanes_hear(place->lanes, now_ms);
    return lanes_take_broken(place->lanes, ret_worker, ret_why);
}

static int send_number_by(struct place *place, uint32_t number, size_t size, int64_t due_ms)
{
    zmq_msg_t frame;
    struct fail fail;
    assert_int_equal(zmq_msg_init_size(&frame, size), 0);
    memset(zmq_msg_data(&frame), 0, size);
    memcpy(zmq_msg_data(&frame), &number, sizeof(number));
    return lanes_send(place->lanes, slice_from_str("w"), slice_of(NULL, 0), &frame, due_ms, &fail);
}

static int send_number(struct place *place, uint32_t number, size_t size)
{
    return send_number_by(place, number, size, 0);
}

static void send_job(struct place *place, struct slice task, uint32_t number, size_t size)
{
    zmq_msg_t frame;
    struct fail fail;
    assert_int_equal(zmq_msg_init_size(&frame, size), 0);
    memcpy(zmq_msg_data(&frame), &number, sizeof(number));
    assert_int_equal(lanes_send(place->lanes, slice_from_str("w"), task, &frame, 0, &fail), 0);
}

/* Sends until no more fits: what libzmq and the kernel take has bounds, too. */
static void fill(struct place *place)
{
    enum { SIZE = 1 << 16, MOST = 10000 };
    int64_t end_ms = clock_ms() + WAIT_MS;
    uint32_t sent = 0;
    int code;
    while ((code = send_number(place, sent, SIZE)) == 0)
        assert_true(++sent < MOST && clock_ms() < end_ms);
    assert_int_equal(code, -EAGAIN);
    assert_true(sent >= ROOM);
}

static void assert_told_as_full(struct place *place)
{
    char worker[LANE_NAME_SIZE];
    const char *why;
    assert_true(take_broken(place, clock_ms(), worker, &why));
    assert_string_equal(worker, "w");
    assert_non_null(strstr(why, "nobody can be reading it"));
    assert_false(take_broken(place, clock_ms(), worker, &why));
}

static void what_a_lane_has_room_for_is_kept_until_it_is_connected_and_read(void **state)
{
    struct place *place = *state;
    uint32_t number;
    char worker[LANE_NAME_SIZE];
    const char *why;
    assert_int_equal(zmq_unbind(place->pull, place->endpoint), 0);
    open_lane(place);
    for (uint32_t i = 0; i < ROOM; i++)
        assert_int_equal(send_number(place, i, 300), 0);
    while (zmq_bind(place->pull, place->endpoint) != 0) /* libzmq unbinds from another thread */
        assert_int_equal(errno, EADDRINUSE);
    for (uint32_t i = 0; i < ROOM; i++) {
        assert_int_equal(zmq_recv(place->pull, &number, sizeof(number), 0), 300);
        assert_int_equal(number, i);
    }
    assert_int_equal(send_number(place, ROOM, 300), 0);
    assert_false(take_broken(place, clock_ms(), worker, &why));
}

/* The news of the one worker, as of that time; NULL: there is none. */
static const char *news_at(struct place *place, int64_t now_ms)
{
    static struct lane_news news;
    char worker[LANE_NAME_SIZE];
    const char *why;
    assert_false(take_broken(place, now_ms, worker, &why));
    if (!lanes_take_news(place->lanes, &news))
        return NULL;
    assert_string_equal(news.worker, "w");
    return news.why;
}

static void await_connection(struct place *place, int64_t later_ms)
{
    const char *why = NULL;
    for (int64_t end_ms = clock_ms() + WAIT_MS; !why; assert_true(clock_ms() < end_ms)) {
        struct pollfd ready = {lanes_fd(place->lanes), POLLIN, 0};
        poll(&ready, 1, 100);
        why = news_at(place, clock_ms() + later_ms);
    }
    assert_string_equal(why, "");
}

static void a_lane_tells_that_it_is_connected(void **state)
{
    struct place *place = *state;
    open_lane(place);
    await_connection(place, 0);
    assert_null(news_at(place, clock_ms() + 2 * LANE_PATIENCE_MS));
}

static void a_lane_that_does_not_connect_tells_the_cure_once_and_takes_nothing_until_it_does(void **state)
{
    struct place *place = *state;
    uint32_t number;
    assert_int_equal(zmq_unbind(place->pull, place->endpoint), 0);
    open_lane(place);
    assert_null(news_at(place, clock_ms()));
    assert_non_null(strstr(news_at(place, clock_ms() + LANE_LATE_MS + 1000), "--advertise"));
    assert_null(news_at(place, clock_ms() + 2 * LANE_PATIENCE_MS));
    assert_int_equal(send_number(place, 1, 300), -ENOENT);
    while (zmq_bind(place->pull, place->endpoint) != 0) /* libzmq unbinds from another thread */
        assert_int_equal(errno, EADDRINUSE);
    await_connection(place, 2 * LANE_PATIENCE_MS);
    assert_int_equal(send_number(place, 2, 300), 0);
    assert_int_equal(zmq_recv(place->pull, &number, sizeof(number), 0), 300);
    assert_int_equal(number, 2);
}

static void a_lane_that_nobody_answers_for_is_broken_once_it_is_full(void **state)
{
    struct place *place = *state;
    assert_int_equal(zmq_unbind(place->pull, place->endpoint), 0);
    open_lane(place);
    for (uint32_t i = 0; i < ROOM; i++)
        assert_int_equal(send_number(place, i, 300), 0);
    assert_int_equal(send_number(place, ROOM, 300), -EAGAIN);
    assert_told_as_full(place);
}

static void a_lane_that_nobody_reads_is_broken_once_it_is_full_and_takes_nothing_more(void **state)
{
    struct place *place = *state;
    uint32_t number;
    open_lane(place);
    fill(place);
    assert_int_equal(send_number(place, 0, 300), -ENOENT);
    assert_told_as_full(place);
    assert_int_equal(zmq_recv(place->pull, &number, sizeof(number), 0), 1 << 16); /* room, but too late */
    assert_int_equal(send_number(place, 0, 300), -ENOENT);
    lanes_close(place->lanes, slice_from_str("w"));
    assert_int_equal(lanes_count(place->lanes), 0);
}

static void a_lane_that_was_full_is_as_new_when_it_is_opened_again(void **state)
{
    struct place *place = *state;
    uint32_t number = 0;
    char worker[LANE_NAME_SIZE];
    const char *why;
    open_lane(place);
    fill(place);
    open_lane(place); /* before anybody asked what broke */
    assert_false(take_broken(place, clock_ms(), worker, &why));
    assert_int_equal(send_number(place, 4711, 300), 0);
    while (number != 4711) /* after what the kernel had of the old one */
        assert_true(zmq_recv(place->pull, &number, sizeof(number), 0) > 0);
}

static void small_messages_of_a_cycle_go_as_one_before_a_large_one(void **state)
{
    struct place *place = *state;
    static uint8_t bytes[1 << 17];
    struct slice message;
    size_t at = 0;
    open_lane_of(place, (struct lane_limits){.messages_max = ROOM, .bundles = true});
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(send_number(place, i, 300), 0);
    assert_int_equal(send_number(place, 3, 100000), 0);
    assert_int_equal(send_number(place, 4, 300), 0);
    lanes_flush(place->lanes, clock_ms());
    lanes_flush(place->lanes, clock_ms()); /* of nothing */
    const int len = zmq_recv(place->pull, bytes, sizeof(bytes), 0);
    assert_int_equal(len, 1 + 3 * (4 + 300));
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(bundle_next(slice_of(bytes, (size_t)len), &at, &message), 1);
        assert_memory_equal(message.data, &i, sizeof(i));
    }
    assert_int_equal(bundle_next(slice_of(bytes, (size_t)len), &at, &message), 0);
    assert_int_equal(zmq_recv(place->pull, bytes, sizeof(bytes), 0), 100000);
    assert_int_equal(zmq_recv(place->pull, bytes, sizeof(bytes), 0), 300); /* alone, as it is */
    assert_int_equal(bytes[0], 4);
}

static void what_may_wait_leaves_with_what_cannot_or_alone_when_it_is_due(void **state)
{
    enum { SIZE = 300, DUE_MS = 1000 };
    struct place *place = *state;
    uint8_t bytes[4 * SIZE];
    open_lane_of(place, (struct lane_limits){.messages_max = ROOM, .bundles = true});
    assert_true(lanes_due_ms(place->lanes) == INT64_MAX);
    assert_int_equal(send_number_by(place, 1, SIZE, DUE_MS), 0);
    lanes_flush(place->lanes, DUE_MS - 1); /* which would have sent it ahead of the next */
    assert_int_equal(lanes_due_ms(place->lanes), DUE_MS);
    assert_int_equal(send_number(place, 2, SIZE), 0);
    assert_true(lanes_due_ms(place->lanes) == INT64_MAX);
    lanes_flush(place->lanes, DUE_MS - 1);
    assert_int_equal(zmq_recv(place->pull, bytes, sizeof(bytes), 0), 1 + 2 * (4 + SIZE));
    assert_int_equal(send_number_by(place, 3, SIZE, DUE_MS), 0);
    lanes_flush(place->lanes, DUE_MS);
    assert_int_equal(zmq_recv(place->pull, bytes, sizeof(bytes), 0), SIZE);
    assert_int_equal(bytes[0], 3);
    assert_int_equal(send_number(place, 4, SIZE), 0);
    assert_int_equal(send_number_by(place, 5, SIZE, DUE_MS), 0); /* holds nothing up */
    assert_true(lanes_due_ms(place->lanes) == INT64_MAX);
    lanes_flush(place->lanes, 0);
    assert_int_equal(zmq_recv(place->pull, bytes, sizeof(bytes), 0), 1 + 2 * (4 + SIZE));
}

static void what_is_bundled_for_a_lane_that_closes_is_revoked(void **state)
{
    struct place *place = *state;
    uint32_t number;
    open_lane_of(place, (struct lane_limits){.messages_max = ROOM, .bundles = true});
    assert_int_equal(send_number(place, 1, 300), 0);
    open_lane_of(place, (struct lane_limits){.messages_max = ROOM, .bundles = true});
    assert_int_equal(send_number(place, 2, 300), 0);
    lanes_flush(place->lanes, clock_ms());
    assert_int_equal(zmq_recv(place->pull, &number, sizeof(number), 0), 300);
    assert_int_equal(number, 2);
}

static void no_bundle_outgrows_its_bound(void **state)
{
    struct place *place = *state;
    static uint8_t bytes[1 << 17];
    struct slice message;
    uint32_t number = 0;
    open_lane_of(place, (struct lane_limits){.messages_max = ROOM, .bundles = true});
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(send_number(place, i, 4000), 0);
    lanes_flush(place->lanes, clock_ms());
    while (number < 100) {
        const int len = zmq_recv(place->pull, bytes, sizeof(bytes), 0);
        size_t at = 0;
        assert_in_range(len, 4000, 1 << 16);
        for (; bundle_next(slice_of(bytes, (size_t)len), &at, &message) == 1; number++)
            assert_memory_equal(message.data, &number, sizeof(number));
    }
}

/* Large ones, that a message of their own would be for; jobs of two groups by turns, and of one. */
static void what_jobs_share_is_before_the_first_of_them_in_each_bundle(void **state)
{
    enum { TASK_BYTES = 100000, JOBS = 60, JOB_BYTES = 4000 };
    struct place *place = *state;
    static uint8_t tasks[2][TASK_BYTES], bytes[1 << 20];
    unsigned heard = 0, bundles = 0;
    open_lane_of(place, (struct lane_limits){.messages_max = ROOM, .bundles = true});
    memset(tasks[1], 1, TASK_BYTES);
    for (uint32_t i = 0; i < JOBS; i++)
        send_job(place, slice_of(tasks[i / 20 % 2], TASK_BYTES), i, JOB_BYTES);
    lanes_flush(place->lanes, clock_ms());
    for (; heard < JOBS; bundles++) {
        const int len = zmq_recv(place->pull, bytes, sizeof(bytes), 0);
        struct slice message, task = {NULL, 0};
        size_t at = 0;
        assert_in_range(len, TASK_BYTES, TASK_BYTES + BUNDLE_BYTES_MAX + 100);
        while (bundle_next(slice_of(bytes, (size_t)len), &at, &message) == 1)
            if (message.len == TASK_BYTES) {
                assert_false(slice_equal(message, task));
                task = message;
            } else {
                assert_memory_equal(message.data, &heard, sizeof(heard));
                assert_true(slice_equal(task, slice_of(tasks[heard++ / 20 % 2], TASK_BYTES)));
            }
    }
    assert_int_equal(bundles, 6); /* of 16 and 4 jobs of a task */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_a_lane_has_room_for_is_kept_until_it_is_connected_and_read, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_lane_that_nobody_answers_for_is_broken_once_it_is_full, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_lane_tells_that_it_is_connected, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_lane_that_does_not_connect_tells_the_cure_once_and_takes_nothing_until_it_does, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_lane_that_nobody_reads_is_broken_once_it_is_full_and_takes_nothing_more,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(small_messages_of_a_cycle_go_as_one_before_a_large_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_may_wait_leaves_with_what_cannot_or_alone_when_it_is_due, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_is_bundled_for_a_lane_that_closes_is_revoked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_bundle_outgrows_its_bound, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_jobs_share_is_before_the_first_of_them_in_each_bundle, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_lane_that_was_full_is_as_new_when_it_is_opened_again, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("lanes", tests, NULL, NULL);
}
