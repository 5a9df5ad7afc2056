/*
 * broker_side.h - the broker of a worker in a test: its side of lane and SINK, what it says, and what it hears, which
 * must obey the schema. Every wait is for a message and has a bound; past it the test fails.
 */
#ifndef SLUICE_TESTS_WORKERS_SERVICE_BROKER_SIDE_H
#define SLUICE_TESTS_WORKERS_SERVICE_BROKER_SIDE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include "common/base/clock.h"
#include "common/net/bundle.h"
#include "schemas/messages/message.h"
#include "tests/port_claim.h"

enum { BOUND_MS = 20000 };

/* ---- its sockets ------------------------------------------------------------------------ */

struct heard { /* the message in hand, good until the next */
    zmq_msg_t bytes;
    enum message_id id;
    union {
        struct msg_worker_beat beat;
        struct msg_job_result result;
    };
};

static void *zmq, *sink, *lane;
static char front[160], sink_endpoint[160];
static const char *broker_host = "127.0.0.1";
static struct heard heard;
static bool has_heard;
static unsigned heard_count;   /* messages of all workers ... */
static unsigned heard_bundles; /* ... and bundles of them */
static size_t heard_at;        /* of the bundle in hand, behind the message in hand; 0: it is no bundle */
static struct {                /* the last engine.load */
    unsigned count;
    char url[257];
    uint64_t runs, tokens, calls;
} load;
static struct { /* the last job.progress, and how many since the last beat */
    unsigned count;
    uint64_t turn;
    char job[141], why[257];
} job_word;
static uint64_t next_token;

static inline void forget_heard(void)
{
    if (has_heard)
        zmq_msg_close(&heard.bytes);
    has_heard = false;
    heard_at = 0;
}

static inline void *socket_new(int type)
{
    int none = 0;
    void *made = zmq_socket(zmq, type);
    assert_non_null(made);
    zmq_setsockopt(made, ZMQ_LINGER, &none, sizeof(none));
    return made;
}

static inline void broker_die(void)
{
    if (sink)
        zmq_close(sink);
    if (lane)
        zmq_close(lane);
    sink = lane = NULL;
}

/* The same endpoint again after broker_die: tried until the old socket has let go of it. */
static inline void broker_come_back(void)
{
    int64_t end = clock_ms() + BOUND_MS;
    sink = socket_new(ZMQ_PULL);
    while (zmq_bind(sink, sink_endpoint) < 0) {
        assert_int_equal(errno, EADDRINUSE);
        assert_true(clock_ms() < end);
    }
}

static inline void broker_choose_port(void)
{
    for (;;) {
        int port = ports_claim(2);
        snprintf(front, sizeof(front), "tcp://%s:%d", broker_host, port);
        snprintf(sink_endpoint, sizeof(sink_endpoint), "tcp://%s:%d", broker_host, port + 1);
        void *trial = socket_new(ZMQ_PULL);
        int wrong = zmq_bind(trial, sink_endpoint);
        zmq_close(trial);
        if (wrong == 0)
            return;
    }
}

static inline void take_load(struct slice bytes)
{
    struct msg_engine_load in;
    struct refusal no = {0};
    if (!message_decode(MSG_engine_load, bytes, &in, &no))
        fail_msg("a worker's load report is refused: %s %s", no.field, no.text);
    load.count++;
    snprintf(load.url, sizeof(load.url), "%.*s", SLICE_ARG(in.url));
    load.runs = in.runs;
    load.tokens = in.tokens;
    load.calls = in.calls;
}

/* Of a job, and no more of them before a beat than a broker of thousands of workers has time for. */
static inline void take_progress(struct slice bytes)
{
    struct msg_job_progress in;
    struct refusal no = {0};
    if (!message_decode(MSG_job_progress, bytes, &in, &no))
        fail_msg("a worker's word of a job is refused: %s %s", no.field, no.text);
    assert_true(++job_word.count <= 8);
    job_word.turn = in.turn;
    snprintf(job_word.job, sizeof(job_word.job), "%.*s", SLICE_ARG(in.job));
    snprintf(job_word.why, sizeof(job_word.why), "%.*s", SLICE_ARG(in.why));
}

static inline struct slice heard_bytes(void)
{
    return slice_of(zmq_msg_data(&heard.bytes), zmq_msg_size(&heard.bytes));
}

/* The next message, of the bundle in hand or of the SINK. False when none came in time. */
static inline bool receive(int64_t bound_ms, struct slice *ret)
{
    if (heard_at && bundle_next(heard_bytes(), &heard_at, ret) == 1)
        return true;
    forget_heard();
    zmq_pollitem_t item = {.socket = sink, .events = ZMQ_POLLIN};
    if (zmq_poll(&item, 1, bound_ms < 0 ? 0 : (long)bound_ms) <= 0)
        return false;
    zmq_msg_init(&heard.bytes);
    has_heard = true;
    assert_true(zmq_msg_recv(&heard.bytes, sink, 0) >= 0);
    assert_false(zmq_msg_more(&heard.bytes));
    *ret = heard_bytes();
    heard_bundles += is_bundle(*ret);
    return !is_bundle(*ret) || bundle_next(heard_bytes(), &heard_at, ret) == 1;
}

/*
 * Every message a worker sends must obey the schema. False when none came in time. What it says of
 * engines and of how far jobs have come is noted on the way.
 */
static inline bool hear(int64_t bound_ms)
{
    struct refusal no = {0};
    struct slice bytes;
    if (!receive(bound_ms, &bytes))
        return false;
    heard_count++;
    assert_true(message_peek(bytes, &heard.id, &no));
    if (heard.id == MSG_engine_load) {
        take_load(bytes);
        return hear(bound_ms);
    }
    if (heard.id == MSG_job_progress) {
        take_progress(bytes);
        return hear(bound_ms);
    }
    if (heard.id == MSG_worker_beat)
        job_word.count = 0;
    assert_true(heard.id == MSG_worker_beat || heard.id == MSG_job_result);
    if (!message_decode(heard.id, bytes, &heard.beat, &no))
        fail_msg("a worker's message is refused: %s %s", no.field, no.text);
    return true;
}

static inline void say_bytes(const void *data, size_t len, int flags)
{
    zmq_pollitem_t item = {.socket = lane, .events = ZMQ_POLLOUT};
    assert_int_equal(zmq_poll(&item, 1, BOUND_MS), 1);
    assert_true(zmq_send(lane, data, len, flags) >= 0);
}

static inline struct buffer encode(enum message_id id, const void *message)
{
    struct buffer out = {0};
    struct refusal no = {0};
    if (!message_encode(id, message, &out, &no))
        fail_msg("cannot encode: %s %s", no.field, no.text);
    return out;
}

static inline void say(enum message_id id, const void *message)
{
    struct buffer out = encode(id, message);
    say_bytes(out.data, out.len, 0);
    buffer_finish(&out);
}

static inline void say_hello_with(uint64_t epoch, bool bundles)
{
    say(MSG_lane_hello, &(struct msg_lane_hello){.epoch = epoch, .has_bundles = bundles, .bundles = bundles});
}

/* As a broker of an earlier release, which reads no bundles. */
static inline void say_hello(uint64_t epoch) { say_hello_with(epoch, false); }

static inline void say_ack(const char *job, uint64_t token)
{
    say(MSG_result_ack, &(struct msg_result_ack){.job = slice_from_str(job), .token = token});
}

static inline void say_cancel(const char *job, uint64_t token)
{
    say(MSG_job_cancel, &(struct msg_job_cancel){.job = slice_from_str(job), .token = token});
}

/* grace_s -1: none is said. */
static inline void say_drain(int grace_s)
{
    say(MSG_lane_drain,
        &(struct msg_lane_drain){.grace_s = grace_s < 0 ? 0 : (uint64_t)grace_s, .has_grace_s = grace_s >= 0});
}

static const char noop_task[] = "{\"task\":\"t\",\"kind\":\"noop\",\"prompt\":\"p\"}";
static const char chat_task[] =
    "{\"task\":\"t\",\"prompt\":\"p\",\"agent\":{\"kind\":\"chat\"},\"eval\":{\"kind\":\"none\"},"
    "\"limits\":{\"run_s\":600}}";

/* On a layer that init left; NULL: none. */
static inline uint64_t say_start_on(const char *job, uint64_t token, const char *task, const char *engine,
                                    const char *layer)
{
    char stage[16] = "";
    sscanf(job, "%15[^:]", stage);
    struct msg_job_start start = {.job = slice_from_str(job),
                                  .token = token,
                                  .stage = slice_from_str(stage),
                                  .group = slice_from_str("g"),
                                  .attempt = 1,
                                  .task = slice_from_str(task),
                                  .has_task = true,
                                  .engine = slice_from_str(engine),
                                  .has_engine = engine != NULL,
                                  .init_layer_digest = slice_from_str(layer),
                                  .has_init_layer_digest = layer != NULL};
    say(MSG_job_start, &start);
    return token;
}

static inline uint64_t say_start_as(const char *job, uint64_t token, const char *task, const char *engine)
{
    return say_start_on(job, token, task, engine, NULL);
}

static inline uint64_t say_start(const char *job) { return say_start_as(job, ++next_token, noop_task, NULL); }

/* ---- waiting for what the worker says --------------------------------------------------- */

static inline bool beat_has(const char *job)
{
    struct job_ref ref;
    for (size_t at = 0; jobs_next(&heard.beat.jobs, &at, &ref);)
        if (slice_is(ref.job, job))
            return true;
    return false;
}

static inline uint64_t beat_token(const char *job)
{
    struct job_ref ref;
    for (size_t at = 0; jobs_next(&heard.beat.jobs, &at, &ref);)
        if (slice_is(ref.job, job))
            return ref.token;
    return 0;
}

/* The next beat; results on the way are passed over. */
static inline const struct msg_worker_beat *hear_beat(void)
{
    for (int64_t end = clock_ms() + BOUND_MS;;) {
        if (!hear(end - clock_ms()))
            fail_msg("no beat within %d ms", BOUND_MS);
        if (heard.id == MSG_worker_beat)
            return &heard.beat;
    }
}

#define hear_beat_until(condition)                                                                                     \
    for (int64_t end_ = clock_ms() + BOUND_MS; hear_beat() && !(condition);)                                           \
        if (clock_ms() > end_)                                                                                         \
            fail_msg("no beat with " #condition);

/* What was heard: a result, which must be of this job, or of any if that is NULL; NULL: a beat. */
static inline const struct msg_job_result *take_result(const char *job)
{
    if (heard.id == MSG_worker_beat)
        return NULL;
    if (job && !slice_is(heard.result.job, job))
        fail_msg("result of %.*s instead of %s", SLICE_ARG(heard.result.job), job);
    return &heard.result;
}

/* The next result, which must be of this job, or of any if that is NULL; beats on the way are passed over. */
static inline const struct msg_job_result *hear_result(const char *job)
{
    const struct msg_job_result *result = NULL;
    for (int64_t end = clock_ms() + BOUND_MS; !result; result = take_result(job))
        if (!hear(end - clock_ms()))
            fail_msg("no result of %s within %d ms", job ? job : "any job", BOUND_MS);
    return result;
}

static inline void connect_lane(struct slice where)
{
    char endpoint[300];
    snprintf(endpoint, sizeof(endpoint), "%.*s", SLICE_ARG(where));
    lane = socket_new(ZMQ_PUSH);
    assert_int_equal(zmq_connect(lane, endpoint), 0);
}

/* Waits for the worker's beat and connects its lane, as a broker does. */
static inline void open_lane(uint64_t epoch)
{
    connect_lane(hear_beat()->lane);
    say_hello(epoch);
    hear_beat_until(heard.beat.epoch == epoch);
}

#endif
