/* The broker as its peers see it: a process with sockets, which may be killed. */
#include "tests/broker/io/io_world.h"

#include "broker/net/lanes.h"

/* ---- requests and refusals -------------------------------------------------------------------- */

static void a_submit_is_accepted_and_known_the_second_time(void **state)
{
    submit(*state, "a", 2, false);
    submit(*state, "a", 2, true);
}

static void an_accepted_group_is_known_after_a_kill(void **state)
{
    struct world *world = *state;
    submit(world, "a", 2, false);
    world_stop(world, SIGKILL);
    world_start(world);
    submit(world, "a", 2, true);
}

static void expect_refused(struct world *world, const char *reason, const char *field, uint64_t tag)
{
    struct msg_refused refused;
    world_expect(world, MSG_refused, &refused);
    assert_true(slice_is(refused.reason, reason));
    assert_true(slice_is(refused.field, field));
    assert_int_equal(refused.tag, tag);
    assert_true(refused.text.len > 0);
}

static void send_bytes(struct world *world, const void *bytes, size_t len)
{
    assert_int_equal(zmq_send(world->client, bytes, len, ZMQ_DONTWAIT), (int)len);
}

static void what_is_no_message_is_refused_as_malformed(void **state)
{
    struct world *world = *state;
    send_bytes(world, "hello", 5);
    expect_refused(world, "malformed", "", 0);
    send_bytes(world, "", 0);
    expect_refused(world, "malformed", "", 0);
}

static void a_message_of_another_name_is_refused_as_unknown(void **state)
{
    struct world *world = *state;
    send_bytes(world, "\xa9group.eat\x81\xa3tag\x05", 16);
    expect_refused(world, "unknown-message", "", 5);
}

static void a_workers_message_is_refused_on_front(void **state)
{
    struct world *world = *state;
    struct msg_lane_hello hello = {.epoch = 1};
    world_send(world, world->client, MSG_lane_hello, &hello);
    expect_refused(world, "unknown-message", "", 0);
}

static void a_field_out_of_bounds_is_refused_with_its_name_and_tag(void **state)
{
    struct world *world = *state;
    send_bytes(world, "\xaastatus.get\x82\xa3tag\xcd\x01\x02\xa1x\x01", 22);
    expect_refused(world, "unknown-field", "x", 258);
    send_bytes(world,
               "\xacstream.fetch\x83\xa3tag\x07\xa6stream\xa1s\xa4"
               "from\x00",
               35);
    expect_refused(world, "too-small", "from", 7);
}

static void a_task_too_large_is_refused_by_name(void **state)
{
    struct world *world = *state;
    struct msg_group_submit message = submit_of(world, "a", 1);
    AUTO_FREE char *large = malloc(1048577);
    memset(large, ' ', 1048577);
    message.task = slice_of(large, 1048576); /* encoded at its limit, then one byte more */
    struct refusal no;
    buffer_clear(&world->out);
    assert_true(message_encode(MSG_group_submit, &message, &world->out, &no));
    assert_true(buffer_append(&world->out, " ", 1));
    uint8_t *length = memmem(world->out.data, world->out.len, "\xdb\x00\x10\x00\x00", 5);
    assert_non_null(length);
    length[4] = 1;
    send_bytes(world, world->out.data, world->out.len);
    expect_refused(world, "too-large", "task", message.tag);
}

static void a_bad_task_is_refused_with_its_field(void **state)
{
    struct world *world = *state;
    struct msg_group_submit message = submit_of(world, "a", 1);
    message.task = S("{\"task\":\"add\",\"kind\":\"noop\",\"limits\":{\"run_s\":\"long\"}}");
    world_send(world, world->client, MSG_group_submit, &message);
    expect_refused(world, "bad-task", "task.limits.run_s", message.tag);
}

static void more_than_one_frame_is_refused(void **state)
{
    struct world *world = *state;
    struct msg_status_get get = {.tag = 3};
    assert_int_equal(zmq_send(world->client, "", 0, ZMQ_SNDMORE), 0); /* as a REQ does */
    world_send(world, world->client, MSG_status_get, &get);
    expect_refused(world, "malformed", "", 0);
}

static void garbage_from_workers_leaves_the_broker_well(void **state)
{
    struct world *world = *state;
    void *push = world_socket(world, ZMQ_PUSH, world->sink, false);
    char noise[4096];
    srandom(1);
    for (int i = 0; i < 2000; i++) {
        size_t len = (size_t)random() % sizeof(noise);
        for (size_t k = 0; k < len; k++)
            noise[k] = (char)random();
        zmq_send(push, noise, len, i % 7 ? 0 : ZMQ_SNDMORE);
    }
    zmq_send(push, "", 0, 0);
    struct msg_status_get get = {.tag = 3};
    struct msg_status status;
    world_ask(world, MSG_status_get, &get, MSG_status, &status);
    assert_true(status.json.len > 2 && status.json.data[0] == '{');
    zmq_close(push);
}

/* What a worker of a later version might say. */
static void status_says_that_a_worker_is_newer_and_what_to_upgrade_first(void **state)
{
    static const char newer[] = "\xabworker.beat\x81\xa3new\x01";
    static const char *const words[] = {"1 messages of workers could not be read", "worker.beat has no field 'new'",
                                        "upgrade the broker first"};
    struct world *world = *state;
    void *push = world_socket(world, ZMQ_PUSH, world->sink, false);
    assert_true(zmq_send(push, newer, sizeof(newer) - 1, 0) >= 0);
    for (size_t i = 0; i < sizeof(words) / sizeof(*words);) {
        struct msg_status_get get = {.tag = 1};
        struct msg_status status;
        world_ask(world, MSG_status_get, &get, MSG_status, &status); /* until it has been read */
        i += memmem(status.json.data, status.json.len, words[i], strlen(words[i])) != NULL;
    }
    zmq_close(push);
}

static void a_beat_with_an_endpoint_of_another_kind_opens_no_lane(void **state)
{
    struct world *world = *state;
    static const char *const endpoints[] = {"inproc://x",  "pgm://1.2.3.4:5",          "tcp://",
                                            "/etc/passwd", "tcp://127.0.0.1:notaport", "ipc://"};
    void *push = world_socket(world, ZMQ_PUSH, world->sink, false);
    for (size_t i = 0; i < sizeof(endpoints) / sizeof(*endpoints); i++) {
        char id[16];
        snprintf(id, sizeof(id), "w%zu", i);
        struct msg_worker_beat beat = {
            .worker = S(id), .stage = S("run"), .slots = 1, .lane = S(endpoints[i]), .host = S("h")};
        world_send(world, push, MSG_worker_beat, &beat);
    }
    struct fake *good = fake_add(world, STAGE_INIT); /* and a good one after them gets its lane */
    world_until(world, good->epoch == 1);
    zmq_close(push);
}

/* ---- rollouts --------------------------------------------------------------------------------- */

struct harvest {
    uint64_t next; /* number wanted */
    char seen[128][32];
};

static void check_trajectory(struct harvest *harvest, const struct msg_trajectory *got)
{
    assert_int_equal(got->seq, harvest->next);
    char name[32], record[64];
    snprintf(name, sizeof(name), "%.*s", SLICE_ARG(got->rollout));
    snprintf(record, sizeof(record), "record %s", name);
    assert_true(slice_is(got->record, record));
    assert_true(slice_is(got->outcome, "ok") && got->trainable && got->reward == 1.0);
    assert_true(slice_is(got->init_layer, "sha256:init"));
    for (uint64_t i = 1; i < harvest->next; i++)
        assert_string_not_equal(harvest->seen[i], name);
    strcpy(harvest->seen[harvest->next++], name);
}

/* One stream.fetch; false when nothing new was there. */
static bool fetch(struct world *world, struct harvest *harvest)
{
    struct msg_stream_fetch request = {.tag = ++world->tag, .stream = S("train"), .from = harvest->next};
    uint64_t before = harvest->next;
    world_send(world, world->client, MSG_stream_fetch, &request);
    for (;;) {
        struct msg_trajectory got;
        struct msg_stream_head head;
        world_until(world, world_take_answer(world));
        if (world_decode(&world->answer, MSG_stream_head, &head))
            return harvest->next > before;
        if (!world_decode(&world->answer, MSG_trajectory, &got))
            fail_msg("neither a trajectory nor a head");
        assert_int_equal(got.tag, request.tag);
        check_trajectory(harvest, &got);
    }
}

static void fetch_until(struct world *world, struct harvest *harvest, uint64_t count)
{
    int64_t until_ms = clock_ms() + WAIT_MS;
    while (harvest->next <= count) {
        if (!fetch(world, harvest))
            world_step(world);
        if (clock_ms() > until_ms)
            fail_msg("only %llu of %llu trajectories came", (unsigned long long)harvest->next - 1,
                     (unsigned long long)count);
    }
}

static void rollouts_end_once_each_though_the_broker_is_killed_twice(void **state)
{
    struct world *world = *state;
    struct harvest harvest = {.next = 1};
    fake_add(world, STAGE_INIT);
    fake_add(world, STAGE_RUN);
    struct fake *eval = fake_add(world, STAGE_EVAL);
    eval->allowance = 10; /* so that the kill comes in the middle */
    for (int i = 0; i < 20; i++) {
        char group[16];
        snprintf(group, sizeof(group), "g%d", i);
        submit(world, group, 3, false);
    }
    fetch_until(world, &harvest, 10);
    world_stop(world, SIGKILL);
    eval->allowance = 25;
    world_start(world);
    fetch_until(world, &harvest, 30);
    world_stop(world, SIGKILL);
    eval->allowance = UINT64_MAX;
    world_start(world);
    fetch_until(world, &harvest, 60);
    assert_int_equal(harvest.next, 61);
    assert_false(fetch(world, &harvest));
    world_until(world, eval->held_count == 0);
    assert_int_equal(eval->epoch, 3);
}

static void an_ended_rollout_is_published_under_its_streams_topic(void **state)
{
    struct world *world = *state;
    struct msg_trajectory got = {0};
    fakes_add(world);
    zmq_msg_t topic, body;
    zmq_msg_init(&topic);
    zmq_msg_init(&body);
    submit(world, "first", 1, false); /* its head tells that the subscription has arrived */
    world_until(world, zmq_msg_recv(&topic, world->subscriber, ZMQ_DONTWAIT) >= 0);
    assert_true(zmq_msg_recv(&body, world->subscriber, 0) >= 0);
    submit(world, "second", 1, false);
    while (!slice_is(got.rollout, "second/0")) {
        world_until(world, zmq_msg_recv(&topic, world->subscriber, ZMQ_DONTWAIT) >= 0);
        assert_true(zmq_msg_more(&topic) && zmq_msg_recv(&body, world->subscriber, 0) >= 0);
        assert_true(slice_is(slice_of(zmq_msg_data(&topic), zmq_msg_size(&topic)), "t/train/"));
        assert_false(zmq_msg_more(&body));
        world_decode(&body, MSG_trajectory, &got);
    }
    assert_false(got.has_tag);
    assert_true(slice_is(got.record, "record second/0"));
    zmq_msg_close(&topic);
    zmq_msg_close(&body);
}

static void a_rollout_is_fetched_by_name_until_it_is_acknowledged(void **state)
{
    struct world *world = *state;
    struct harvest harvest = {.next = 1};
    fakes_add(world);
    submit(world, "a", 1, false);
    fetch_until(world, &harvest, 1);
    struct msg_rollout_get get = {.tag = 77, .rollout = S("a/0")};
    struct msg_trajectory got;
    world_ask(world, MSG_rollout_get, &get, MSG_trajectory, &got);
    assert_true(slice_is(got.record, "record a/0") && got.has_tag && got.tag == 77);
    struct msg_stream_ack ack = {.tag = 78, .stream = S("train"), .seq = 1};
    struct msg_done done;
    world_ask(world, MSG_stream_ack, &ack, MSG_done, &done);
    world_send(world, world->client, MSG_rollout_get, &get);
    expect_refused(world, "forgotten", "rollout", 77);
    world_stop(world, SIGKILL);
    world_start(world);
    world_send(world, world->client, MSG_rollout_get, &get);
    struct msg_refused refused;
    world_expect(world, MSG_refused, &refused);
    submit(world, "a", 1, true); /* what is forgotten is still known */
}

/* Beats may stay away for a minute in this world, and a lane's patience is ten seconds. */
static void a_worker_whose_lane_breaks_loses_its_jobs_at_once(void **state)
{
    struct world *world = *state;
    struct harvest harvest = {.next = 1};
    fake_add(world, STAGE_INIT);
    fake_add(world, STAGE_EVAL);
    struct fake *first = fake_add(world, STAGE_RUN);
    first->allowance = 0;
    submit(world, "a", 2, false);
    world_until(world, first->held_count == 2);
    first->silent = true;
    fake_add(world, STAGE_RUN);
    zmq_close(first->pull);
    first->pull = NULL;
    int64_t broke_ms = clock_ms();
    fetch_until(world, &harvest, 2);
    assert_true(clock_ms() - broke_ms < LANE_PATIENCE_MS / 2);
}

int main(int argc, char **argv)
{
    if (world_is_broker(argc, argv))
        return world_be_broker(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_submit_is_accepted_and_known_the_second_time),
        TEST(an_accepted_group_is_known_after_a_kill),
        TEST(what_is_no_message_is_refused_as_malformed),
        TEST(a_message_of_another_name_is_refused_as_unknown),
        TEST(a_workers_message_is_refused_on_front),
        TEST(a_field_out_of_bounds_is_refused_with_its_name_and_tag),
        TEST(a_task_too_large_is_refused_by_name),
        TEST(a_bad_task_is_refused_with_its_field),
        TEST(more_than_one_frame_is_refused),
        TEST(garbage_from_workers_leaves_the_broker_well),
        TEST(status_says_that_a_worker_is_newer_and_what_to_upgrade_first),
        TEST(a_beat_with_an_endpoint_of_another_kind_opens_no_lane),
        TEST(rollouts_end_once_each_though_the_broker_is_killed_twice),
        TEST(an_ended_rollout_is_published_under_its_streams_topic),
        TEST(a_rollout_is_fetched_by_name_until_it_is_acknowledged),
        TEST(a_worker_whose_lane_breaks_loses_its_jobs_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
