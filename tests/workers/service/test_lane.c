/* A worker's lane under CURVE: who is spoken to, who is not, and what is said about it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "tests/port_claim.h"
#include "workers/service/lane.h"

enum { BOUND_MS = 20000, TURN_MS = 10 };

struct scene {
    void *worker_zmq, *broker_zmq;
    void *sink, *zap, *peer; /* peer: whoever connects to the lane, and what became of that */
    struct handshakes peers;
    enum handshake peer_news;
    struct key broker, worker;
    bool knows_worker;
    char front[64];
    struct lane lane;
    const char *why; /* what lane_mend said last */
    char heard[16], received[16];
};

static struct key make_key(enum key_role role)
{
    struct key key = {.role = role};
    strcpy(key.name, key_role_name(role));
    assert_int_equal(zmq_curve_keypair(key.public_text, key.secret_text), 0);
    return key;
}

static int set_up(void **state)
{
    struct scene *scene = calloc(1, sizeof(*scene));
    scene->worker_zmq = zmq_ctx_new();
    scene->broker_zmq = zmq_ctx_new();
    scene->broker = make_key(ROLE_BROKER);
    scene->worker = make_key(ROLE_WORKER);
    strcpy(scene->worker.broker_text, scene->broker.public_text);
    scene->knows_worker = true;
    scene->zap = zmq_socket(scene->broker_zmq, ZMQ_REP);
    assert_int_equal(zmq_bind(scene->zap, "inproc://zeromq.zap.01"), 0);
    *state = scene;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *scene = *state;
    lane_close(&scene->lane, 0);
    handshakes_close(&scene->peers, scene->peer);
    void *const sockets[] = {scene->sink, scene->peer, scene->zap};
    for (size_t i = 0; i < sizeof(sockets) / sizeof(*sockets); i++)
        if (sockets[i])
            zmq_close(sockets[i]);
    zmq_ctx_term(scene->worker_zmq);
    zmq_ctx_term(scene->broker_zmq);
    free(scene);
    return 0;
}

/* The broker's SINK, of a key or in plaintext, on a port of its own. */
static void open_sink(struct scene *scene, const struct key *key)
{
    char endpoint[64];
    int none = 0;
    scene->sink = zmq_socket(scene->broker_zmq, ZMQ_PULL);
    zmq_setsockopt(scene->sink, ZMQ_LINGER, &none, sizeof(none));
    if (key)
        assert_int_equal(curve_serve(scene->sink, key, "sink"), 0);
    do {
        int port = ports_claim(2);
        snprintf(endpoint, sizeof(endpoint), "tcp://127.0.0.1:%d", port + 1);
        snprintf(scene->front, sizeof(scene->front), "tcp://127.0.0.1:%d", port);
    } while (zmq_bind(scene->sink, endpoint) < 0);
}

static void open_lane(struct scene *scene, const struct key *key)
{
    struct fail fail;
    const struct lane_plan plan = {
        .broker = scene->front, .port_first = 20000, .port_last = 29999, .worker = "w1", .key = key};
    if (lane_open(&scene->lane, scene->worker_zmq, &plan, &fail))
        fail_msg("%s", fail.text);
}

/* Somebody with this key, or none, connects to the lane and sends it a job. */
static void send_as(struct scene *scene, const struct key *key)
{
    int none = 0;
    handshakes_close(&scene->peers, scene->peer);
    if (scene->peer)
        zmq_close(scene->peer);
    scene->peer_news = HANDSHAKE_NONE;
    scene->peer = zmq_socket(scene->broker_zmq, ZMQ_PUSH);
    zmq_setsockopt(scene->peer, ZMQ_LINGER, &none, sizeof(none));
    if (key)
        assert_int_equal(curve_serve(scene->peer, key, "lane"), 0);
    assert_int_equal(handshakes_open(&scene->peers, scene->broker_zmq, scene->peer), 0);
    assert_int_equal(zmq_connect(scene->peer, scene->lane.endpoint), 0);
    assert_int_equal(zmq_send(scene->peer, "job", 3, ZMQ_DONTWAIT), 3);
}

/* ---- what goes on meanwhile ------------------------------------------------------------------ */

/* As the broker's handler: "1.0", id, domain, address, identity, mechanism, key. */
static void answer_zap(struct scene *scene)
{
    char frames[7][64];
    for (int i = 0; i < 7; i++) {
        int len = zmq_recv(scene->zap, frames[i], sizeof(frames[i]) - 1, i ? 0 : ZMQ_DONTWAIT);
        if (len < 0)
            return;
        frames[i][len] = '\0';
    }
    const char *const answer[] = {"1.0", frames[1], scene->knows_worker ? "200" : "400", "", "w1", ""};
    for (int i = 0; i < 6; i++)
        zmq_send(scene->zap, answer[i], strlen(answer[i]), i < 5 ? ZMQ_SNDMORE : 0);
}

static void turn(struct scene *scene)
{
    zmq_msg_t message;
    zmq_poll(&(zmq_pollitem_t){.socket = scene->zap, .events = ZMQ_POLLIN}, 1, TURN_MS);
    answer_zap(scene);
    const char *why = lane_mend(&scene->lane, clock_ms());
    if (why)
        scene->why = why;
    if (scene->sink)
        zmq_recv(scene->sink, scene->heard, sizeof(scene->heard) - 1, ZMQ_DONTWAIT);
    if (scene->peers.monitor && scene->peer_news == HANDSHAKE_NONE)
        scene->peer_news = handshakes_next(&scene->peers);
    if (lane_receive(&scene->lane, &message)) {
        memcpy(scene->received, zmq_msg_data(&message), zmq_msg_size(&message) < 15 ? zmq_msg_size(&message) : 15);
        zmq_msg_close(&message);
    }
}

static bool can_send(const struct scene *scene) { return lane_can_send(&scene->lane); }
static bool has_heard(const struct scene *scene) { return scene->heard[0]; }
static bool has_received(const struct scene *scene) { return scene->received[0]; }
static bool has_words(const struct scene *scene) { return scene->why; }
static bool peer_is_told(const struct scene *scene) { return scene->peer_news != HANDSHAKE_NONE; }

static void await(struct scene *scene, bool (*holds)(const struct scene *scene), const char *what)
{
    int64_t end_ms = clock_ms() + BOUND_MS;
    while (!holds(scene)) {
        if (clock_ms() > end_ms)
            fail_msg("not within %d s: %s", BOUND_MS / 1000, what);
        turn(scene);
    }
}

static void expect_words(struct scene *scene, const char *words)
{
    await(scene, has_words, words);
    if (!strstr(scene->why, words))
        fail_msg("not '%s' but: %s", words, scene->why);
    assert_false(lane_can_send(&scene->lane));
}

static void expect_beat_arrives(struct scene *scene)
{
    zmq_msg_t beat;
    await(scene, can_send, "the SINK takes messages");
    zmq_msg_init_size(&beat, 4);
    memcpy(zmq_msg_data(&beat), "beat", 4);
    assert_true(lane_send(&scene->lane, &beat));
    await(scene, has_heard, "the broker hears it");
    assert_string_equal(scene->heard, "beat");
}

/* ---- the tests ------------------------------------------------------------------------------- */

static void with_keys_beats_go_out_and_jobs_come_in(void **state)
{
    struct scene *scene = *state;
    open_sink(scene, &scene->broker);
    open_lane(scene, &scene->worker);
    expect_beat_arrives(scene);
    send_as(scene, &scene->broker);
    await(scene, has_received, "the job");
    assert_string_equal(scene->received, "job");
    assert_null(scene->why);
}

static void a_job_of_anybody_but_the_key_files_broker_never_arrives(void **state)
{
    struct scene *scene = *state;
    struct key other = make_key(ROLE_BROKER);
    open_sink(scene, &scene->broker);
    open_lane(scene, &scene->worker);
    send_as(scene, &other);
    await(scene, peer_is_told, "another broker is shut out");
    assert_int_not_equal(scene->peer_news, HANDSHAKE_DONE);
    send_as(scene, NULL);
    await(scene, peer_is_told, "plaintext is shut out");
    assert_int_not_equal(scene->peer_news, HANDSHAKE_DONE);
    assert_false(has_received(scene));
    send_as(scene, &scene->broker);
    await(scene, has_received, "the broker's own");
}

static void a_worker_that_is_not_known_is_told_and_comes_in_once_it_is(void **state)
{
    struct scene *scene = *state;
    scene->knows_worker = false;
    open_sink(scene, &scene->broker);
    open_lane(scene, &scene->worker);
    expect_words(scene, "the broker does not know this key as a worker's");
    scene->knows_worker = true;
    expect_beat_arrives(scene);
}

static void a_broker_that_speaks_plaintext_is_told_from_silence(void **state)
{
    struct scene *scene = *state;
    open_sink(scene, NULL);
    open_lane(scene, &scene->worker);
    expect_words(scene, "speaks plaintext"); /* for sure, or perhaps: by which side closed first */
}

static void a_broker_that_wants_a_key_is_told_from_silence(void **state)
{
    struct scene *scene = *state;
    open_sink(scene, &scene->broker);
    open_lane(scene, NULL);
    expect_words(scene, "the broker wants a key: --key FILE");
}

static void a_broker_of_another_key_gets_nothing(void **state)
{
    struct scene *scene = *state;
    struct key other = make_key(ROLE_BROKER);
    open_sink(scene, &other);
    open_lane(scene, &scene->worker);
    expect_words(scene, "its key is not the one that the key file names");
}

static void without_a_key_a_lane_is_open_to_this_machine_only(void **state)
{
    struct scene *scene = *state;
    struct fail fail;
    struct lane_plan plan = {.broker = "tcp://127.0.0.1:9",
                             .advertise = "10.11.12.13",
                             .worker = "w1",
                             .port_first = 20000,
                             .port_last = 29999};
    assert_int_equal(lane_open(&scene->lane, scene->worker_zmq, &plan, &fail), -EACCES);
    assert_non_null(strstr(fail.text, "is not on this machine and there is no key"));
    plan.key = &scene->worker;
    assert_int_equal(lane_open(&scene->lane, scene->worker_zmq, &plan, &fail), 0);
    lane_close(&scene->lane, 0);
    plan.key = NULL;
    plan.allow_plaintext = true;
    assert_int_equal(lane_open(&scene->lane, scene->worker_zmq, &plan, &fail), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(with_keys_beats_go_out_and_jobs_come_in),
        TEST(a_job_of_anybody_but_the_key_files_broker_never_arrives),
        TEST(a_worker_that_is_not_known_is_told_and_comes_in_once_it_is),
        TEST(a_broker_that_speaks_plaintext_is_told_from_silence),
        TEST(a_broker_that_wants_a_key_is_told_from_silence),
        TEST(a_broker_of_another_key_gets_nothing),
        TEST(without_a_key_a_lane_is_open_to_this_machine_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
