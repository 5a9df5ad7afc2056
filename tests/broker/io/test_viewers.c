/* Who watches a rollout and does not read costs the broker no more than its bound, and other viewers nothing. */
#include "tests/broker/io/io_world.h"

#include <jansson.h>

enum { EVENTS_BYTES = 60000, BATCHES = 400, VIEWER_BYTES = 8 << 20 };

#ifdef __SANITIZE_ADDRESS__
static const bool is_sanitized = true;
#else
static const bool is_sanitized = false;
#endif
static char events[EVENTS_BYTES + 1];
static void *viewers[2];

/* A run that its worker holds, in hand of the second of two workers. */
static struct fake *hold_a_run(struct world *world)
{
    fake_add(world, STAGE_INIT);
    struct fake *run = fake_add(world, STAGE_RUN);
    run->allowance = 0;
    submit(world, "a", 1, false);
    world_until(world, run->held_count == 1);
    memset(events, ' ', EVENTS_BYTES);
    memcpy(events, "[{}]", 4);
    return run;
}

static int tear_down(void **state)
{
    for (int i = 0; i < 2; i++)
        if (viewers[i])
            zmq_close(viewers[i]);
    viewers[0] = viewers[1] = NULL;
    return world_tear_down(state);
}

/* One that takes no more into its queues than it must. */
static void *add_viewer(struct world *world, int at)
{
    const int none = 0, little = 1, bytes = 4096;
    void *viewer = viewers[at] = zmq_socket(world->context, ZMQ_DEALER);
    zmq_setsockopt(viewer, ZMQ_LINGER, &none, sizeof(none));
    zmq_setsockopt(viewer, ZMQ_RCVHWM, &little, sizeof(little));
    zmq_setsockopt(viewer, ZMQ_RCVBUF, &bytes, sizeof(bytes));
    assert_int_equal(zmq_connect(viewer, world->front), 0);
    return viewer;
}

static void watch(struct world *world, void *client)
{
    struct msg_rollout_watch message = {.tag = ++world->tag, .rollout = S("a/0"), .has_anew = true, .anew = true};
    world_send(world, client, MSG_rollout_watch, &message);
}

static void tell(struct world *world, struct fake *run, uint64_t number)
{
    struct msg_rollout_live live = {.worker = S(run->id),
                                    .job = S(run->held[0].job),
                                    .token = run->held[0].token,
                                    .number = number,
                                    .count = 1,
                                    .events = S(events)};
    struct refusal no;
    buffer_clear(&world->out);
    assert_true(message_encode(MSG_rollout_live, &live, &world->out, &no));
    zmq_send(run->push, world->out.data, world->out.len, 0);
}

/* Batches that have come; the number of the last in *ret_last. */
static unsigned read_batches(void *client, uint64_t *ret_last)
{
    unsigned count = 0;
    zmq_msg_t frame;
    struct msg_rollout_events in;
    zmq_msg_init(&frame);
    while (zmq_msg_recv(&frame, client, ZMQ_DONTWAIT) >= 0)
        if (world_decode(&frame, MSG_rollout_events, &in)) {
            assert_true(in.number > *ret_last);
            *ret_last = in.number;
            count++;
        }
    zmq_msg_close(&frame);
    return count;
}

/* One of the counters that the status has. */
static uint64_t counter(struct world *world, const char *name)
{
    struct msg_status_get get = {.tag = ++world->tag};
    struct msg_status status;
    json_error_t error;
    world_ask(world, MSG_status_get, &get, MSG_status, &status);
    json_t *read = json_loadb((const char *)status.json.data, status.json.len, 0, &error);
    const json_t *value = json_object_get(json_object_get(read, "counters"), name);
    assert_true(json_is_integer(value));
    const uint64_t count = (uint64_t)json_integer_value(value);
    json_decref(read);
    return count;
}

static uint64_t dropped(struct world *world) { return counter(world, "live_dropped"); }

static long resident_kib(pid_t pid)
{
    char path[64];
    long pages = 0;
    snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*d %ld", &pages), 1);
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void one_that_does_not_read_costs_its_bound_and_others_nothing(void **state)
{
    struct world *world = *state;
    struct fake *run = hold_a_run(world);
    void *reads = add_viewer(world, 0), *stands = add_viewer(world, 1);
    watch(world, reads);
    watch(world, stands);
    world_until(world, run->watches >= 1);
    uint64_t last = 0;
    unsigned count = 0;
    const long before_kib = resident_kib(world->broker);
    for (uint64_t number = 1; number <= BATCHES; number++) {
        tell(world, run, number);
        for (int i = 0; i < 1000 && last < number; i++) {
            world_step(world);
            count += read_batches(reads, &last);
        }
        assert_int_equal(last, number);
    }
    assert_int_equal(count, BATCHES);
    assert_in_range(dropped(world), BATCHES / 2, BATCHES);
    if (!is_sanitized) /* a sanitizer keeps what was freed */
        assert_true(resident_kib(world->broker) - before_kib < 3 * VIEWER_BYTES / 1024 + 16384);
    last = count = 0; /* and when it goes on, it has what was kept for it */
    world_until(world, (count += read_batches(stands, &last)) > 0);
    assert_in_range(count, 1, BATCHES / 2);
}

static void small_batches_are_counted_too(void **state)
{
    struct world *world = *state;
    struct fake *run = hold_a_run(world);
    void *stands = add_viewer(world, 0);
    watch(world, stands);
    world_until(world, run->watches >= 1);
    events[2000] = '\0';
    for (uint64_t number = 1; number <= 2000; number++) {
        tell(world, run, number);
        if (number % 100 == 0)
            dropped(world); /* what was told has been handled by then */
    }
    world_until(world, dropped(world) > 0);
}

static void who_has_gone_misses_nothing(void **state)
{
    struct world *world = *state;
    struct fake *run = hold_a_run(world);
    void *goes = add_viewer(world, 0);
    watch(world, goes);
    world_until(world, run->watches >= 1);
    zmq_close(goes);
    viewers[0] = NULL;
    for (uint64_t number = 1; number <= 5; number++) {
        tell(world, run, number);
        world_step(world);
    }
    world_until(world, counter(world, "live") == 5);
    assert_int_equal(dropped(world), 0);
}

int main(int argc, char **argv)
{
    if (world_is_broker(argc, argv))
        return world_be_broker(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(one_that_does_not_read_costs_its_bound_and_others_nothing),
        TEST(small_batches_are_counted_too),
        TEST(who_has_gone_misses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
