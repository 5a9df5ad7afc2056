/* Bundles from workers, over a real broker's SINK: taken where they are announced, refused by part, and bounded. */
#include "tests/broker/io/io_world.h"

/* A worker that is a socket only. */
struct sender {
    void *push;
    struct buffer bundle;
};

static struct sender sender_open(struct world *world)
{
    return (struct sender){.push = world_socket(world, ZMQ_PUSH, world->sink, false)};
}

static void sender_close(struct sender *sender)
{
    zmq_close(sender->push);
    buffer_finish(&sender->bundle);
}

static void add(struct sender *sender, enum message_id id, const void *message)
{
    struct refusal no;
    AUTO_BUFFER bytes = {0};
    if (!message_encode(id, message, &bytes, &no))
        fail_msg("%s", no.text);
    assert_true(bundle_add(&sender->bundle, buffer_peek(&bytes)));
}

/* Of a worker that the broker can only hear: its lane leads nowhere. */
static void add_beat(struct sender *sender, const char *id)
{
    const struct msg_worker_beat beat = {.worker = S(id),
                                         .stage = S("init"),
                                         .slots = 8,
                                         .lane = S("ipc:///nowhere/lane-x"),
                                         .host = S("here"),
                                         .progress = 1};
    add(sender, MSG_worker_beat, &beat);
}

static void send_cut(struct sender *sender, size_t off)
{
    assert_true(zmq_send(sender->push, sender->bundle.data, sender->bundle.len - off, 0) >= 0);
    buffer_clear(&sender->bundle);
}

static struct slice ask_status(struct world *world)
{
    struct msg_status_get get = {.tag = 1};
    struct msg_status status;
    world_ask(world, MSG_status_get, &get, MSG_status, &status);
    return status.json;
}

static bool status_says(struct world *world, const char *words)
{
    struct slice json = ask_status(world);
    return memmem(json.data, json.len, words, strlen(words)) != NULL;
}

static void add_fakes(struct world *world, bool bundles)
{
    for (int stage = 0; stage < STAGE_COUNT; stage++) {
        struct fake *fake = fake_add(world, (enum stage)stage);
        fake->bundles = bundles;
        fake->shares_tasks = false;
    }
}

static uint64_t ended_of(struct world *world)
{
    struct msg_stream_fetch fetch = {.tag = ++world->tag, .stream = S("train"), .from = 1u << 30};
    struct msg_stream_head head;
    world_ask(world, MSG_stream_fetch, &fetch, MSG_stream_head, &head);
    return head.head;
}

static unsigned bundled_of(const struct world *world)
{
    unsigned bundled = 0;
    for (size_t i = 0; i < world->fake_count; i++)
        bundled += world->fakes[i].bundled;
    return bundled;
}

static size_t held_of(const struct world *world)
{
    size_t held = 0;
    for (size_t i = 0; i < world->fake_count; i++)
        held += world->fakes[i].held_count;
    return held;
}

static void results_that_come_as_one_end_their_rollouts_and_are_acknowledged_each(void **state)
{
    struct world *world = *state;
    add_fakes(world, true);
    submit(world, "many", 20, false);
    world_until(world, ended_of(world) == 20);
    assert_int_equal(bundled_of(world), 41);
    world_until(world, held_of(world) == 0);
    assert_false(status_says(world, "could not be read"));
}

static void a_worker_of_an_earlier_release_is_told_nothing_of_bundles(void **state)
{
    struct world *world = *state;
    add_fakes(world, false);
    submit(world, "old", 20, false);
    world_until(world, ended_of(world) == 20 && held_of(world) == 0);
    assert_int_equal(bundled_of(world), 0);
    for (size_t i = 0; i < world->fake_count; i++)
        assert_false(world->fakes[i].may_bundle);
}

/* Of all workers of runs and of evaluations. */
static void sum_shared(const struct world *world, unsigned *ret_tasks, unsigned *ret_shared)
{
    *ret_tasks = *ret_shared = 0;
    for (size_t i = 0; i < world->fake_count; i++) {
        *ret_tasks += world->fakes[i].tasks;
        *ret_shared += world->fakes[i].shared;
    }
}

static void add_sharing_fakes(struct world *world)
{
    add_fakes(world, true);
    for (size_t i = 0; i < world->fake_count; i++)
        world->fakes[i].shares_tasks = true;
}

/* Eight slots: the first eight jobs of it are handed out at once, and have one task. */
static void jobs_of_a_group_that_leave_together_have_one_task(void **state)
{
    struct world *world = *state;
    unsigned tasks, shared;
    add_sharing_fakes(world);
    submit(world, "shared", 20, false);
    world_until(world, ended_of(world) == 20 && held_of(world) == 0);
    sum_shared(world, &tasks, &shared);
    assert_true(shared >= 8 && tasks >= 1 && tasks <= shared - 7);
}

static void jobs_of_groups_of_one_have_their_own_tasks(void **state)
{
    struct world *world = *state;
    unsigned tasks, shared;
    add_sharing_fakes(world);
    for (int i = 0; i < 8; i++) {
        char group[16];
        snprintf(group, sizeof(group), "single-%d", i);
        submit(world, group, 1, false);
    }
    world_until(world, ended_of(world) == 8 && held_of(world) == 0);
    sum_shared(world, &tasks, &shared);
    assert_int_equal(tasks, 0);
    assert_int_equal(shared, 0);
}

/* A worker that takes bundles and does not say that it takes job.task: fake_hear_task fails if it gets one. */
static void a_worker_that_says_nothing_of_sharing_gets_whole_jobs(void **state)
{
    struct world *world = *state;
    unsigned tasks, shared;
    add_fakes(world, true);
    submit(world, "whole", 20, false);
    world_until(world, ended_of(world) == 20 && held_of(world) == 0);
    sum_shared(world, &tasks, &shared);
    assert_int_equal(shared, 0);
}

static void bundles_of_several_kinds_are_read_in_their_order(void **state)
{
    struct world *world = *state;
    struct sender sender = sender_open(world);
    const struct msg_engine_load load = {.worker = S("second"), .url = S("http://127.0.0.1:1"), .runs = 1};
    const struct msg_rollout_live live = {
        .worker = S("first"), .job = S("run:g/0"), .token = 1, .number = 1, .count = 1, .events = S("[]")};
    add_beat(&sender, "first");
    add(&sender, MSG_rollout_live, &live);
    add_beat(&sender, "second");
    add(&sender, MSG_engine_load, &load);
    send_cut(&sender, 0);
    world_until(world, status_says(world, "\"first\"") && status_says(world, "\"second\""));
    assert_false(status_says(world, "could not be read"));
    sender_close(&sender);
}

static void what_is_wrong_in_a_bundle_is_refused_and_the_rest_is_not(void **state)
{
    struct world *world = *state;
    struct sender sender = sender_open(world);
    const struct msg_status_get request = {.tag = 1};
    add_beat(&sender, "before");
    add(&sender, MSG_status_get, &request);
    assert_true(bundle_add(&sender.bundle, S("\xabworker.beat\x81\xa3new\x01")));
    add_beat(&sender, "behind");
    add_beat(&sender, "cut");
    send_cut(&sender, 1);
    world_until(world, status_says(world, "3 messages of workers could not be read"));
    assert_true(status_says(world, "the end of a bundle of") && status_says(world, "is cut short"));
    assert_true(status_says(world, "\"before\"") && status_says(world, "\"behind\""));
    assert_false(status_says(world, "\"cut\""));
    sender_close(&sender);
}

static void a_clients_bundle_is_no_message(void **state)
{
    struct world *world = *state;
    struct sender sender = {.push = world_socket(world, ZMQ_DEALER, world->front, false)};
    struct msg_refused refused;
    const struct msg_status_get request = {.tag = 1};
    add(&sender, MSG_status_get, &request);
    add(&sender, MSG_status_get, &request);
    assert_true(zmq_send(sender.push, sender.bundle.data, sender.bundle.len, 0) >= 0);
    zmq_msg_t answer;
    zmq_msg_init(&answer);
    world_until(world, zmq_msg_recv(&answer, sender.push, ZMQ_DONTWAIT) >= 0);
    assert_true(world_decode(&answer, MSG_refused, &refused));
    assert_true(slice_is(refused.reason, "malformed"));
    zmq_msg_close(&answer);
    sender_close(&sender);
}

/* Sends what the bundle holds once more, if there is room. */
static bool says_beat(struct world *world, const struct sender *sender, const char *words)
{
    zmq_send(sender->push, sender->bundle.data, sender->bundle.len, ZMQ_DONTWAIT);
    return status_says(world, words);
}

/* As many as may be sent, and a thousand more, over and over; the broker answers meanwhile. */
static void bundles_without_end_leave_the_broker_well(void **state)
{
    struct world *world = *state;
    struct sender sender = sender_open(world);
    for (int i = 0; i < BUNDLE_COUNT_MAX + 1000; i++)
        assert_true(bundle_add(&sender.bundle, S("")));
    for (int i = 0; i < 20; i++) {
        zmq_send(sender.push, sender.bundle.data, sender.bundle.len, ZMQ_DONTWAIT);
        assert_true(ask_status(world).len > 2);
    }
    buffer_clear(&sender.bundle);
    add_beat(&sender, "at last"); /* a beat is dropped where much of its peer waits, and said again */
    world_until(world, says_beat(world, &sender, "\"at last\""));
    sender_close(&sender);
}

int main(int argc, char **argv)
{
    if (world_is_broker(argc, argv))
        return world_be_broker(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(results_that_come_as_one_end_their_rollouts_and_are_acknowledged_each),
        TEST(a_worker_of_an_earlier_release_is_told_nothing_of_bundles),
        TEST(jobs_of_a_group_that_leave_together_have_one_task),
        TEST(jobs_of_groups_of_one_have_their_own_tasks),
        TEST(a_worker_that_says_nothing_of_sharing_gets_whole_jobs),
        TEST(bundles_of_several_kinds_are_read_in_their_order),
        TEST(what_is_wrong_in_a_bundle_is_refused_and_the_rest_is_not),
        TEST(a_clients_bundle_is_no_message),
        TEST(bundles_without_end_leave_the_broker_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
