/* One peer's flood and the others' turns: of submits, of beats, of fetches. */
#include "tests/broker/io/io_world.h"

#include <pthread.h>
#include <stdatomic.h>

#include "schemas/task/task.h"

/* 0.1 s, and as much again for what else the machine does; with sanitizers all takes some ten times as long. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { TURN_BOUND_MS = 1500 };
#else
enum { TURN_BOUND_MS = 200 };
#endif

enum { ASKS = 21 };

struct flood {
    struct world *world;
    enum message_id id;
    atomic_bool has_ended;
    atomic_ullong sent;
    pthread_t thread;
};

/* As dense as a task may be: it costs as much to read as any. */
static char *dense_task(void)
{
    static const char head[] = "{\"task\":\"a\",\"kind\":\"noop\",\"metadata\":{\"x\":[[]", tail[] = "]}}";
    size_t len = sizeof(head) - 1;
    char *task = malloc(sizeof(head) + sizeof(tail) + (size_t)TASK_VALUES_MAX * 4);
    assert_non_null(task);
    memcpy(task, head, len);
    for (int i = 0; i < TASK_VALUES_MAX - 16; i++, len += 3)
        memcpy(task + len, ",[]", 3);
    memcpy(task + len, tail, sizeof(tail));
    return task;
}

static void make_submit(struct buffer *out, uint64_t number)
{
    struct refusal no;
    char *task = dense_task(), group[32];
    snprintf(group, sizeof(group), "flood-%llu", (unsigned long long)number);
    struct msg_group_submit submit = {
        .tag = number, .group = S(group), .stream = S("flood"), .samples = 1, .task = S(task)};
    if (!message_encode(MSG_group_submit, &submit, out, &no))
        fail_msg("%s", no.text);
    free(task);
}

static void make_fetch(struct buffer *out)
{
    struct refusal no;
    struct msg_stream_fetch fetch = {.tag = 1, .stream = S("train"), .from = 1, .limit = 256, .has_limit = true};
    assert_true(message_encode(MSG_stream_fetch, &fetch, out, &no));
}

/* A beat that lists as many jobs as it may. */
static void make_beat(struct buffer *out)
{
    AUTO_BUFFER packed = {0};
    struct refusal no;
    for (unsigned i = 0; i < 65536; i++) {
        char job[32];
        snprintf(job, sizeof(job), "run:flood-%u/0", i);
        assert_true(jobs_append(&packed, S(job), i + 1));
    }
    struct msg_worker_beat beat = {.worker = S("flood"),
                                   .stage = S("run"),
                                   .slots = 1,
                                   .lane = S("tcp://127.0.0.1:9"),
                                   .host = S("h"),
                                   .progress = (uint64_t)clock_ms(),
                                   .jobs = {buffer_peek(&packed), 65536}};
    if (!message_encode(MSG_worker_beat, &beat, out, &no))
        fail_msg("%s", no.text);
}

/* One that holds little back: what was sent is with the broker. */
static void *new_socket(struct flood *flood, bool is_beat)
{
    void *socket = zmq_socket(flood->world->context, is_beat ? ZMQ_PUSH : ZMQ_DEALER);
    int none = 0, few = 4;
    zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof(none));
    zmq_setsockopt(socket, ZMQ_SNDHWM, &few, sizeof(few));
    assert_int_equal(zmq_connect(socket, is_beat ? flood->world->sink : flood->world->front), 0);
    return socket;
}

/* Sends as fast as the broker takes it, and reads every answer. */
static void *run(void *arg)
{
    struct flood *flood = arg;
    AUTO_BUFFER message = {0};
    bool is_beat = flood->id == MSG_worker_beat;
    void *socket = new_socket(flood, is_beat);
    if (is_beat)
        make_beat(&message);
    else if (flood->id == MSG_stream_fetch)
        make_fetch(&message);
    while (!atomic_load(&flood->has_ended)) {
        zmq_pollitem_t item = {socket, 0, ZMQ_POLLIN | ZMQ_POLLOUT, 0};
        zmq_poll(&item, 1, 10);
        zmq_msg_t answer;
        for (zmq_msg_init(&answer); !is_beat && zmq_msg_recv(&answer, socket, ZMQ_DONTWAIT) >= 0;)
            ;
        zmq_msg_close(&answer);
        if (!(item.revents & ZMQ_POLLOUT))
            continue;
        if (flood->id == MSG_group_submit) {
            buffer_clear(&message);
            make_submit(&message, atomic_load(&flood->sent));
        }
        if (zmq_send(socket, message.data, message.len, ZMQ_DONTWAIT) >= 0)
            atomic_fetch_add(&flood->sent, 1);
    }
    zmq_close(socket);
    return NULL;
}

static int compare(const void *a, const void *b)
{
    int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;
    return (one > other) - (one < other);
}

/* What the broker's threads have computed. */
static int64_t broker_cpu_ms(const struct world *world)
{
    clockid_t clock;
    struct timespec spent;
    assert_int_equal(clock_getcpuclockid(world->broker, &clock), 0);
    assert_int_equal(clock_gettime(clock, &spent), 0);
    return (int64_t)spent.tv_sec * 1000 + spent.tv_nsec / 1000000;
}

/* The median of what another client waits for its answers meanwhile; no more of it than the broker computed: for the
 * rest the machine was busy. */
static int64_t wait_of_another(struct world *world)
{
    int64_t waits_ms[ASKS];
    for (int i = 0; i < ASKS; i++) {
        int64_t asked_ms = clock_ms(), spent_ms = broker_cpu_ms(world);
        struct msg_status_get get = {.tag = ++world->tag};
        struct msg_status status;
        world_ask(world, MSG_status_get, &get, MSG_status, &status);
        waits_ms[i] = clock_ms() - asked_ms;
        spent_ms = broker_cpu_ms(world) - spent_ms;
        if (waits_ms[i] > spent_ms)
            waits_ms[i] = spent_ms;
    }
    qsort(waits_ms, ASKS, sizeof(*waits_ms), compare);
    return waits_ms[ASKS / 2];
}

static void others_are_served_in_a_flood_of(struct world *world, enum message_id id)
{
    struct flood flood = {.world = world, .id = id};
    assert_int_equal(pthread_create(&flood.thread, NULL, run, &flood), 0);
    world_until(world, atomic_load(&flood.sent) >= 40);
    int64_t wait_ms = wait_of_another(world);
    uint64_t sent = atomic_load(&flood.sent);
    world_until(world, atomic_load(&flood.sent) > sent); /* it goes on, and is served, too */
    atomic_store(&flood.has_ended, true);
    pthread_join(flood.thread, NULL);
    print_message("%s: %lld ms\n", message_get(id)->wire, (long long)wait_ms);
    assert_true(wait_ms < TURN_BOUND_MS);
}

static void a_flood_of_submits_leaves_others_their_turns(void **state)
{
    others_are_served_in_a_flood_of(*state, MSG_group_submit);
}

static void a_flood_of_beats_leaves_others_their_turns(void **state)
{
    others_are_served_in_a_flood_of(*state, MSG_worker_beat);
}

static void a_flood_of_fetches_leaves_others_their_turns(void **state)
{
    struct world *world = *state;
    fake_add(world, STAGE_INIT);
    fake_add(world, STAGE_EVAL);
    fake_add(world, STAGE_RUN)->record_bytes = 64 << 10;
    submit(world, "a", 48, false);
    world_until(world, world->fakes[1].started == 48 && world->fakes[1].held_count == 0);
    others_are_served_in_a_flood_of(world, MSG_stream_fetch);
}

/* ---- more of a peer than may wait ---------------------------------------------------------------- */

enum { LINES = 8 };

struct line {
    void *socket;
    uint64_t sent, answered, accepted; /* the last one that was accepted */
};

/* Long, and slow to read: escapes. */
static char *slow_task(void)
{
    static const char head[] = "{\"task\":\"a\",\"kind\":\"noop\",\"metadata\":{\"x\":\"", tail[] = "\"}}";
    char *task = malloc(TASK_BYTES_MAX);
    assert_non_null(task);
    strcpy(task, head);
    size_t len = sizeof(head) - 1;
    for (; len + 2 + sizeof(tail) < TASK_BYTES_MAX; len += 2)
        memcpy(task + len, "\\n", 2);
    memcpy(task + len, tail, sizeof(tail));
    return task;
}

static void send_one(struct world *world, struct line *line, const char *task)
{
    char group[64];
    snprintf(group, sizeof(group), "g-%p-%llu", line->socket, (unsigned long long)line->sent + 1);
    struct msg_group_submit submit = {
        .tag = line->sent + 1, .group = S(group), .stream = S("flood"), .samples = 1, .task = S(task)};
    struct refusal no;
    buffer_clear(&world->out);
    assert_true(message_encode(MSG_group_submit, &submit, &world->out, &no));
    if (zmq_send(line->socket, world->out.data, world->out.len, ZMQ_DONTWAIT) >= 0)
        line->sent++;
}

/* How many were refused; those that were accepted must come in the order they were sent. */
static size_t read_answers(struct line *line)
{
    size_t refusals = 0;
    zmq_msg_t frame;
    for (zmq_msg_init(&frame); zmq_msg_recv(&frame, line->socket, ZMQ_DONTWAIT) >= 0; line->answered++) {
        struct msg_group_accepted accepted;
        struct msg_refused refused;
        if (world_decode(&frame, MSG_group_accepted, &accepted)) {
            assert_true(accepted.tag > line->accepted);
            line->accepted = accepted.tag;
            continue;
        }
        assert_true(world_decode(&frame, MSG_refused, &refused));
        assert_true(slice_is(refused.reason, "queue-full") && refused.has_retry_after_ms);
        assert_true(slice_is(refused.request, "group.submit"));
        assert_true(refused.tag > 0 && refused.tag <= line->sent);
        refusals++;
    }
    zmq_msg_close(&frame);
    return refusals;
}

static void a_flood_of_many_connections_is_refused_by_name_and_each_message_is_answered(void **state)
{
    struct world *world = *state;
    struct line lines[LINES] = {0};
    AUTO_FREE char *task = slow_task();
    size_t refusals = 0, open = 0;
    for (int i = 0; i < LINES; i++)
        lines[i].socket = world_socket(world, ZMQ_DEALER, world->front, false);
    for (int64_t until_ms = clock_ms() + 4 * WAIT_MS; !refusals || open;) {
        zmq_pollitem_t items[LINES];
        for (int i = 0; i < LINES; i++)
            items[i] = (zmq_pollitem_t){lines[i].socket, 0, ZMQ_POLLIN, 0};
        zmq_poll(items, LINES, 10);
        assert_true(clock_ms() < until_ms);
        open = 0;
        for (int i = 0; i < LINES; i++) {
            refusals += read_answers(&lines[i]);
            if (!refusals && lines[i].sent < lines[i].answered + 12)
                send_one(world, &lines[i], task);
            open += lines[i].sent != lines[i].answered;
        }
    }
    for (int i = 0; i < LINES; i++)
        zmq_close(lines[i].socket);
}

static void a_task_of_too_many_values_is_refused_unread(void **state)
{
    struct world *world = *state;
    struct msg_refused refused;
    AUTO_FREE char *task = malloc(TASK_BYTES_MAX);
    size_t len = (size_t)snprintf(task, TASK_BYTES_MAX, "{\"task\":\"a\",\"metadata\":{\"x\":[");
    for (int i = 0; i < TASK_VALUES_MAX; i++, len += 2)
        memcpy(task + len, "0,", 2);
    strcpy(task + len, "0]}}");
    struct msg_group_submit submit = submit_of(world, "g", 1);
    submit.task = S(task);
    world_ask(world, MSG_group_submit, &submit, MSG_refused, &refused);
    assert_true(slice_is(refused.reason, "bad-task"));
    assert_true(slice_is(refused.text, "a task's JSON has more than 65536 values and names"));
}

int main(int argc, char **argv)
{
    if (world_is_broker(argc, argv))
        return world_be_broker(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_flood_of_submits_leaves_others_their_turns),
        TEST(a_flood_of_beats_leaves_others_their_turns),
        TEST(a_flood_of_fetches_leaves_others_their_turns),
        TEST(a_flood_of_many_connections_is_refused_by_name_and_each_message_is_answered),
        TEST(a_task_of_too_many_values_is_refused_unread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
