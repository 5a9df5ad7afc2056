/*
 * worker_harness.h - what stands around a real sluice-worker in a test: the broker's side of lane
 * and SINK, and an engine that accepts connections and never answers, so that a run job lasts until
 * the test ends it. Every wait is for an event and has a bound; past it the test fails.
 */
#ifndef SLUICE_TESTS_WORKER_HARNESS_H
#define SLUICE_TESTS_WORKER_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include "common/clock.h"
#include "schemas/message.h"

enum { BOUND_MS = 20000, QUIET_MS = 300 };

/* ---- the broker ------------------------------------------------------------------------- */

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
static unsigned heard_count; /* messages of all workers */
static struct { /* the last engine.sight */
    unsigned count;
    char url[257];
    uint64_t runs, tokens, calls;
} sight;
static uint64_t next_token;

static inline void forget_heard(void)
{
    if (has_heard)
        zmq_msg_close(&heard.bytes);
    has_heard = false;
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
    for (int port = 15000 + (int)getpid() % 4000 * 2;; port += 2) {
        assert_true(port < 32000);
        snprintf(front, sizeof(front), "tcp://%s:%d", broker_host, port);
        snprintf(sink_endpoint, sizeof(sink_endpoint), "tcp://%s:%d", broker_host, port + 1);
        void *trial = socket_new(ZMQ_PULL);
        int wrong = zmq_bind(trial, sink_endpoint);
        zmq_close(trial);
        if (wrong == 0)
            return;
    }
}

static inline void take_sight(struct slice bytes)
{
    struct msg_engine_sight in;
    struct refusal no = {0};
    if (!message_decode(MSG_engine_sight, bytes, &in, &no))
        fail_msg("a worker's sight is refused: %s %s", no.field, no.text);
    sight.count++;
    snprintf(sight.url, sizeof(sight.url), "%.*s", SLICE_ARG(in.url));
    sight.runs = in.runs;
    sight.tokens = in.tokens;
    sight.calls = in.calls;
}

/*
 * Every message a worker sends must obey the schema. False when none came in time. What it says of
 * engines is noted on the way.
 */
static inline bool hear(int64_t bound_ms)
{
    struct refusal no = {0};
    forget_heard();
    zmq_pollitem_t item = {.socket = sink, .events = ZMQ_POLLIN};
    if (zmq_poll(&item, 1, bound_ms < 0 ? 0 : (long)bound_ms) <= 0)
        return false;
    zmq_msg_init(&heard.bytes);
    has_heard = true;
    heard_count++;
    assert_true(zmq_msg_recv(&heard.bytes, sink, 0) >= 0);
    assert_false(zmq_msg_more(&heard.bytes));
    struct slice bytes = slice_of(zmq_msg_data(&heard.bytes), zmq_msg_size(&heard.bytes));
    assert_true(message_peek(bytes, &heard.id, &no));
    if (heard.id == MSG_engine_sight) {
        take_sight(bytes);
        return hear(bound_ms);
    }
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

static inline void say(enum message_id id, const void *message)
{
    struct buffer out = {0};
    struct refusal no = {0};
    if (!message_encode(id, message, &out, &no))
        fail_msg("cannot encode: %s %s", no.field, no.text);
    say_bytes(out.data, out.len, 0);
    buffer_finish(&out);
}

static inline void say_hello(uint64_t epoch)
{
    say(MSG_lane_hello, &(struct msg_lane_hello){.epoch = epoch});
}

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
    say(MSG_lane_drain, &(struct msg_lane_drain){.grace_s = grace_s < 0 ? 0 : (uint64_t)grace_s,
                                                 .has_grace_s = grace_s >= 0});
}

static const char noop_task[] = "{\"task\":\"t\",\"kind\":\"noop\",\"prompt\":\"p\"}";
static const char chat_task[] =
    "{\"task\":\"t\",\"prompt\":\"p\",\"agent\":{\"kind\":\"chat\"},\"eval\":{\"kind\":\"none\"},"
    "\"limits\":{\"run_s\":600}}";

/* On a layer that init left; NULL: none. */
static inline uint64_t say_start_on(const char *job, uint64_t token, const char *task,
                                    const char *engine, const char *layer)
{
    char stage[16] = "";
    sscanf(job, "%15[^:]", stage);
    struct msg_job_start start = {.job = slice_from_str(job),
                                  .token = token,
                                  .stage = slice_from_str(stage),
                                  .group = slice_from_str("g"),
                                  .attempt = 1,
                                  .task = slice_from_str(task),
                                  .engine = slice_from_str(engine),
                                  .has_engine = engine != NULL,
                                  .init_layer_digest = slice_from_str(layer),
                                  .has_init_layer_digest = layer != NULL};
    say(MSG_job_start, &start);
    return token;
}

static inline uint64_t say_start_as(const char *job, uint64_t token, const char *task,
                                    const char *engine)
{
    return say_start_on(job, token, task, engine, NULL);
}

static inline uint64_t say_start(const char *job)
{
    return say_start_as(job, ++next_token, noop_task, NULL);
}

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

#define hear_beat_until(condition)                                                                 \
    for (int64_t end_ = clock_ms() + BOUND_MS; hear_beat() && !(condition);)                       \
        if (clock_ms() > end_)                                                                     \
            fail_msg("no beat with " #condition);

/* The next result, which must be of this job; beats on the way are passed over. */
static inline const struct msg_job_result *hear_result(const char *job)
{
    for (int64_t end = clock_ms() + BOUND_MS;;) {
        if (!hear(end - clock_ms()))
            fail_msg("no result of %s within %d ms", job, BOUND_MS);
        if (heard.id == MSG_worker_beat)
            continue;
        if (!slice_is(heard.result.job, job))
            fail_msg("result of %.*s instead of %s", SLICE_ARG(heard.result.job), job);
        return &heard.result;
    }
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

/* ---- the engine ------------------------------------------------------------------------- */

static int engine_listener = -1;
static char silent_url[64];

static inline void engine_start(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    engine_listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(engine_listener, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(engine_listener, 64), 0);
    assert_int_equal(getsockname(engine_listener, (struct sockaddr *)&address, &len), 0);
    snprintf(silent_url, sizeof(silent_url), "http://127.0.0.1:%d", ntohs(address.sin_port));
}

static inline void wait_readable(int fd, const char *what)
{
    struct pollfd item = {.fd = fd, .events = POLLIN};
    if (poll(&item, 1, BOUND_MS) != 1)
        fail_msg("no %s within %d ms", what, BOUND_MS);
}

/* A job's request has arrived: the job is running, and stays so while this is open. */
static inline int engine_accept(void)
{
    wait_readable(engine_listener, "request to the engine");
    int fd = accept4(engine_listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

/* Waits until the worker closed the connection. */
static inline void engine_see_close(int fd)
{
    char bytes[4096];
    ssize_t count;
    do {
        wait_readable(fd, "end of the request");
        count = recv(fd, bytes, sizeof(bytes), 0);
    } while (count > 0);
    close(fd);
}

/* Lets the job end: the engine is gone for good. */
static inline void engine_stop(int fd)
{
    if (engine_listener >= 0)
        close(engine_listener);
    engine_listener = -1;
    if (fd >= 0)
        close(fd);
}

/* ---- the worker ------------------------------------------------------------------------- */

struct worker_process {
    pid_t pid;
    int out;
    char said[512]; /* its first line */
};

static char directory[128];    /* TMPDIR and everything else of one test */
static pid_t workers_alive[8]; /* ended by worker_kill_all if a test fails half-way */

static int worker_net = -1;    /* the network namespace of workers to come; -1: this one */

static inline void worker_exec(const char *const *argv, int out)
{
    if (worker_net >= 0 && setns(worker_net, CLONE_NEWNET) < 0)
        _exit(126);
    char program[512];
    const char *built = getenv("SLUICE_BINARY_DIR");
    snprintf(program, sizeof(program), "%s/workers/sluice-worker", built ? built : ".");
    setenv("TMPDIR", directory, 1);
    unsetenv("SLUICE_STORE");
    dup2(out, STDOUT_FILENO);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* unless --with-parent says otherwise */
    execv(program, (char *const *)argv);
    fprintf(stderr, "cannot run %s: %s\n", program, strerror(errno));
    _exit(127);
}

/* Starts it with these further arguments (NULL at the end); does not wait. */
static inline struct worker_process worker_launch(const char *first, ...)
{
    char data[160];
    const char *argv[24] = {"sluice-worker", "--broker", front, "--data", data};
    int count = 5, ends[2];
    snprintf(data, sizeof(data), "%s/data", directory);
    va_list rest;
    va_start(rest, first);
    for (const char *at = first; at && count < 23; at = va_arg(rest, const char *))
        argv[count++] = at;
    va_end(rest);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    struct worker_process worker = {.pid = fork(), .out = ends[0]};
    if (worker.pid == 0)
        worker_exec(argv, ends[1]);
    close(ends[1]);
    for (int i = 0; i < 8; i++)
        if (workers_alive[i] == 0) {
            workers_alive[i] = worker.pid;
            break;
        }
    return worker;
}

/* Waits for its end, which must be near; its status. */
static inline int worker_reap(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    for (int i = 0; i < 8; i++)
        if (workers_alive[i] == pid)
            workers_alive[i] = 0;
    return status;
}

static inline void worker_kill_all(void)
{
    for (int i = 0; i < 8; i++)
        if (workers_alive[i] > 0) {
            kill(workers_alive[i], SIGKILL);
            worker_reap(workers_alive[i]);
        }
}

/* Its first line; "" when it ended without one. */
static inline void worker_hear(struct worker_process *worker)
{
    size_t len = 0;
    while (len < sizeof(worker->said) - 1 && !memchr(worker->said, '\n', len)) {
        wait_readable(worker->out, "word of the worker");
        ssize_t count = read(worker->out, worker->said + len, 1);
        if (count <= 0)
            break;
        len += (size_t)count;
    }
    worker->said[len] = '\0';
}

#define worker_start(...)                                                                          \
    ({                                                                                             \
        struct worker_process made_ = worker_launch(__VA_ARGS__, NULL);                            \
        worker_hear(&made_);                                                                       \
        assert_memory_equal(made_.said, "worker ready", 12);                                       \
        made_;                                                                                     \
    })

/* Its exit status, or 256 + signal. It is killed, and the test fails, if it does not end. */
static inline int worker_wait(struct worker_process *worker)
{
    struct pollfd item = {.fd = worker->out, .events = POLLIN};
    char bytes[4096];
    int64_t end = clock_ms() + BOUND_MS;
    do {
        if (poll(&item, 1, (int)(end - clock_ms())) < 1) {
            kill(worker->pid, SIGKILL);
            worker_reap(worker->pid);
            fail_msg("the worker did not end within %d ms", BOUND_MS);
        }
    } while (read(worker->out, bytes, sizeof(bytes)) > 0);
    int status = worker_reap(worker->pid);
    close(worker->out);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

static inline int worker_stop(struct worker_process *worker)
{
    kill(worker->pid, SIGTERM);
    return worker_wait(worker);
}

/* ---- around each test ------------------------------------------------------------------- */

static inline int set_up(void **state)
{
    (void)state;
    snprintf(directory, sizeof(directory), "/tmp/sluice-test-XXXXXX");
    if (!mkdtemp(directory) || chmod(directory, 0755) < 0)
        return -1;
    zmq = zmq_ctx_new();
    next_token = 100;
    broker_choose_port();
    broker_come_back();
    engine_start();
    return 0;
}

static inline int remove_one(const char *path, const struct stat *about, int type, struct FTW *where)
{
    (void)about, (void)type, (void)where;
    return remove(path);
}

static inline int tear_down(void **state)
{
    (void)state;
    worker_kill_all();
    forget_heard();
    broker_die();
    engine_stop(-1);
    zmq_ctx_term(zmq);
    return nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
