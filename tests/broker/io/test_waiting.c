/* Messages that wait for their turn, read of a real socket: alone, and taken out of bundles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "broker/io/waiting.h"
#include "broker/net/zmq_frame.h"
#include "common/base/cleanup.h"
#include "common/net/bundle.h"

static void *context, *push, *pull;

static int set_up(void **state)
{
    (void)state;
    context = zmq_ctx_new();
    push = zmq_socket(context, ZMQ_PUSH);
    pull = zmq_socket(context, ZMQ_PULL);
    return zmq_bind(pull, "inproc://sink") || zmq_connect(push, "inproc://sink");
}

static int tear_down(void **state)
{
    (void)state;
    zmq_close(push);
    zmq_close(pull);
    zmq_ctx_term(context);
    return 0;
}

static struct waiting *read_as(struct slice bytes, bool is_client)
{
    if (is_client)
        assert_true(zmq_send(push, "it", 2, ZMQ_SNDMORE) >= 0);
    assert_true(zmq_send(push, bytes.data, bytes.len, 0) >= 0);
    struct waiting *waiting = waiting_read(pull, is_client);
    assert_non_null(waiting);
    return waiting;
}

/* Its next turn, as turns_take gives it. False with the words of a refusal. */
static bool take(struct waiting *waiting, struct slice *ret, char words[1024])
{
    struct refusal no = {0};
    assert_true(waiting->turn.count > 0);
    waiting->turn.count--;
    bool is_good = waiting_next(waiting, zmq_frame_peek(&waiting->body), ret, &no);
    assert_true(is_good || no.reason == REFUSAL_MALFORMED);
    snprintf(words, 1024, "%s", no.text);
    return is_good;
}

static void expect(struct waiting *waiting, const char *text)
{
    char words[1024];
    struct slice message;
    if (!take(waiting, &message, words))
        fail_msg("refused: %s", words);
    assert_true(slice_is(message, text));
}

static void expect_refused(struct waiting *waiting, const char *why)
{
    char words[1024];
    struct slice message;
    assert_false(take(waiting, &message, words));
    assert_string_equal(words, why);
}

static void add(struct buffer *bundle, const char *text) { assert_true(bundle_add(bundle, slice_from_str(text))); }

static void what_is_alone_has_one_turn(void **state)
{
    (void)state;
    struct waiting *waiting = read_as(slice_from_str("alone"), false);
    assert_int_equal(waiting->turn.bytes, 5);
    expect(waiting, "alone");
    assert_int_equal(waiting->turn.count, 0);
    waiting_drop(waiting);
    assert_null(waiting_read(pull, false));
}

static void what_is_in_a_bundle_has_a_turn_each_in_order(void **state)
{
    (void)state;
    AUTO_BUFFER bundle = {0};
    add(&bundle, "one"), add(&bundle, "two"), add(&bundle, "three");
    struct waiting *waiting = read_as(buffer_peek(&bundle), false);
    assert_int_equal(waiting->turn.count, 3);
    assert_int_equal(waiting->turn.bytes, bundle.len);
    expect(waiting, "one"), expect(waiting, "two"), expect(waiting, "three");
    assert_int_equal(waiting->turn.count, 0);
    waiting_drop(waiting);
}

static void of_a_bundle_cut_anywhere_what_came_whole_is_taken_and_the_rest_refused_once(void **state)
{
    (void)state;
    static const char *const texts[] = {"first", "", "a third one"};
    AUTO_BUFFER bundle = {0};
    size_t ends[3];
    for (int i = 0; i < 3; i++) {
        add(&bundle, texts[i]);
        ends[i] = bundle.len;
    }
    for (size_t len = 1; len < bundle.len; len++) {
        char words[64];
        size_t whole = (len >= ends[0]) + (size_t)(len >= ends[1]);
        bool is_between = len == 1 || len == ends[0] || len == ends[1];
        struct waiting *waiting = read_as(slice_of(bundle.data, len), false);
        assert_int_equal(waiting->turn.count, whole + (!is_between || len == 1));
        for (size_t i = 0; i < whole; i++)
            expect(waiting, texts[i]);
        snprintf(words, sizeof(words), "the end of a bundle of %zu bytes is cut short", len);
        if (waiting->turn.count)
            expect_refused(waiting, len == 1 ? "a bundle holds no message" : words);
        assert_int_equal(waiting->turn.count, 0);
        waiting_drop(waiting);
    }
}

static void a_length_beyond_all_is_cut_short(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {BUNDLE_MARK, 0xff, 0xff, 0xff, 0xff, 'x'};
    struct waiting *waiting = read_as(slice_of(bytes, sizeof(bytes)), false);
    assert_int_equal(waiting->turn.count, 1);
    expect_refused(waiting, "the end of a bundle of 6 bytes is cut short");
    waiting_drop(waiting);
}

static void beyond_its_bound_a_bundle_is_refused_and_what_came_before_is_not(void **state)
{
    (void)state;
    AUTO_BUFFER bundle = {0};
    for (int i = 0; i < BUNDLE_COUNT_MAX; i++)
        add(&bundle, "x");
    struct waiting *full = read_as(buffer_peek(&bundle), false);
    assert_int_equal(full->turn.count, BUNDLE_COUNT_MAX);
    for (int i = 0; i < BUNDLE_COUNT_MAX; i++)
        expect(full, "x");
    waiting_drop(full);
    for (int i = 0; i < 1000; i++)
        add(&bundle, "y");
    struct waiting *over = read_as(buffer_peek(&bundle), false);
    assert_int_equal(over->turn.count, BUNDLE_COUNT_MAX + 1);
    for (int i = 0; i < BUNDLE_COUNT_MAX; i++)
        expect(over, "x");
    expect_refused(over, "a bundle holds more than 4096 messages");
    assert_int_equal(over->turn.count, 0);
    waiting_drop(over);
}

static void a_bundle_in_a_bundle_is_refused_and_what_follows_is_not(void **state)
{
    (void)state;
    AUTO_BUFFER inner = {0};
    AUTO_BUFFER bundle = {0};
    add(&inner, "one"), add(&inner, "two");
    add(&bundle, "before");
    assert_true(bundle_add(&bundle, buffer_peek(&inner)));
    add(&bundle, "behind");
    struct waiting *waiting = read_as(buffer_peek(&bundle), false);
    assert_int_equal(waiting->turn.count, 3);
    expect(waiting, "before");
    expect_refused(waiting, "a bundle holds another one");
    expect(waiting, "behind");
    waiting_drop(waiting);
}

static void a_clients_bundle_and_one_of_several_frames_are_not_taken_apart(void **state)
{
    (void)state;
    AUTO_BUFFER bundle = {0};
    add(&bundle, "one"), add(&bundle, "two");
    struct waiting *of_client = read_as(buffer_peek(&bundle), true);
    assert_false(of_client->is_bundle);
    assert_int_equal(of_client->turn.count, 1);
    waiting_drop(of_client);
    assert_true(zmq_send(push, bundle.data, bundle.len, ZMQ_SNDMORE) >= 0);
    struct waiting *of_two = read_as(slice_from_str("more"), false);
    assert_false(of_two->alone || of_two->is_bundle);
    waiting_drop(of_two);
}

static void add_named(struct buffer *bundle, const char *name)
{
    char bytes[64];
    int len = snprintf(bytes, sizeof(bytes), "%c%s%c", (char)(0xa0 + strlen(name)), name, (char)0x80);
    assert_true(bundle_add(bundle, slice_of(bytes, (size_t)len)));
}

static bool is_all(const struct buffer *bundle, enum message_id id)
{
    struct waiting *waiting = read_as(bundle_peek(bundle), false);
    bool is_it = waiting_is(waiting, id);
    waiting_drop(waiting);
    return is_it;
}

static void a_bundle_is_what_all_in_it_are(void **state)
{
    (void)state;
    AUTO_BUFFER bundle = {0};
    for (int i = 0; i < 3; i++) { /* the first goes as it is */
        add_named(&bundle, "rollout.live");
        assert_true(is_all(&bundle, MSG_rollout_live));
        assert_false(is_all(&bundle, MSG_worker_beat));
    }
    const size_t len = bundle.len;
    add_named(&bundle, "worker.beat");
    assert_false(is_all(&bundle, MSG_rollout_live));
    assert_false(is_all(&bundle, MSG_worker_beat));
    bundle.len = len + 2; /* what is cut short may have been anything */
    assert_false(is_all(&bundle, MSG_rollout_live));
    struct waiting *empty = read_as(slice_from_str("\xc1"), false);
    assert_false(waiting_is(empty, MSG_rollout_live));
    waiting_drop(empty);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_is_alone_has_one_turn),
        TEST(what_is_in_a_bundle_has_a_turn_each_in_order),
        TEST(of_a_bundle_cut_anywhere_what_came_whole_is_taken_and_the_rest_refused_once),
        TEST(a_length_beyond_all_is_cut_short),
        TEST(beyond_its_bound_a_bundle_is_refused_and_what_came_before_is_not),
        TEST(a_bundle_in_a_bundle_is_refused_and_what_follows_is_not),
        TEST(a_clients_bundle_and_one_of_several_frames_are_not_taken_apart),
        TEST(a_bundle_is_what_all_in_it_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
