/* The outbox over a real lane (ipc), with a SINK that reads when the test wants. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/net/bundle.h"
#include "schemas/messages/message.h"
#include "workers/service/outbox.h"

enum { BOUND_MS = 10000, BYTES_MAX = 1 << 20 };

static char directory[64];
static void *zmq, *sink;
static struct lane lane;
static struct outbox outbox;

static bool can_send_within_bound(void)
{
    zmq_pollitem_t item = {.socket = lane.push, .events = ZMQ_POLLOUT};
    return zmq_poll(&item, 1, BOUND_MS) == 1;
}

static int set_up(void **state)
{
    (void)state;
    char front[96], endpoint[96];
    int none = 0, one = 1;
    struct fail fail;
    snprintf(directory, sizeof(directory), "/tmp/sluice-test-XXXXXX");
    if (!mkdtemp(directory))
        return -1;
    snprintf(front, sizeof(front), "ipc://%s/front", directory);
    snprintf(endpoint, sizeof(endpoint), "ipc://%s/sink", directory);
    zmq = zmq_ctx_new();
    sink = zmq_socket(zmq, ZMQ_PULL);
    zmq_setsockopt(sink, ZMQ_LINGER, &none, sizeof(none));
    zmq_setsockopt(sink, ZMQ_RCVHWM, &one, sizeof(one)); /* a broker behind with its reading */
    const struct lane_plan plan = {.broker = front, .worker = "w"};
    if (zmq_bind(sink, endpoint) < 0 || lane_open(&lane, zmq, &plan, &fail) < 0)
        return -1;
    outbox_init(&outbox, BYTES_MAX);
    return can_send_within_bound() ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    lane_close(&lane, 0);
    zmq_close(sink);
    zmq_ctx_term(zmq);
    outbox_finish(&outbox); /* after ZeroMQ let go of the bytes: the sanitizer would see a leak */
    char path[96];
    snprintf(path, sizeof(path), "%s/sink", directory);
    unlink(path);
    return rmdir(directory); /* empty: the lane took its file along */
}

static void push(const char *job, uint64_t token, size_t len)
{
    struct buffer bytes = {0};
    assert_non_null(buffer_reserve(&bytes, len));
    memset(bytes.data, job[strlen(job) - 1], len);
    bytes.len = len;
    assert_true(outbox_push(&outbox, slice_from_str(job), token, &bytes));
    assert_null(bytes.data);
}

static bool has(const char *job) { return outbox_has(&outbox, slice_from_str(job)); }
static void forget(const char *job, uint64_t token) { outbox_forget(&outbox, slice_from_str(job), token); }

/* The first byte of each message of the next one that comes, which may be a bundle; "" when nothing came in time. */
static const char *receive_all(int bound_ms)
{
    static char firsts[BUNDLE_COUNT_MAX + 1];
    zmq_pollitem_t item = {.socket = sink, .events = ZMQ_POLLIN};
    size_t count = 0, at = 0;
    if (zmq_poll(&item, 1, bound_ms) != 1)
        return "";
    zmq_msg_t message;
    zmq_msg_init(&message);
    assert_true(zmq_msg_recv(&message, sink, 0) > 0);
    const struct slice bytes = slice_of(zmq_msg_data(&message), zmq_msg_size(&message));
    struct slice one;
    assert_true(!is_bundle(bytes) || bytes.len <= BUNDLE_BYTES_MAX + BUNDLED_MAX);
    if (!is_bundle(bytes))
        firsts[count++] = (char)bytes.data[0];
    while (is_bundle(bytes) && bundle_next(bytes, &at, &one) == 1)
        firsts[count++] = (char)one.data[0];
    zmq_msg_close(&message);
    firsts[count] = '\0';
    return firsts;
}

/* The first byte of what came; 0 when nothing came in time. */
static char receive(int bound_ms) { return *receive_all(bound_ms); }

/* Resends are skipped while ZeroMQ holds the bytes: asks until one comes. */
static char receive_again(int64_t now_ms)
{
    char got = 0;
    for (int64_t end = clock_ms() + BOUND_MS; !got && clock_ms() < end;) {
        outbox_resend_due(&outbox, now_ms);
        outbox_flush(&outbox, &lane, now_ms);
        got = receive(10);
    }
    return got;
}

static void what_is_pushed_is_sent_once_in_order_and_stays(void **state)
{
    (void)state;
    push("run:a", 1, 10);
    push("run:b", 2, 10);
    outbox_flush(&outbox, &lane, 0);
    outbox_flush(&outbox, &lane, 0);
    assert_int_equal(receive(BOUND_MS), 'a');
    assert_int_equal(receive(BOUND_MS), 'b');
    assert_int_equal(receive(100), 0);
    assert_int_equal(outbox.count, 2);
    assert_int_equal(outbox.bytes, 20);
}

static void an_acknowledgement_of_an_older_dispatch_forgets_nothing(void **state)
{
    (void)state;
    push("run:a", 5, 10);
    forget("run:a", 4);
    assert_true(has("run:a"));
    forget("run:b", 9);
    assert_true(has("run:a"));
    forget("run:a", 5);
    assert_false(has("run:a"));
    assert_int_equal(outbox.count, 0);
    assert_int_equal(outbox.bytes, 0);
}

static void a_second_result_of_a_job_takes_the_place_of_the_first(void **state)
{
    (void)state;
    push("run:a", 1, 10);
    push("run:a", 2, 7);
    assert_int_equal(outbox.count, 1);
    assert_int_equal(outbox.bytes, 7);
}

static void without_an_acknowledgement_it_is_sent_again_later_and_later(void **state)
{
    (void)state;
    push("run:a", 1, 10);
    outbox_flush(&outbox, &lane, 0);
    assert_int_equal(receive(BOUND_MS), 'a');
    outbox_resend_due(&outbox, 1999);
    outbox_flush(&outbox, &lane, 1999);
    assert_int_equal(receive(50), 0);
    assert_int_equal(receive_again(2000), 'a');
    outbox_resend_due(&outbox, 5999);
    outbox_flush(&outbox, &lane, 5999);
    assert_int_equal(receive(50), 0);
    assert_int_equal(receive_again(6000), 'a');
    assert_int_equal(outbox.count, 1);
}

static void what_is_asked_for_again_is_sent_at_once(void **state)
{
    (void)state;
    push("run:a", 1, 10);
    push("run:b", 1, 10);
    outbox_flush(&outbox, &lane, 0);
    assert_int_equal(receive(BOUND_MS), 'a');
    assert_int_equal(receive(BOUND_MS), 'b');
    char got = 0;
    for (int64_t end = clock_ms() + BOUND_MS; !got && clock_ms() < end; got = receive(10)) {
        outbox_resend(&outbox, slice_from_str("run:b"));
        outbox_flush(&outbox, &lane, 0);
    }
    assert_int_equal(got, 'b');
}

static void it_is_full_beyond_its_bytes_and_not_after_an_acknowledgement(void **state)
{
    (void)state;
    push("run:a", 1, BYTES_MAX);
    assert_false(outbox_is_full(&outbox));
    push("run:b", 1, 1);
    assert_true(outbox_is_full(&outbox));
    forget("run:b", 1);
    assert_false(outbox_is_full(&outbox));
}

static void a_result_larger_than_the_bound_is_kept_and_sent(void **state)
{
    (void)state;
    push("run:a", 1, 3 * BYTES_MAX);
    assert_true(outbox_is_full(&outbox));
    outbox_flush(&outbox, &lane, 0);
    assert_int_equal(receive(BOUND_MS), 'a');
    assert_int_equal(outbox.bytes, 3 * BYTES_MAX);
    forget("run:a", 1);
    assert_false(outbox_is_full(&outbox));
}

static void bind_sink(void)
{
    char endpoint[96];
    int none = 0;
    snprintf(endpoint, sizeof(endpoint), "ipc://%s/sink", directory);
    sink = zmq_socket(zmq, ZMQ_PULL);
    zmq_setsockopt(sink, ZMQ_LINGER, &none, sizeof(none));
    assert_int_equal(zmq_bind(sink, endpoint), 0);
}

static void wait_until_the_sink_is_gone(void)
{
    for (int64_t end = clock_ms() + BOUND_MS; lane_can_send(&lane);) {
        assert_true(clock_ms() < end);
        zmq_pollitem_t item = {.socket = lane.push, .events = ZMQ_POLLIN};
        zmq_poll(&item, 1, 10);
    }
}

static void a_broker_away_for_an_hour_costs_nothing_and_misses_nothing(void **state)
{
    (void)state;
    push("run:a", 1, 1000);
    push("run:b", 1, 1000);
    outbox_flush(&outbox, &lane, 0);
    assert_int_equal(receive(BOUND_MS), 'a');
    assert_int_equal(receive(BOUND_MS), 'b');
    zmq_close(sink);
    wait_until_the_sink_is_gone();
    for (int64_t now_ms = 0; now_ms < 3600000; now_ms += 1000) {
        outbox_resend_due(&outbox, now_ms);
        outbox_flush(&outbox, &lane, now_ms);
    }
    assert_int_equal(outbox.count, 2);
    assert_int_equal(outbox.bytes, 2000);
    bind_sink();
    assert_true(can_send_within_bound());
    outbox_flush(&outbox, &lane, 3600000);
    assert_int_equal(receive(BOUND_MS) + receive(BOUND_MS), 'a' + 'b');
    assert_int_equal(receive(200), 0); /* each once: none piled up meanwhile */
}

static void it_is_full_beyond_its_count(void **state)
{
    (void)state;
    for (int i = 0; i <= OUTBOX_COUNT_MAX; i++) {
        char job[32];
        assert_false(outbox_is_full(&outbox));
        snprintf(job, sizeof(job), "run:%d", i);
        push(job, 1, 1);
    }
    assert_true(outbox_is_full(&outbox));
}

/* The SINK does not read; what is due is asked for a thousand times. */
static void a_broker_that_does_not_read_is_not_sent_more_and_more(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        char job[] = {'r', 'u', 'n', ':', (char)('a' + i), '\0'};
        push(job, 1, 4 << 20);
    }
    for (int i = 0; i < 1000; i++) {
        outbox_flush(&outbox, &lane, i * 100000);
        outbox_resend_due(&outbox, i * 100000);
        outbox_resend_all(&outbox);
    }
    assert_int_equal(outbox.count, 8);
    int count = 0;
    while (receive(200))
        count++;
    assert_in_range(count, 8, 24);
}

static void what_it_holds_is_listed_sent_or_not(void **state)
{
    (void)state;
    push("run:a", 3, 10);
    outbox_flush(&outbox, &lane, 0);
    push("run:b", 4, 10);
    struct buffer packed = {0};
    assert_true(outbox_list_jobs(&outbox, &packed));
    struct jobs jobs = {buffer_peek(&packed), 2};
    struct job_ref ref;
    uint64_t sum = 0;
    for (size_t at = 0; jobs_next(&jobs, &at, &ref);)
        sum += ref.token;
    assert_int_equal(sum, 7);
    buffer_finish(&packed);
}

/* ---- bundles ---------------------------------------------------------------------------- */

static void small_ones_go_as_one_in_order_and_large_ones_alone(void **state)
{
    (void)state;
    lane.bundles = true;
    push("run:a", 1, 10);
    push("run:b", 1, 10);
    push("run:c", 1, BUNDLED_MAX + 1);
    push("run:d", 1, 10);
    outbox_flush(&outbox, &lane, 0);
    push("run:e", 1, 10);
    push("run:f", 1, BUNDLED_MAX);
    outbox_flush(&outbox, &lane, 0);
    static const char *const expected[] = {"ab", "c", "d", "ef", ""};
    for (int i = 0; i < 5; i++)
        assert_string_equal(receive_all(i < 4 ? BOUND_MS : 100), expected[i]);
    assert_int_equal(outbox.count, 6);
}

static void no_bundle_outgrows_its_bound(void **state)
{
    (void)state;
    lane.bundles = true;
    for (int i = 0; i < 100; i++) {
        char job[32];
        snprintf(job, sizeof(job), "run:%d%c", i, 'a' + i % 26);
        push(job, 1, BUNDLED_MAX);
    }
    outbox_flush(&outbox, &lane, 0);
    for (int heard = 0, bundles = 0; heard < 100; bundles++) {
        const char *firsts = receive_all(BOUND_MS);
        assert_true(*firsts);
        for (; *firsts; firsts++, heard++)
            assert_int_equal(*firsts, 'a' + heard % 26);
        assert_true(bundles < 10);
    }
}

static void of_a_bundle_each_is_forgotten_and_sent_again_by_itself(void **state)
{
    (void)state;
    lane.bundles = true;
    push("run:a", 1, 10);
    push("run:b", 1, 10);
    push("run:c", 1, 10);
    outbox_flush(&outbox, &lane, 0);
    assert_string_equal(receive_all(BOUND_MS), "abc");
    forget("run:b", 1);
    assert_int_equal(outbox.count, 2);
    outbox_resend_due(&outbox, 1999);
    outbox_flush(&outbox, &lane, 1999);
    assert_string_equal(receive_all(50), "");
    const char *again = "";
    for (int64_t end = clock_ms() + BOUND_MS; !*again && clock_ms() < end; again = receive_all(10)) {
        outbox_resend_due(&outbox, 2000);
        outbox_flush(&outbox, &lane, 2000);
    }
    assert_string_equal(again, "ac");
    forget("run:a", 1);
    forget("run:c", 1);
    assert_int_equal(outbox.bytes, 0);
}

/* The SINK does not read; what is due is asked for a thousand times. */
static void bundles_that_are_not_read_are_not_sent_more_and_more(void **state)
{
    enum { RESULTS = 200 }; /* more than the kernel takes */
    (void)state;
    lane.bundles = true;
    for (int i = 0; i < RESULTS; i++) {
        char job[32];
        snprintf(job, sizeof(job), "run:%d", i);
        push(job, 1, BUNDLED_MAX);
    }
    for (int i = 0; i < 1000; i++) {
        outbox_flush(&outbox, &lane, i * 100000);
        outbox_resend_all(&outbox);
    }
    assert_int_equal(outbox.count, RESULTS);
    size_t count = 0;
    for (const char *firsts; *(firsts = receive_all(200));)
        count += strlen(firsts);
    assert_in_range(count, RESULTS, 3 * RESULTS);
}

static void what_is_bundled_leaves_with_a_flush_and_before_what_goes_by_itself(void **state)
{
    (void)state;
    lane.bundles = true;
    assert_true(lane_send_copy(&lane, slice_from_str("x")));
    assert_true(lane_send_copy(&lane, slice_from_str("y")));
    assert_string_equal(receive_all(100), "");
    push("run:a", 1, 10);
    outbox_flush(&outbox, &lane, 0);
    assert_true(lane_send_copy(&lane, slice_from_str("z")));
    assert_true(lane_flush(&lane));
    assert_true(lane_flush(&lane));
    static const char *const expected[] = {"xy", "a", "z", ""};
    for (int i = 0; i < 4; i++)
        assert_string_equal(receive_all(i < 3 ? BOUND_MS : 100), expected[i]);
}

static void nothing_is_bundled_for_a_broker_that_is_away(void **state)
{
    (void)state;
    lane.bundles = true;
    assert_true(lane_send_copy(&lane, slice_from_str("x")));
    zmq_close(sink);
    wait_until_the_sink_is_gone();
    assert_false(lane_flush(&lane));
    assert_false(lane_send_copy(&lane, slice_from_str("y")));
    push("run:a", 1, 10);
    push("run:b", 1, 10);
    outbox_flush(&outbox, &lane, 0);
    bind_sink();
    assert_true(can_send_within_bound());
    outbox_flush(&outbox, &lane, 0);
    assert_string_equal(receive_all(BOUND_MS), "ab");
    assert_string_equal(receive_all(100), "");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(small_ones_go_as_one_in_order_and_large_ones_alone),
        TEST(no_bundle_outgrows_its_bound),
        TEST(of_a_bundle_each_is_forgotten_and_sent_again_by_itself),
        TEST(bundles_that_are_not_read_are_not_sent_more_and_more),
        TEST(what_is_bundled_leaves_with_a_flush_and_before_what_goes_by_itself),
        TEST(nothing_is_bundled_for_a_broker_that_is_away),
        TEST(what_is_pushed_is_sent_once_in_order_and_stays),
        TEST(an_acknowledgement_of_an_older_dispatch_forgets_nothing),
        TEST(a_second_result_of_a_job_takes_the_place_of_the_first),
        TEST(without_an_acknowledgement_it_is_sent_again_later_and_later),
        TEST(what_is_asked_for_again_is_sent_at_once),
        TEST(it_is_full_beyond_its_bytes_and_not_after_an_acknowledgement),
        TEST(a_result_larger_than_the_bound_is_kept_and_sent),
        TEST(a_broker_away_for_an_hour_costs_nothing_and_misses_nothing),
        TEST(it_is_full_beyond_its_count),
        TEST(a_broker_that_does_not_read_is_not_sent_more_and_more),
        TEST(what_it_holds_is_listed_sent_or_not),
    };
    return cmocka_run_group_tests_name("outbox", tests, NULL, NULL);
}
