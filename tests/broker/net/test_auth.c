/* A broker that asks for keys: who hears what, who may say what, and what becomes of a removed key. */
#include "tests/broker/io/io_world.h"

#include "broker/net/feed.h"
#include "broker/net/certs.h"
#include "common/net/curve.h"
#include "tests/broker/net/key_place.h"

enum { QUIET_MS = 600 }; /* heads are published every 50 */

struct keyed {
    char dir[64], data[80], front[96], sink[96], feed[96];
    struct key_place place;
    struct key alice, bob, admin, worker, mallory; /* mallory: another worker's */
    pid_t broker;
    int said;                     /* what it says */
    void *context, *sockets[128]; /* closed at the end, however the test ended */
    size_t socket_count;
    struct buffer out;
    uint64_t tag;
};

static int set_up(void **state)
{
    struct keyed *k = calloc(1, sizeof(*k));
    char keys[80], text[8192];
    strcpy(k->dir, "/tmp/sluice-auth-XXXXXX");
    assert_non_null(mkdtemp(k->dir));
    snprintf(keys, sizeof(keys), "%s/keys", k->dir);
    snprintf(k->data, sizeof(k->data), "%s/data", k->dir);
    snprintf(k->front, sizeof(k->front), "ipc://%s/front", k->dir);
    snprintf(k->sink, sizeof(k->sink), "ipc://%s/sink", k->dir);
    snprintf(k->feed, sizeof(k->feed), "ipc://%s/feed", k->dir);
    key_place_make(&k->place, keys);
    k->alice = key_place_add(&k->place, ROLE_TRAINER, "alice");
    k->bob = key_place_add(&k->place, ROLE_TRAINER, "bob");
    k->admin = key_place_add(&k->place, ROLE_ADMIN, "root");
    k->worker = key_place_add(&k->place, ROLE_WORKER, "w1");
    k->mallory = key_place_add(&k->place, ROLE_WORKER, "mallory");
    const char *arguments[] = {"--data",        k->data, "--ipc", k->dir, "--keys", keys,
                               "--head-period", "50ms",  "--log", "warn", NULL};
    k->broker = world_spawn(arguments, &k->said);
    if (!world_read_until(k->said, "broker ready", text, sizeof(text)))
        fail_msg("the broker did not start: %s", text);
    k->context = zmq_ctx_new();
    *state = k;
    return 0;
}

static int tear_down(void **state)
{
    struct keyed *k = *state;
    int status;
    char command[96];
    kill(k->broker, SIGKILL);
    assert_int_equal(waitpid(k->broker, &status, 0), k->broker);
    assert_true(WIFSIGNALED(status)); /* it was alive to the end */
    close(k->said);
    for (size_t i = 0; i < k->socket_count; i++)
        zmq_close(k->sockets[i]);
    zmq_ctx_term(k->context);
    buffer_finish(&k->out);
    snprintf(command, sizeof(command), "rm -rf %s", k->dir);
    assert_int_equal(system(command), 0);
    free(k);
    return 0;
}

/* ---- sockets ------------------------------------------------------------------------------------ */

static void *new_socket(struct keyed *k, int type, const struct key *key)
{
    void *socket = zmq_socket(k->context, type);
    int none = 0, soon_ms = 20;
    assert_true(socket && k->socket_count < 128);
    k->sockets[k->socket_count++] = socket;
    zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof(none));
    zmq_setsockopt(socket, ZMQ_RECONNECT_IVL, &soon_ms, sizeof(soon_ms));
    if (key)
        assert_int_equal(curve_use(socket, key), 0);
    return socket;
}

static void *join(struct keyed *k, int type, const char *url, const struct key *key)
{
    void *socket = new_socket(k, type, key);
    assert_int_equal(zmq_connect(socket, url), 0);
    return socket;
}

static void leave(struct keyed *k, void *socket)
{
    for (size_t i = 0; i < k->socket_count; i++)
        if (k->sockets[i] == socket)
            k->sockets[i] = k->sockets[--k->socket_count];
    zmq_close(socket);
}

static void say(struct keyed *k, void *socket, enum message_id id, const void *message)
{
    struct refusal no;
    buffer_clear(&k->out);
    if (!message_encode(id, message, &k->out, &no))
        fail_msg("%s", no.text);
    assert_true(zmq_send(socket, k->out.data, k->out.len, 0) >= 0);
}

static bool wait_for(void *socket, int64_t wait_ms)
{
    zmq_pollitem_t item = {socket, 0, ZMQ_POLLIN, 0};
    return zmq_poll(&item, 1, wait_ms) > 0;
}

/* The answer's name; what a refusal gives as its reason. */
static void hear(void *front, char ret_name[64], char ret_reason[64])
{
    zmq_msg_t frame;
    enum message_id id;
    struct refusal no;
    struct msg_refused refused;
    assert_true(wait_for(front, WAIT_MS));
    zmq_msg_init(&frame);
    assert_true(zmq_msg_recv(&frame, front, 0) >= 0);
    assert_true(message_peek(slice_of(zmq_msg_data(&frame), zmq_msg_size(&frame)), &id, &no));
    snprintf(ret_name, 64, "%s", message_get(id)->wire);
    ret_reason[0] = '\0';
    if (world_decode(&frame, MSG_refused, &refused))
        snprintf(ret_reason, 64, "%.*s", SLICE_ARG(refused.reason));
    zmq_msg_close(&frame);
}

#define expect(front, name, reason)                                                                                    \
    do {                                                                                                               \
        char name_[64], reason_[64];                                                                                   \
        hear(front, name_, reason_);                                                                                   \
        assert_string_equal(name_, name);                                                                              \
        assert_string_equal(reason_, reason);                                                                          \
    } while (0)

static void submit_as(struct keyed *k, void *front, const char *group, const char *stream)
{
    struct msg_group_submit message = {.tag = ++k->tag,
                                       .group = S(group),
                                       .stream = S(stream),
                                       .samples = 1,
                                       .task = S("{\"task\":\"add\",\"kind\":\"noop\"}")};
    say(k, front, MSG_group_submit, &message);
}

static void ask_for(void *xsub, const char *topic)
{
    char frame[128] = {1};
    size_t len = strlen(topic);
    memcpy(frame + 1, topic, len);
    assert_true(zmq_send(xsub, frame, len + 1, 0) >= 0);
}

/* Waits for a message with this topic. */
static bool hears(void *feed, const char *topic, int64_t wait_ms)
{
    int64_t end_ms = clock_ms() + wait_ms;
    while (clock_ms() < end_ms && wait_for(feed, end_ms - clock_ms())) {
        char got[128];
        int len = zmq_recv(feed, got, sizeof(got) - 1, 0), more;
        size_t size = sizeof(more);
        assert_true(len >= 0);
        got[len < 127 ? len : 127] = '\0';
        for (zmq_getsockopt(feed, ZMQ_RCVMORE, &more, &size); more; zmq_getsockopt(feed, ZMQ_RCVMORE, &more, &size))
            zmq_recv(feed, NULL, 0, 0);
        if (strcmp(got, topic) == 0)
            return true;
    }
    return false;
}

/* Alice has a stream, and its heads are heard. */
static void *alice_submits(struct keyed *k)
{
    void *front = join(k, ZMQ_DEALER, k->front, &k->alice);
    submit_as(k, front, "a", "ali");
    expect(front, "group.accepted", "");
    return front;
}

/* ---- FEED ------------------------------------------------------------------------------------------ */

static void a_trainer_hears_its_own_stream_and_an_admin_hears_all(void **state)
{
    struct keyed *k = *state;
    alice_submits(k);
    void *own = join(k, ZMQ_XSUB, k->feed, &k->alice), *all = join(k, ZMQ_XSUB, k->feed, &k->admin);
    ask_for(own, "t/ali/");
    ask_for(all, "");
    assert_true(hears(own, "t/ali/", WAIT_MS));
    assert_true(hears(all, "t/ali/", WAIT_MS));
}

static void no_other_trainer_hears_it_by_name_or_by_any_prefix(void **state)
{
    struct keyed *k = *state;
    static const char *const topics[] = {"t/ali/", "t/ali", "t/al", "t/", "t", "", "t/ali/\n", "t//"};
    alice_submits(k);
    void *bobs = join(k, ZMQ_DEALER, k->front, &k->bob);
    void *own = join(k, ZMQ_XSUB, k->feed, &k->alice), *bob = join(k, ZMQ_XSUB, k->feed, &k->bob);
    for (size_t i = 0; i < sizeof(topics) / sizeof(*topics); i++)
        ask_for(bob, topics[i]);
    submit_as(k, bobs, "b", "alibi"); /* and its own stream's name begins as hers does */
    expect(bobs, "group.accepted", "");
    ask_for(bob, "t/alibi/");
    ask_for(own, "t/ali/");
    assert_true(hears(bob, "t/alibi/", WAIT_MS));
    assert_true(hears(own, "t/ali/", WAIT_MS));
    assert_false(hears(bob, "t/ali/", QUIET_MS));
    assert_false(hears(own, "t/alibi/", QUIET_MS));
}

/*
 * libzmq pairs what it reads with connections by their order, which such a frame upsets: what comes
 * after it counts for whoever comes next. The broker stands still, so that it finds all three at once.
 */
static void a_frame_that_is_no_subscription_moves_nobodys_subscription_to_another(void **state)
{
    struct keyed *k = *state;
    alice_submits(k);
    for (int i = 0; i < 20; i++) {
        void *own = join(k, ZMQ_XSUB, k->feed, &k->alice), *bob = join(k, ZMQ_XSUB, k->feed, &k->bob);
        void *upset = join(k, ZMQ_XSUB, k->feed, &k->bob);
        ask_for(own, "t/nothing/");
        ask_for(bob, "t/bobs/");
        ask_for(upset, "t/bobs/");
        zmq_poll(NULL, 0, 100); /* all stand */
        kill(k->broker, SIGSTOP);
        zmq_send(upset, "\x07", 1, 0);
        zmq_poll(NULL, 0, 10);
        ask_for(own, "t/ali/");
        zmq_poll(NULL, 0, 10);
        ask_for(bob, "t/bobs2/");
        zmq_poll(NULL, 0, 10);
        kill(k->broker, SIGCONT);
        assert_false(hears(bob, "t/ali/", 150));
    }
}

/* ---- roles ----------------------------------------------------------------------------------------- */

static void a_trainer_may_not_do_what_is_an_admins(void **state)
{
    struct keyed *k = *state;
    void *alice = join(k, ZMQ_DEALER, k->front, &k->alice), *admin = join(k, ZMQ_DEALER, k->front, &k->admin);
    struct msg_engine_add add = {.tag = 1, .url = S("http://127.0.0.1:1")};
    say(k, alice, MSG_engine_add, &add);
    expect(alice, "refused", "not-allowed");
    say(k, admin, MSG_engine_add, &add);
    expect(admin, "done", "");
}

static void another_trainers_stream_cannot_be_fetched_acknowledged_or_cancelled(void **state)
{
    struct keyed *k = *state;
    void *front = alice_submits(k), *bob = join(k, ZMQ_DEALER, k->front, &k->bob);
    struct msg_stream_fetch fetch = {.tag = 1, .stream = S("ali"), .from = 1};
    struct msg_stream_ack ack = {.tag = 2, .stream = S("ali"), .seq = 1};
    struct msg_rollout_cancel cancel = {.tag = 3, .has_stream = true, .stream = S("ali")};
    say(k, bob, MSG_stream_fetch, &fetch);
    expect(bob, "refused", "not-allowed");
    say(k, bob, MSG_stream_ack, &ack);
    expect(bob, "refused", "not-allowed");
    say(k, bob, MSG_rollout_cancel, &cancel);
    expect(bob, "refused", "not-allowed");
    say(k, front, MSG_stream_fetch, &fetch);
    expect(front, "stream.head", "");
}

static void a_key_of_the_wrong_role_or_of_nobody_is_not_let_in(void **state)
{
    struct keyed *k = *state;
    struct key stranger = key_make(ROLE_ADMIN, "root");
    strcpy(stranger.broker_text, k->place.broker.public_text);
    struct key wrong_broker = k->alice;
    strcpy(wrong_broker.broker_text, k->bob.public_text);
    const struct {
        int type;
        const char *url;
        const struct key *key;
        enum handshake wanted;
    } cases[] = {
        {ZMQ_DEALER, k->front, &k->worker, HANDSHAKE_REFUSED},   {ZMQ_DEALER, k->front, &stranger, HANDSHAKE_REFUSED},
        {ZMQ_DEALER, k->front, &wrong_broker, HANDSHAKE_BROKEN}, {ZMQ_DEALER, k->front, NULL, HANDSHAKE_MISMATCH},
        {ZMQ_PUSH, k->sink, &k->alice, HANDSHAKE_REFUSED},       {ZMQ_PUSH, k->sink, &k->admin, HANDSHAKE_REFUSED},
        {ZMQ_SUB, k->feed, &k->worker, HANDSHAKE_REFUSED},       {ZMQ_PUSH, k->sink, &k->worker, HANDSHAKE_DONE}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        void *socket = new_socket(k, cases[i].type, cases[i].key);
        struct handshakes handshakes;
        enum handshake news = HANDSHAKE_NONE;
        int64_t end_ms = clock_ms() + WAIT_MS;
        assert_int_equal(handshakes_open(&handshakes, k->context, socket), 0);
        assert_int_equal(zmq_connect(socket, cases[i].url), 0);
        while (news != cases[i].wanted) { /* what broke off is tried again */
            assert_true(clock_ms() < end_ms && wait_for(handshakes.monitor, WAIT_MS));
            news = handshakes_next(&handshakes);
            assert_true(news != HANDSHAKE_DONE || cases[i].wanted == HANDSHAKE_DONE);
        }
        handshakes_close(&handshakes, socket);
    }
}

/* ---- lanes ----------------------------------------------------------------------------------------- */

static void *bind_lane(struct keyed *k, const struct key *key, const char *name, char ret_lane[128])
{
    void *pull = new_socket(k, ZMQ_PULL, key);
    snprintf(ret_lane, 128, "ipc://%s/%s", k->dir, name);
    assert_int_equal(zmq_bind(pull, ret_lane), 0);
    return pull;
}

static void beat(struct keyed *k, void *push, const char *worker, const char *lane)
{
    struct msg_worker_beat message = {.worker = S(worker),
                                      .stage = S("init"),
                                      .slots = 1,
                                      .lane = S(lane),
                                      .host = S("here"),
                                      .progress = (uint64_t)clock_ms()};
    say(k, push, MSG_worker_beat, &message);
}

static void a_lane_is_opened_to_a_workers_key_and_to_no_other(void **state)
{
    struct keyed *k = *state;
    char good[128], bad[128], plain[128], text[8192];
    void *push = join(k, ZMQ_PUSH, k->sink, &k->worker);
    void *own = bind_lane(k, &k->worker, "lane-own", good);
    void *trainers = bind_lane(k, &k->alice, "lane-trainer", bad);
    void *open = bind_lane(k, NULL, "lane-plain", plain);
    beat(k, push, "w-own", good);
    beat(k, push, "w-trainer", bad);
    beat(k, push, "w-plain", plain);
    assert_true(wait_for(own, WAIT_MS)); /* lane.hello */
    assert_true(world_read_until(k->said, "worker=w-trainer why=\"its key is not a worker's", text, sizeof(text)));
    assert_false(wait_for(trainers, QUIET_MS));
    assert_false(wait_for(open, 0));
}

/* ---- one worker's key, and another's worker ------------------------------------------------------------ */

/* The token of the job that came on this lane, behind its lane.hello. */
static uint64_t hear_job(void *pull)
{
    struct msg_job_start start = {0};
    while (!start.token) {
        zmq_msg_t frame;
        assert_true(wait_for(pull, WAIT_MS));
        zmq_msg_init(&frame);
        assert_true(zmq_msg_recv(&frame, pull, 0) >= 0);
        if (!world_decode(&frame, MSG_job_start, &start))
            start.token = 0;
        zmq_msg_close(&frame);
    }
    return start.token;
}

static void say_end(struct keyed *k, void *push, const char *worker, const char *job, uint64_t token)
{
    struct msg_job_result result = {.worker = S(worker), .job = S(job), .token = token, .outcome = S("ok"), .ms = 1};
    say(k, push, MSG_job_result, &result);
}

static bool status_says(struct keyed *k, void *admin, const char *words)
{
    struct msg_status_get get = {.tag = 1};
    struct msg_status status;
    zmq_msg_t frame;
    say(k, admin, MSG_status_get, &get);
    assert_true(wait_for(admin, WAIT_MS));
    zmq_msg_init(&frame);
    assert_true(zmq_msg_recv(&frame, admin, 0) >= 0 && world_decode(&frame, MSG_status, &status));
    bool says = memmem(status.json.data, status.json.len, words, strlen(words));
    zmq_msg_close(&frame);
    return says;
}

static void until_status_says(struct keyed *k, void *admin, const char *words)
{
    for (int64_t end_ms = clock_ms() + WAIT_MS; !status_says(k, admin, words);)
        assert_true(clock_ms() < end_ms);
}

static void a_workers_key_neither_ends_nor_takes_the_jobs_of_anothers(void **state)
{
    struct keyed *k = *state;
    char lane[128], wrong[128];
    void *admin = join(k, ZMQ_DEALER, k->front, &k->admin);
    void *own = bind_lane(k, &k->worker, "lane-own", lane), *other = bind_lane(k, &k->mallory, "lane-other", wrong);
    void *push = join(k, ZMQ_PUSH, k->sink, &k->worker);
    beat(k, push, "w-own", lane);
    submit_as(k, join(k, ZMQ_DEALER, k->front, &k->alice), "a", "ali");
    uint64_t token = hear_job(own);
    void *stranger = join(k, ZMQ_PUSH, k->sink, &k->mallory);
    say_end(k, stranger, "w-own", "init:a", token);
    say_end(k, stranger, "m1", "init:a", token);
    beat(k, stranger, "w-own", wrong);
    until_status_says(k, admin, "\"worker\":\"w-own\",\"key\":\"mallory\",\"owner\":\"w1\"");
    until_status_says(k, admin, "\"unissued\":1,");
    until_status_says(k, admin, "\"id_conflicts\":2,");
    assert_true(status_says(k, admin, "\"init\":{\"queued\":0,\"leased\":1,"));
    assert_false(wait_for(other, 0)); /* no lane leads there */
    say_end(k, push, "w-own", "init:a", token);
    until_status_says(k, admin, "\"run\":{\"queued\":1,");
}

/* ---- removed keys ----------------------------------------------------------------------------------- */

static void a_removed_keys_open_connections_are_worth_nothing(void **state)
{
    struct keyed *k = *state;
    struct msg_status_get get = {.tag = 1};
    void *front = alice_submits(k);
    void *own = join(k, ZMQ_XSUB, k->feed, &k->alice), *admin = join(k, ZMQ_XSUB, k->feed, &k->admin);
    ask_for(own, "t/ali/");
    ask_for(admin, "t/ali/");
    assert_true(hears(own, "t/ali/", WAIT_MS) && hears(admin, "t/ali/", WAIT_MS));
    key_place_remove(&k->place, ROLE_TRAINER, "alice");
    char name[64] = "", reason[64];
    for (int64_t end_ms = clock_ms() + WAIT_MS; strcmp(name, "refused") != 0;) {
        assert_true(clock_ms() < end_ms);
        say(k, front, MSG_status_get, &get);
        hear(front, name, reason);
    }
    assert_string_equal(reason, "not-allowed");
    for (int64_t end_ms = clock_ms() + WAIT_MS; hears(own, "t/ali/", QUIET_MS);)
        assert_true(clock_ms() < end_ms);         /* what was on its way, then nothing */
    assert_true(hears(admin, "t/ali/", WAIT_MS)); /* who is still known hears on */
}

/* The directories were read long after they changed: from now on only their files say that something is new. */
static void age_folders(struct keyed *k, void *front)
{
    char path[192];
    struct msg_status_get get = {.tag = 1};
    struct timespec long_ago[2] = {{1000000000, 0}, {1000000000, 0}};
    for (enum key_role role = ROLE_TRAINER; role < ROLE_BROKER; role++) {
        snprintf(path, sizeof(path), "%s/trusted/%s", k->place.dir, key_role_name(role));
        assert_int_equal(utimensat(AT_FDCWD, path, long_ago, 0), 0);
    }
    for (int64_t end_ms = clock_ms() + 4 * CERTS_LOOK_MS; clock_ms() < end_ms;) {
        say(k, front, MSG_status_get, &get); /* each of these may make it look */
        expect(front, "status", "");
    }
}

static void a_certificate_that_is_written_in_place_counts_as_it_is_now(void **state)
{
    struct keyed *k = *state;
    char path[192], name[64] = "", reason[64];
    void *front = alice_submits(k);
    struct key next = key_make(ROLE_TRAINER, "alice"), shown = next;
    key_place_path(&k->place, ROLE_TRAINER, "alice", path);
    age_folders(k, front);
    FILE *file = fopen(path, "r+"); /* the same inode */
    assert_non_null(file);
    fprintf(file, "role trainer\nname alice\npublic %s\n", shown.public_text);
    assert_int_equal(ftruncate(fileno(file), ftell(file)), 0);
    fclose(file);
    struct msg_status_get get = {.tag = 1};
    for (int64_t end_ms = clock_ms() + WAIT_MS; strcmp(name, "refused") != 0;) {
        assert_true(clock_ms() < end_ms);
        say(k, front, MSG_status_get, &get);
        hear(front, name, reason);
    }
    assert_string_equal(reason, "not-allowed");
    strcpy(next.broker_text, k->place.broker.public_text);
    void *again = join(k, ZMQ_DEALER, k->front, &next);
    say(k, again, MSG_status_get, &get);
    expect(again, "status", "");
}

/* ---- names by asking --------------------------------------------------------------------------------- */

static void a_name_that_is_only_listened_to_goes_with_its_last_listener(void **state)
{
    struct keyed *k = *state;
    void *feed = join(k, ZMQ_XSUB, k->feed, &k->alice), *front = join(k, ZMQ_DEALER, k->front, &k->bob);
    char name[64] = "", reason[64] = "";
    ask_for(feed, "t/name/");
    for (int64_t end_ms = clock_ms() + WAIT_MS; strcmp(reason, "not-allowed") != 0;) {
        struct msg_stream_ack ack = {.tag = ++k->tag, .stream = S("name"), .seq = 1};
        assert_true(clock_ms() < end_ms);
        say(k, front, MSG_stream_ack, &ack); /* unknown-stream, until alice's asking was read */
        hear(front, name, reason);
    }
    leave(k, feed);
    for (int64_t end_ms = clock_ms() + WAIT_MS; strcmp(name, "group.accepted") != 0;) {
        assert_true(clock_ms() < end_ms);
        submit_as(k, front, "hers", "name");
        hear(front, name, reason);
    }
}

/* Bob never listened; what he takes back is nobody's. */
static void nobody_takes_back_what_another_listens_to(void **state)
{
    struct keyed *k = *state;
    void *feed = join(k, ZMQ_XSUB, k->feed, &k->alice), *front = join(k, ZMQ_DEALER, k->front, &k->bob);
    void *others = join(k, ZMQ_XSUB, k->feed, &k->bob);
    struct msg_stream_ack ack = {.stream = S("name"), .seq = 1};
    char name[64] = "", reason[64] = "";
    ask_for(feed, "t/name/");
    ask_for(others, "t/own/");
    for (int64_t end_ms = clock_ms() + WAIT_MS; strcmp(reason, "not-allowed") != 0;) {
        assert_true(clock_ms() < end_ms);
        ack.tag = ++k->tag;
        say(k, front, MSG_stream_ack, &ack);
        hear(front, name, reason);
    }
    for (int64_t end_ms = clock_ms() + FEED_GRACE_MS + 2000; clock_ms() < end_ms;) {
        static const char take_back[] = "\0t/name/";
        assert_true(zmq_send(others, take_back, sizeof(take_back) - 1, 0) >= 0);
        ack.tag = ++k->tag;
        say(k, front, MSG_stream_ack, &ack);
        hear(front, name, reason);
        assert_string_equal(reason, "not-allowed");
        poll(NULL, 0, 20);
    }
}

/* ---- identities --------------------------------------------------------------------------------------- */

static void nobody_takes_over_anothers_identity(void **state)
{
    struct keyed *k = *state;
    struct msg_status_get get = {.tag = 1};
    void *alice = new_socket(k, ZMQ_DEALER, &k->alice), *bob = new_socket(k, ZMQ_DEALER, &k->bob);
    zmq_setsockopt(alice, ZMQ_ROUTING_ID, "me", 2);
    zmq_setsockopt(bob, ZMQ_ROUTING_ID, "me", 2);
    assert_int_equal(zmq_connect(alice, k->front), 0);
    say(k, alice, MSG_status_get, &get);
    expect(alice, "status", "");
    assert_int_equal(zmq_connect(bob, k->front), 0);
    zmq_poll(NULL, 0, 100);
    say(k, alice, MSG_status_get, &get);
    expect(alice, "status", "");
    assert_false(wait_for(bob, 0));
}

int main(int argc, char **argv)
{
    if (world_is_broker(argc, argv))
        return world_be_broker(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_trainer_hears_its_own_stream_and_an_admin_hears_all),
        TEST(no_other_trainer_hears_it_by_name_or_by_any_prefix),
        TEST(a_frame_that_is_no_subscription_moves_nobodys_subscription_to_another),
        TEST(a_trainer_may_not_do_what_is_an_admins),
        TEST(another_trainers_stream_cannot_be_fetched_acknowledged_or_cancelled),
        TEST(a_key_of_the_wrong_role_or_of_nobody_is_not_let_in),
        TEST(a_lane_is_opened_to_a_workers_key_and_to_no_other),
        TEST(a_workers_key_neither_ends_nor_takes_the_jobs_of_anothers),
        TEST(a_removed_keys_open_connections_are_worth_nothing),
        TEST(a_certificate_that_is_written_in_place_counts_as_it_is_now),
        TEST(a_name_that_is_only_listened_to_goes_with_its_last_listener),
        TEST(nobody_takes_back_what_another_listens_to),
        TEST(nobody_takes_over_anothers_identity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
