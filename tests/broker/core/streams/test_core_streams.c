/* Numbers, heads, fetch and acknowledgements of streams. */
#include "tests/broker/core/core_world.h"

static void world_fetch(struct world *world, const char *stream, uint64_t from, uint64_t limit)
{
    struct msg_stream_fetch in = {
        .tag = 8, .stream = TEXT(stream), .from = from, .limit = limit, .has_limit = limit > 0};
    world_say(world, "trainer", MSG_stream_fetch, &in);
}

/* Ends n rollouts of a stream, as numbers 1 to n. */
static void end_some(struct world *world, const char *group, const char *stream, uint64_t n)
{
    world_submit_task(world, group, stream, n, "{}");
    world_cancel(world, NULL, group, NULL);
    assert_int_equal(seen_count(world, PERSIST_END), n);
}

static void each_stream_has_numbers_of_its_own_without_gaps(void **state)
{
    (void)state;
    struct world *world = world_open();
    end_some(world, "a", "train", 3);
    end_some(world, "b", "test", 2);
    assert_int_equal(seen_nth(world, PERSIST_END, 1)->end.seq, 2);
    end_some(world, "c", "train", 2);
    assert_int_equal(seen_nth(world, PERSIST_END, 0)->end.seq, 4);
    assert_int_equal(seen_nth(world, PERSIST_END, 1)->end.seq, 5);
    world_close(world);
}

static void fetch_asks_for_a_range_and_ends_with_the_head(void **state)
{
    (void)state;
    struct world *world = world_open();
    end_some(world, "a", "train", 3);
    world_submit(world, "b", 5);
    world_fetch(world, "train", 2, 0);
    const struct seen *range = expect(world, SEND_RANGE);
    assert_string_equal(range->client, "trainer");
    assert_string_equal(range->stream, "train");
    assert_int_equal(range->seq, 2);
    assert_int_equal(range->limit, 2); /* no more than the head says that there are */
    assert_int_equal(range->message, MSG_stream_head);
    assert_int_equal(range->tag, 8);
    assert_int_equal(range->first, 1);
    assert_int_equal(range->head, 3);
    assert_int_equal(range->pending, 5);
    world_fetch(world, "train", 4, 0);
    assert_int_equal(expect(world, SEND_RANGE)->limit, 0);
    end_some(world, "c", "train", 300);
    world_fetch(world, "train", 2, 0);
    assert_int_equal(expect(world, SEND_RANGE)->limit, 16);
    world_fetch(world, "train", 2, 200);
    assert_int_equal(expect(world, SEND_RANGE)->limit, 200);
    world_fetch(world, "train", 302, 200);
    assert_int_equal(expect(world, SEND_RANGE)->limit, 2);
    world_close(world);
}

static void a_stream_that_nobody_knows_is_an_empty_one(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_fetch(world, "nothing", 1, 0);
    const struct seen *range = expect(world, SEND_RANGE);
    assert_int_equal(range->first, 1);
    assert_int_equal(range->head, 0);
    assert_int_equal(range->pending, 0);
    world_ack(world, "nothing", 1);
    expect_refused(world, REFUSAL_UNKNOWN_STREAM);
    world_close(world);
}

static void what_was_acknowledged_is_forgotten(void **state)
{
    (void)state;
    struct world *world = world_open();
    end_some(world, "a", "train", 4);
    world_ack(world, "train", 3);
    assert_int_equal(expect(world, PERSIST_ACK)->seq, 3);
    assert_string_equal(expect(world, PERSIST_ACK)->stream, "train");
    assert_int_equal(expect_answer(world, MSG_done)->count, 3);
    world_ack(world, "train", 2);
    assert_int_equal(seen_count(world, PERSIST_ACK), 0);
    assert_int_equal(expect_answer(world, MSG_done)->count, 0);
    world_fetch(world, "train", 3, 0);
    assert_non_null(strstr(expect_refused(world, REFUSAL_FORGOTTEN)->text, "oldest is 4"));
    world_fetch(world, "train", 4, 0);
    assert_int_equal(expect(world, SEND_RANGE)->first, 4);
    world_ack(world, "train", 4);
    world_fetch(world, "train", 5, 0);
    assert_int_equal(expect(world, SEND_RANGE)->first, 5);
    assert_int_equal(expect(world, SEND_RANGE)->head, 4);
    world_close(world);
}

static void what_has_not_ended_cannot_be_acknowledged(void **state)
{
    (void)state;
    struct world *world = world_open();
    end_some(world, "a", "train", 2);
    world_ack(world, "train", 3);
    assert_string_equal(expect_refused(world, REFUSAL_TOO_LARGE)->field, "seq");
    world_close(world);
}

static void heads_are_published_while_something_is_new_or_pending(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_submit_task(world, "a", "busy", 1, "{}");
    end_some(world, "b", "ended", 2);
    world_wait(world, 1000);
    assert_int_equal(seen_count(world, PUBLISH_HEAD), 2);
    world_wait(world, 999);
    assert_int_equal(seen_count(world, PUBLISH_HEAD), 0);
    assert_int_equal(world->due_ms, world->now_ms + 1);
    world_wait(world, 1);
    assert_int_equal(seen_count(world, PUBLISH_HEAD), 1); /* the one that is not done */
    assert_string_equal(expect(world, PUBLISH_HEAD)->stream, "busy");
    assert_int_equal(expect(world, PUBLISH_HEAD)->pending, 1);
    assert_int_equal(expect(world, PUBLISH_HEAD)->tag, 0);
    for (unsigned i = 3; i < 10; i++)
        world_wait(world, 1000);
    world_wait(world, 1000); /* the tenth: all of them */
    assert_int_equal(seen_count(world, PUBLISH_HEAD), 2);
    world_close(world);
}

static void streams_are_bounded(void **state)
{
    (void)state;
    struct world *world = world_create();
    world_start(world);
    char name[32];
    for (unsigned i = 0; i < 65536; i++) {
        snprintf(name, sizeof(name), "stream-%u", i);
        assert_true(core_restore_stream(world->core, TEXT(name), slice_of(NULL, 0), 1, 0));
    }
    world_submit_task(world, "g", "one-more", 1, "{}");
    assert_string_equal(expect_refused(world, REFUSAL_QUEUE_FULL)->field, "stream");
    world_submit_task(world, "g", "stream-7", 1, "{}");
    expect_answer(world, MSG_group_accepted);
    world_close(world);
}

/* Within a cycle: nothing is carried out before the next say or settle of the world. */
static void say_more(struct world *world, enum message_id id, const void *in)
{
    struct caller caller = {TEXT("trainer"), TEXT(NULL), true};
    core_handle(world->core, world->now_ms, WALL_MS, &caller, id, in, id == MSG_group_submit ? &world->task : NULL, 1);
}

/* "more" has ended groups 1 to n, and nobody has acknowledged them. */
static void restore_ended(struct world *world, unsigned n)
{
    for (unsigned i = 1; i <= n; i++) {
        char id[32], name[40];
        snprintf(id, sizeof(id), "old-%u", i);
        snprintf(name, sizeof(name), "%s/0", id);
        struct core_group_row group = {.group = TEXT(id), .stream = TEXT("more"), .samples = 1, .task = world->task};
        struct core_rollout_row row = {
            .rollout = TEXT(name), .group = TEXT(id), .ended = true, .stream = TEXT("more"), .seq = i};
        assert_true(core_restore_group(world->core, &group));
        assert_true(core_restore_rollout(world->core, &row));
    }
}

static void what_a_cycle_forgets_is_still_there_for_its_effects(void **state)
{
    (void)state;
    struct world *world = world_create();
    world_start(world);
    restore_ended(world, FORGOTTEN_MAX + 1);
    struct msg_group_submit submit = {
        .tag = 7, .group = TEXT("g"), .stream = TEXT("train"), .samples = 1, .task = TEXT("{}")};
    struct msg_rollout_cancel cancel = {.tag = 11, .group = TEXT("g"), .has_group = true};
    struct msg_stream_ack ack = {.tag = 9, .stream = TEXT("train"), .seq = 1};
    struct msg_stream_ack ack_more = {.tag = 9, .stream = TEXT("more"), .seq = FORGOTTEN_MAX + 1};
    say_more(world, MSG_group_submit, &submit);
    say_more(world, MSG_rollout_cancel, &cancel);
    say_more(world, MSG_stream_ack, &ack);
    say_more(world, MSG_stream_ack, &ack_more);
    world_settle(world);
    assert_string_equal(expect(world, PERSIST_GROUP)->group, "g");
    assert_string_equal(expect(world, PERSIST_END)->group, "g");
    world_get(world, "g/0"); /* by now so many others are, that it is not known */
    expect_refused(world, REFUSAL_UNKNOWN_ROLLOUT);
    world_get(world, "old-2/0");
    expect_refused(world, REFUSAL_FORGOTTEN);
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_stream_has_numbers_of_its_own_without_gaps),
        cmocka_unit_test(fetch_asks_for_a_range_and_ends_with_the_head),
        cmocka_unit_test(a_stream_that_nobody_knows_is_an_empty_one),
        cmocka_unit_test(what_was_acknowledged_is_forgotten),
        cmocka_unit_test(what_has_not_ended_cannot_be_acknowledged),
        cmocka_unit_test(heads_are_published_while_something_is_new_or_pending),
        cmocka_unit_test(streams_are_bounded),
        cmocka_unit_test(what_a_cycle_forgets_is_still_there_for_its_effects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
