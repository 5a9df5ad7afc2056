/*
 * The broker killed, or the power cut, between any two steps: before a commit, after it and before anything is sent,
 * between sending and publishing, with a job half handed out, before a sync. By a cut, all is lost of its log that no
 * sync had served. It is the real broker in a process
 * of its own; this program is linked so that its calls of the functions below pass by a gate that
 * kills it at the n-th. It is started again, to be killed again a little later or not. Then,
 * from the outside: every accepted rollout is in its stream exactly once, without gaps, and a sampler's batch has each
 * of its groups once and is the same whenever it is asked for.
 *
 * SLUICE_CRASH_RUNS says how many n of each point are tried (6).
 */
#include "tests/broker/io/io_world.h"

static void before_sync(void);
#define SLOW_DISK_BEFORE_SYNC before_sync
#include "tests/broker/ledger/slow_disk.h"

#include "broker/net/lanes.h"
#include "broker/ledger/ledger.h"

/* ---- the gate: in the broker's process ----------------------------------------------------- */

/* X(name, when) */
#define POINTS(X)                                                                                                      \
    X(begin, "before a transaction begins")                                                                            \
    X(apply, "in a transaction")                                                                                       \
    X(commit, "before a commit")                                                                                       \
    X(committed, "after a commit, before anything is sent")                                                            \
    X(sync, "after a commit, before it is durable")                                                                    \
    X(send, "before an answer or a publication")                                                                       \
    X(sent, "after an answer, before what follows it")                                                                 \
    X(publish, "before a publication")                                                                                 \
    X(lane, "before something goes to a worker")                                                                       \
    X(laned, "after something went to a worker")

enum point {
#define X(name, when) POINT_##name,
    POINTS(X)
#undef X
        POINT_COUNT
};

static const char *const point_names[] = {
#define X(name, when) #name,
    POINTS(X)
#undef X
};

static void gate(enum point point)
{
    static enum point deadly = POINT_COUNT;
    static long left = -1;
    if (left < 0) {
        const char *name = getenv("SLUICE_CRASH_POINT"), *at = getenv("SLUICE_CRASH_AT");
        left = name && at ? atol(at) : 0;
        for (deadly = 0; name && deadly < POINT_COUNT && strcmp(name, point_names[deadly]);)
            deadly++;
    }
    if (left > 0 && point == deadly && --left == 0)
        kill(getpid(), SIGKILL);
}

static void before_sync(void) { gate(POINT_sync); }

int __real_ledger_begin(struct ledger *ledger, struct fail *fail);
int __real_ledger_apply(struct ledger *ledger, const struct effect *effect, struct fail *fail);
int __real_ledger_commit(struct ledger *ledger, struct fail *fail);
bool __real_zmq_frame_send(void *socket, zmq_msg_t *frame, int flags);
int __real_lanes_send(struct lanes *lanes, struct slice worker, struct slice task, zmq_msg_t *frame, int64_t due_ms,
                      struct fail *fail);
int __wrap_ledger_begin(struct ledger *ledger, struct fail *fail);
int __wrap_ledger_apply(struct ledger *ledger, const struct effect *effect, struct fail *fail);
int __wrap_ledger_commit(struct ledger *ledger, struct fail *fail);
bool __wrap_zmq_frame_send(void *socket, zmq_msg_t *frame, int flags);
int __wrap_lanes_send(struct lanes *lanes, struct slice worker, struct slice task, zmq_msg_t *frame, int64_t due_ms,
                      struct fail *fail);

int __wrap_ledger_begin(struct ledger *ledger, struct fail *fail)
{
    gate(POINT_begin);
    return __real_ledger_begin(ledger, fail);
}

int __wrap_ledger_apply(struct ledger *ledger, const struct effect *effect, struct fail *fail)
{
    int code = __real_ledger_apply(ledger, effect, fail);
    gate(POINT_apply);
    return code;
}

int __wrap_ledger_commit(struct ledger *ledger, struct fail *fail)
{
    gate(POINT_commit);
    int code = __real_ledger_commit(ledger, fail);
    gate(POINT_committed);
    return code;
}

bool __wrap_zmq_frame_send(void *socket, zmq_msg_t *frame, int flags)
{
    int type = 0;
    size_t size = sizeof(type);
    zmq_getsockopt(socket, ZMQ_TYPE, &type, &size);
    gate(POINT_send);
    if (type == ZMQ_XPUB || type == ZMQ_PUB)
        gate(POINT_publish);
    bool sent = __real_zmq_frame_send(socket, frame, flags);
    gate(POINT_sent);
    return sent;
}

int __wrap_lanes_send(struct lanes *lanes, struct slice worker, struct slice task, zmq_msg_t *frame, int64_t due_ms,
                      struct fail *fail)
{
    gate(POINT_lane);
    int code = __real_lanes_send(lanes, worker, task, frame, due_ms, fail);
    gate(POINT_laned);
    return code;
}

/* ---- a load, from the outside ------------------------------------------------------------------ */

enum { GROUPS = 3, SAMPLES = 2, ALL = GROUPS * SAMPLES, RESEND_MS = 300 };

struct run {
    struct world *world;
    bool cuts_power;
    unsigned deaths;
};

/* What the disk has of the log after a death of the broker. */
static void lose(struct run *run)
{
    char path[128];
    struct stat log;
    snprintf(path, sizeof(path), "%s/ledger.db-wal", run->world->data);
    run->deaths++;
    if (run->cuts_power && stat(path, &log) == 0 && log.st_size > slow_disk()->durable_len)
        assert_int_equal(truncate(path, slow_disk()->durable_len), 0);
}

static void arm(enum point point, long at)
{
    char text[24];
    snprintf(text, sizeof(text), "%ld", at);
    setenv("SLUICE_CRASH_POINT", point_names[point], 1);
    setenv("SLUICE_CRASH_AT", text, 1);
}

static void disarm(void)
{
    unsetenv("SLUICE_CRASH_POINT");
    unsetenv("SLUICE_CRASH_AT");
}

/* Starts the broker; it may be killed before it is ready. True when it is. */
static bool start(struct world *world)
{
    const char *arguments[] = {
        "--data", world->data,     "--ipc", world->dir,      "--log", "error",          "--hold-grace",
        "150ms",  "--adopt-grace", "150ms", "--head-period", "50ms",  "--beat-timeout", "1m",
        NULL};
    char text[8192];
    int fd;
    world->broker = world_spawn(arguments, &fd);
    bool is_ready = world_read_until(fd, "broker ready", text, sizeof(text));
    close(fd);
    return is_ready;
}

/* One step of everything; a broker that died is started again, unarmed the second time. */
static void step(struct run *run)
{
    int status;
    world_step(run->world);
    if (waitpid(run->world->broker, &status, WNOHANG) != run->world->broker)
        return;
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        fail_msg("the broker ended by itself: %d", status);
    lose(run);
    if (run->deaths == 2)
        disarm();
    while (!start(run->world)) {
        assert_int_equal(waitpid(run->world->broker, &status, 0), run->world->broker);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        lose(run);
        disarm();
    }
}

/* Sends until this answer comes: what was on its way when the broker died is lost. */
static void insist(struct run *run, enum message_id request, const void *message, enum message_id answer, void *ret)
{
    int64_t end_ms = clock_ms() + WAIT_MS, send_ms = 0;
    for (;;) {
        if (clock_ms() >= send_ms) {
            world_send(run->world, run->world->client, request, message);
            send_ms = clock_ms() + RESEND_MS;
        }
        step(run);
        while (world_take_answer(run->world))
            if (world_decode(&run->world->answer, answer, ret))
                return;
        assert_true(clock_ms() < end_ms);
    }
}

static void submit_all(struct run *run)
{
    for (unsigned i = 0; i < GROUPS; i++) {
        char id[16];
        struct msg_group_accepted accepted;
        snprintf(id, sizeof(id), "g%u", i);
        struct msg_group_submit message = submit_of(run->world, id, SAMPLES);
        do /* one that was sent again has more than one answer */
            insist(run, MSG_group_submit, &message, MSG_group_accepted, &accepted);
        while (accepted.tag != message.tag);
        assert_int_equal(accepted.samples, SAMPLES);
    }
}

/* ---- a sampler, on a stream of its own ---------------------------------------------------------- */

enum { BATCH_GROUPS = 2 };

static void open_sampler(struct run *run)
{
    struct msg_sampler_open message = {.tag = ++run->world->tag,
                                       .stream = S("sampled"),
                                       .trainer = S("t"),
                                       .groups = BATCH_GROUPS,
                                       .filter = S("none"),
                                       .has_filter = true};
    struct msg_sampler_state state;
    insist(run, MSG_sampler_open, &message, MSG_sampler_state, &state);
    for (unsigned i = 0; i < BATCH_GROUPS; i++) {
        char id[16];
        struct msg_group_accepted accepted;
        snprintf(id, sizeof(id), "s%u", i);
        struct msg_group_submit submit = submit_of(run->world, id, SAMPLES);
        submit.stream = S("sampled");
        do
            insist(run, MSG_group_submit, &submit, MSG_group_accepted, &accepted);
        while (accepted.tag != submit.tag);
    }
}

/* The first batch is there, with each group once, and stays as it is. */
static void check_batch(struct run *run)
{
    char first[4096] = "";
    for (unsigned i = 0; i < 2; i++) {
        struct msg_sampler_next next = {.tag = ++run->world->tag,
                                        .stream = S("sampled"),
                                        .trainer = S("t"),
                                        .batch = 1,
                                        .has_wait_ms = true,
                                        .wait_ms = 100};
        struct msg_sampler_batch batch;
        insist(run, MSG_sampler_next, &next, MSG_sampler_batch, &batch);
        assert_true(batch.batch == 1 && batch.json.len < sizeof(first));
        if (i > 0)
            assert_true(slice_is(batch.json, first));
        snprintf(first, sizeof(first), "%.*s", SLICE_ARG(batch.json));
    }
    const char *one = strstr(first, "\"group\":\"s0\""), *two = strstr(first, "\"group\":\"s1\"");
    assert_true(one && two && one < two);
    assert_null(strstr(one + 1, "\"group\":\"s0\""));
    assert_non_null(strstr(first, "\"finished\":2,\"kept\":2"));
}

static uint64_t ask_head(struct run *run)
{
    struct msg_stream_fetch fetch = {
        .tag = ++run->world->tag, .stream = S("train"), .from = 1, .has_limit = true, .limit = 1};
    struct msg_stream_head head;
    insist(run, MSG_stream_fetch, &fetch, MSG_stream_head, &head);
    return head.pending ? 0 : head.head;
}

/* Each number from 1 is there, each rollout once, as it must be. */
static void check_stream(struct run *run)
{
    bool seen[ALL] = {false};
    for (uint64_t seq = 1; seq <= ALL; seq++) {
        struct msg_stream_fetch fetch = {
            .tag = ++run->world->tag, .stream = S("train"), .from = seq, .has_limit = true, .limit = 1};
        struct msg_trajectory got;
        insist(run, MSG_stream_fetch, &fetch, MSG_trajectory, &got);
        assert_int_equal(got.seq, seq);
        assert_true(slice_is(got.outcome, "ok") && got.has_reward && got.group.len == 2);
        unsigned at = (unsigned)(got.group.data[1] - '0') * SAMPLES + (unsigned)got.sample;
        assert_true(at < ALL && !seen[at]);
        seen[at] = true;
    }
}

/* True when the broker died. */
static bool run_with(enum point point, long at, bool cuts_power)
{
    struct run run = {.world = world_create(), .cuts_power = cuts_power};
    void *state = run.world;
    atomic_store(&slow_disk()->durable_len, 0);
    arm(point, at);
    if (!start(run.world)) {
        int status;
        assert_int_equal(waitpid(run.world->broker, &status, 0), run.world->broker);
        lose(&run);
        disarm();
        assert_true(start(run.world));
    }
    world_connect(run.world);
    fakes_add(run.world);
    open_sampler(&run);
    submit_all(&run);
    uint64_t head;
    for (int64_t end_ms = clock_ms() + WAIT_MS; (head = ask_head(&run)) == 0;)
        assert_true(clock_ms() < end_ms);
    assert_int_equal(head, ALL);
    check_stream(&run);
    check_batch(&run);
    assert_int_equal(ask_head(&run), ALL);
    disarm();
    world_tear_down(&state);
    return run.deaths > 0;
}

static void crash_at(enum point point)
{
    const char *text = getenv("SLUICE_CRASH_RUNS");
    long runs = text ? atol(text) : 6, died = 0;
    for (long at = 1; at <= runs; at++) {
        const bool has_died = run_with(point, at, false);
        if (!has_died || !run_with(point, at, true)) /* it is not called so often: all of them were tried */
            break;
        died++;
    }
    assert_true(died > 0);
}

#define X(name, when)                                                                                                  \
    static void killed_at_##name(void **state)                                                                         \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        crash_at(POINT_##name);                                                                                        \
    }
POINTS(X)
#undef X

int main(int argc, char **argv)
{
    if (world_is_broker(argc, argv))
        return world_be_broker(argc, argv);
    slow_disk();
    const struct CMUnitTest tests[] = {
#define X(name, when) {"killed " when, killed_at_##name, NULL, NULL, NULL},
        POINTS(X)
#undef X
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    slow_disk_remove();
    return failed;
}
