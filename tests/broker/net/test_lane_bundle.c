/* What is in a bundle for a worker: what jobs share once, and no more than may be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "broker/net/lane_bundle.h"
#include "broker/net/zmq_frame.h"

static uint8_t filler[2 * BUNDLE_BYTES_MAX];

static struct slice bytes_of(uint8_t what, size_t len)
{
    memset(filler, what, len);
    return slice_of(filler, len);
}

static const struct slice nothing = {NULL, 0};

static void add(struct lane_bundle *bundle, const char *task, const char *message)
{
    assert_true(lane_bundle_takes(bundle, slice_from_str(task), slice_from_str(message)));
    assert_true(lane_bundle_add(bundle, slice_from_str(task), slice_from_str(message)));
}

/* Takes it, which must be these messages, with a blank between them. */
static void assert_taken(struct lane_bundle *bundle, const char *messages)
{
    zmq_msg_t frame;
    struct slice message;
    char got[256] = "";
    size_t at = 0;
    assert_true(lane_bundle_take(bundle, &frame));
    const struct slice bytes = zmq_frame_peek(&frame);
    if (!is_bundle(bytes))
        snprintf(got, sizeof(got), "%.*s ", SLICE_ARG(bytes));
    while (is_bundle(bytes) && bundle_next(bytes, &at, &message) == 1)
        snprintf(got + strlen(got), sizeof(got) - strlen(got), "%.*s ", SLICE_ARG(message));
    assert_int_equal(strlen(got), strlen(messages) + 1);
    assert_memory_equal(got, messages, strlen(messages));
    assert_int_equal(bundle->bytes.len, 0);
    zmq_msg_close(&frame);
}

static void what_jobs_share_is_there_once(void **state)
{
    (void)state;
    struct lane_bundle bundle = {0};
    add(&bundle, "", "ack");
    add(&bundle, "task-a", "a/0");
    add(&bundle, "", "ack");
    add(&bundle, "task-a", "a/1");
    add(&bundle, "task-b", "b/0");
    add(&bundle, "task-b", "b/1");
    add(&bundle, "task-a", "a/2");
    assert_taken(&bundle, "ack task-a a/0 ack a/1 task-b b/0 b/1 task-a a/2");
    lane_bundle_finish(&bundle);
}

static void the_next_bundle_has_it_again(void **state)
{
    (void)state;
    struct lane_bundle bundle = {0};
    add(&bundle, "task-a", "a/0");
    assert_taken(&bundle, "task-a a/0");
    add(&bundle, "task-a", "a/1");
    assert_taken(&bundle, "task-a a/1");
    add(&bundle, "", "ack");
    assert_taken(&bundle, "ack");
    lane_bundle_finish(&bundle);
}

static void a_large_task_begins_a_bundle_and_leaves_room_for_its_jobs(void **state)
{
    (void)state;
    struct lane_bundle bundle = {0};
    const struct slice task = bytes_of(1, BUNDLE_BYTES_MAX + 1), job = slice_from_str("job");
    assert_true(lane_bundle_takes(&bundle, task, job)); /* as it is empty */
    add(&bundle, "", "ack");
    assert_false(lane_bundle_takes(&bundle, task, job));
    assert_taken(&bundle, "ack");
    for (size_t i = 0; i < BUNDLE_BYTES_MAX / 8; i++) { /* 4 bytes of its length, and 3 */
        assert_true(lane_bundle_takes(&bundle, task, job));
        assert_true(lane_bundle_add(&bundle, task, job));
    }
    assert_in_range(bundle.bytes.len, 2 * BUNDLE_BYTES_MAX - (BUNDLE_BYTES_MAX / 8) - 100, 2 * BUNDLE_BYTES_MAX + 100);
    assert_true(lane_bundle_takes(&bundle, task, job));
    assert_false(lane_bundle_takes(&bundle, task, slice_of(filler, BUNDLE_BYTES_MAX / 2)));
    assert_false(lane_bundle_takes(&bundle, slice_of(filler + 1, BUNDLE_BYTES_MAX), job)); /* that of another group */
    lane_bundle_finish(&bundle);
}

static void a_large_bundle_is_handed_over_and_a_small_one_is_copied(void **state)
{
    (void)state;
    struct lane_bundle bundle = {0};
    zmq_msg_t frame;
    assert_true(lane_bundle_add(&bundle, bytes_of(1, BUNDLE_BYTES_MAX), slice_from_str("job")));
    const void *data = bundle.bytes.data;
    assert_true(lane_bundle_take(&bundle, &frame));
    assert_ptr_equal(zmq_msg_data(&frame), data);
    assert_null(bundle.bytes.data);
    zmq_msg_close(&frame);
    assert_true(lane_bundle_add(&bundle, nothing, slice_from_str("one")) &&
                lane_bundle_add(&bundle, nothing, slice_from_str("two")));
    data = bundle.bytes.data;
    assert_taken(&bundle, "one two");
    assert_ptr_equal(bundle.bytes.data, data);
    lane_bundle_finish(&bundle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_jobs_share_is_there_once),
        cmocka_unit_test(the_next_bundle_has_it_again),
        cmocka_unit_test(a_large_task_begins_a_bundle_and_leaves_room_for_its_jobs),
        cmocka_unit_test(a_large_bundle_is_handed_over_and_a_small_one_is_copied),
    };
    return cmocka_run_group_tests_name("lane_bundle", tests, NULL, NULL);
}
