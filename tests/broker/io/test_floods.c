/* A client that asks for more than it reads, and those beside it. */
#include "tests/broker/io/io_world.h"

static void *floods; /* the client that does, or NULL */

enum { ASKED = 2000, FLOOD = 40000, ROLLOUTS = 20, SOON_MS = 60, GROUPS = 8, SAMPLES = 32, FETCH_WAIT_MS = 1000 };

static int tear_down(void **state)
{
    if (floods)
        zmq_close(floods);
    floods = NULL;
    return world_tear_down(state);
}

/* Another connection, of a client that takes in one answer and leaves all others where they are until it reads. */
static void *add_client(struct world *world)
{
    const int none = 0, one = 1;
    void *client = zmq_socket(world->context, ZMQ_DEALER);
    assert_non_null(client);
    zmq_setsockopt(client, ZMQ_LINGER, &none, sizeof(none));
    zmq_setsockopt(client, ZMQ_SNDHWM, &none, sizeof(none));
    zmq_setsockopt(client, ZMQ_RCVHWM, &one, sizeof(one));
    assert_int_equal(zmq_connect(client, world->front), 0);
    return floods = client;
}

static void ask_often(struct world *world, void *client, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const struct msg_status_get ask = {.tag = i};
        world_send(world, client, MSG_status_get, &ask);
    }
}

/* Until nothing comes for a while. */
static unsigned read_answers(void *client)
{
    enum { PATIENCE_MS = 2000 };
    unsigned count = 0;
    zmq_pollitem_t item = {client, 0, ZMQ_POLLIN, 0};
    zmq_msg_t answer;
    zmq_msg_init(&answer);
    while (count < ASKED && zmq_poll(&item, 1, PATIENCE_MS) > 0)
        while (zmq_msg_recv(&answer, client, ZMQ_DONTWAIT) >= 0)
            count++;
    zmq_msg_close(&answer);
    return count;
}

static void a_client_that_asks_many_times_before_it_reads_has_every_answer(void **state)
{
    struct world *world = *state;
    void *client = add_client(world);
    ask_often(world, client, ASKED);
    for (unsigned i = 0; i < ASKED; i++) { /* connections of a peer are served in turn: all was handled after these */
        struct msg_status_get ask = {.tag = i};
        struct msg_status status;
        world_ask(world, MSG_status_get, &ask, MSG_status, &status);
    }
    assert_int_equal(read_answers(client), ASKED);
}

/* Until its evaluation is handed out: what comes after that, an acknowledgement, may wait for company. */
static int64_t time_rollout_us(struct world *world, const char *name)
{
    const struct fake *last = &world->fakes[STAGE_EVAL];
    const uint64_t started = last->started;
    const int64_t begun_us = clock_us();
    submit(world, name, 1, false);
    world_until(world, last->started > started);
    return clock_us() - begun_us;
}

/* It waits for the ends of some eight cycles. Were each as long as a flood may make it, it would take 80 ms. */
static void a_rollout_is_soon_done_beside_a_client_that_floods(void **state)
{
    struct world *world = *state;
    void *client = add_client(world);
    int64_t least_us = INT64_MAX;
    ask_often(world, client, FLOOD);
    for (unsigned i = 0; i < ROLLOUTS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "beside-%u", i);
        const int64_t us = time_rollout_us(world, name);
        least_us = us < least_us ? us : least_us;
    }
    if (least_us >= SOON_MS * 1000)
        fail_msg("the quickest of %d rollouts took %lld us", ROLLOUTS, (long long)least_us);
}

/* How often the broker's first thread had nothing to do. */
static unsigned long count_sleeps(const struct world *world)
{
    char path[64], line[128];
    unsigned long count = 0;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)world->broker);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file))
        sscanf(line, "voluntary_ctxt_switches: %lu", &count);
    fclose(file);
    return count;
}

static void a_broker_that_is_flooded_sleeps_between_the_floods_parts(void **state)
{
    struct world *world = *state;
    ask_often(world, add_client(world), FLOOD);
    time_rollout_us(world, "first"); /* clients have their part of the time from its results on */
    const unsigned long before = count_sleeps(world);
    for (unsigned i = 0; i < ROLLOUTS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "beside-%u", i);
        time_rollout_us(world, name);
    }
    const unsigned long sleeps = count_sleeps(world) - before;
    if (sleeps < 2 * ROLLOUTS)
        fail_msg("it slept %lu times", sleeps);
}

static void fetch_often(struct world *world, void *client, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const struct msg_stream_fetch fetch = {
            .tag = i, .stream = S("train"), .from = 1, .has_limit = true, .limit = GROUPS * SAMPLES};
        world_send(world, client, MSG_stream_fetch, &fetch);
    }
}

static int64_t longest_wait_ms(struct world *world)
{
    int64_t longest_ms = 0;
    for (unsigned i = 0; i < ROLLOUTS; i++) {
        const int64_t asked_ms = clock_ms();
        const struct msg_status_get ask = {.tag = i};
        struct msg_status status;
        world_ask(world, MSG_status_get, &ask, MSG_status, &status);
        const int64_t ms = clock_ms() - asked_ms;
        longest_ms = ms > longest_ms ? ms : longest_ms;
    }
    return longest_ms;
}

static void do_group(struct world *world, unsigned number)
{
    const struct fake *last = &world->fakes[STAGE_EVAL];
    const uint64_t started = last->started;
    char name[16];
    snprintf(name, sizeof(name), "read-%u", number);
    submit(world, name, SAMPLES, false);
    world_until(world, last->started >= started + SAMPLES && last->held_count == 0);
}

/* Loaded as one batch, what is asked for here takes some seconds, and 800 MB. */
static void a_client_that_fetches_often_leaves_others_their_turns(void **state)
{
    struct world *world = *state;
    world->fakes[STAGE_RUN].record_bytes = 6000;
    for (unsigned i = 0; i < GROUPS; i++)
        do_group(world, i);
    fetch_often(world, add_client(world), ASKED);
    const int64_t wait_ms = longest_wait_ms(world);
    if (wait_ms >= FETCH_WAIT_MS)
        fail_msg("another client waited for %lld ms", (long long)wait_ms);
}

int main(int argc, char **argv)
{
    if (world_is_broker(argc, argv))
        return world_be_broker(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up_fakes, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_client_that_asks_many_times_before_it_reads_has_every_answer),
        TEST(a_rollout_is_soon_done_beside_a_client_that_floods),
        TEST(a_broker_that_is_flooded_sleeps_between_the_floods_parts),
        TEST(a_client_that_fetches_often_leaves_others_their_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
