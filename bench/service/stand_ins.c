/*
 * stand_ins - many workers in one process, each with connections of its own, that do nothing for a job and say at once
 * that it is done: what the broker costs is measured with them, and how it bears many connections.
 *
 *     stand_ins SINK FIRST COUNT SLOTS     workers FIRST to FIRST + COUNT - 1, of init, run and eval in turn, until
 *                                          stdin ends; prints "ready" when each has heard from the broker
 *
 * Each beats as workers do (beat_time.h), as many on each step of the clock. All lanes are one PULL, bound to a port
 * for each worker: whose a message is, is known by the port that its connection came to.
 */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/queue.h>
#include <unistd.h>
#include <zmq.h>

#include "bench/service/raw.h"
#include "common/base/clock.h"
#include "common/net/bundle.h"
#include "schemas/messages/message.h"
#include "workers/service/beat_time.h"

enum { DESCRIPTORS_MAX = 65536, PORTS = 65536, STEPS = BEAT_MS / BEAT_STEP_MS, NAME_SIZE = 64 };

struct worker {
    void *sink;
    char id[NAME_SIZE], lane[NAME_SIZE];
    enum stage stage;
    uint64_t epoch, beats;
    bool bundles; /* the broker reads them */
    struct buffer results;
    LIST_ENTRY(worker) has_results;
};

struct fleet {
    void *context, *lanes;
    struct worker *workers;
    long count, ready;
    uint64_t slots;
    LIST_HEAD(, worker) with_results;
    int by_port[PORTS], by_fd[DESCRIPTORS_MAX]; /* indices; -1: of none */
    struct buffer out;
};

static void open_worker(struct fleet *fleet, long index, long number, const char *sink)
{
    struct worker *worker = &fleet->workers[index];
    size_t size = sizeof(worker->lane);
    worker->stage = (enum stage)(number % STAGE_COUNT);
    snprintf(worker->id, sizeof(worker->id), "stand-in-%ld-%d", number, (int)getpid());
    worker->sink = raw_unbounded_socket(fleet->context, ZMQ_PUSH);
    if (zmq_connect(worker->sink, sink) || zmq_bind(fleet->lanes, "tcp://127.0.0.1:*") ||
        zmq_getsockopt(fleet->lanes, ZMQ_LAST_ENDPOINT, worker->lane, &size))
        raw_die("a connection");
    fleet->by_port[atoi(strrchr(worker->lane, ':') + 1) % PORTS] = (int)index;
}

static void close_worker(struct worker *worker)
{
    zmq_close(worker->sink);
    buffer_finish(&worker->results);
}

/* ---- what is sent ----------------------------------------------------------------------- */

static struct slice encode(struct fleet *fleet, enum message_id id, const void *message)
{
    struct refusal no;
    buffer_clear(&fleet->out);
    if (!message_encode(id, message, &fleet->out, &no)) {
        fprintf(stderr, "stand_ins: %s\n", no.text);
        exit(1);
    }
    return buffer_peek(&fleet->out);
}

static void send_bytes(const struct worker *worker, struct slice bytes)
{
    if (zmq_send(worker->sink, bytes.data, bytes.len, 0) < 0)
        raw_die("cannot send");
}

static void send_beat(struct fleet *fleet, struct worker *worker)
{
    const struct msg_worker_beat beat = {.worker = slice_from_str(worker->id),
                                         .stage = slice_from_str(stage_wire(worker->stage)),
                                         .slots = fleet->slots,
                                         .lane = slice_from_str(worker->lane),
                                         .host = slice_from_str("bench"),
                                         .progress = ++worker->beats,
                                         .epoch = worker->epoch,
                                         .has_bundles = true,
                                         .bundles = true};
    send_bytes(worker, encode(fleet, MSG_worker_beat, &beat));
}

static void add_result(struct fleet *fleet, struct worker *worker, const struct msg_job_start *start)
{
    const struct msg_job_result result = {.worker = slice_from_str(worker->id),
                                          .job = start->job,
                                          .token = start->token,
                                          .outcome = slice_from_str(outcome_wire(OUTCOME_OK)),
                                          .has_reward = worker->stage == STAGE_EVAL,
                                          .reward = 1};
    const struct slice bytes = encode(fleet, MSG_job_result, &result);
    if (!worker->bundles) {
        send_bytes(worker, bytes);
        return;
    }
    if (!worker->results.len)
        LIST_INSERT_HEAD(&fleet->with_results, worker, has_results);
    if (!bundle_add(&worker->results, bytes))
        raw_die("out of memory");
}

/* What has come together by one look at the lanes leaves as one message of each worker. */
static void send_results(struct fleet *fleet)
{
    struct worker *worker;
    while ((worker = LIST_FIRST(&fleet->with_results))) {
        LIST_REMOVE(worker, has_results);
        send_bytes(worker, bundle_peek(&worker->results));
        buffer_clear(&worker->results);
    }
}

/* ---- what is heard ---------------------------------------------------------------------- */

/* A connection's number may have been another's before, of which a lane's first message is the sign. */
static struct worker *find_worker(struct fleet *fleet, zmq_msg_t *frame, bool is_first)
{
    struct sockaddr_in at;
    socklen_t size = sizeof(at);
    const int fd = zmq_msg_get(frame, ZMQ_SRCFD);
    if (fd < 0 || fd >= DESCRIPTORS_MAX)
        raw_die("a message of no connection");
    if (is_first || fleet->by_fd[fd] < 0) {
        if (getsockname(fd, (struct sockaddr *)&at, &size))
            return NULL; /* it has ended since */
        fleet->by_fd[fd] = fleet->by_port[ntohs(at.sin_port)];
    }
    return fleet->by_fd[fd] < 0 ? NULL : &fleet->workers[fleet->by_fd[fd]];
}

static void hear_hello(struct fleet *fleet, struct worker *worker, const struct msg_lane_hello *hello)
{
    const bool is_news = worker->epoch != hello->epoch;
    fleet->ready += !worker->epoch;
    worker->epoch = hello->epoch;
    worker->bundles = hello->has_bundles && hello->bundles;
    if (is_news)
        send_beat(fleet, worker);
    if (fleet->ready == fleet->count && is_news) {
        puts("ready");
        fflush(stdout);
    }
}

static void hear_one(struct fleet *fleet, zmq_msg_t *frame, struct slice bytes)
{
    enum message_id id;
    union any_message message;
    struct refusal no;
    if (!message_peek(bytes, &id, &no) || !message_decode(id, bytes, &message, &no)) {
        fprintf(stderr, "stand_ins: %s\n", no.text);
        exit(1);
    }
    struct worker *worker = find_worker(fleet, frame, id == MSG_lane_hello);
    if (worker && id == MSG_lane_hello)
        hear_hello(fleet, worker, &message.lane_hello);
    else if (worker && id == MSG_job_start)
        add_result(fleet, worker, &message.job_start);
}

static void hear_all(struct fleet *fleet)
{
    zmq_msg_t frame;
    zmq_msg_init(&frame);
    while (zmq_msg_recv(&frame, fleet->lanes, ZMQ_DONTWAIT) >= 0) {
        const struct slice bytes = slice_of(zmq_msg_data(&frame), zmq_msg_size(&frame));
        struct slice one;
        size_t at = 0;
        if (!is_bundle(bytes))
            hear_one(fleet, &frame, bytes);
        else
            while (bundle_next(bytes, &at, &one) == 1)
                hear_one(fleet, &frame, one);
    }
    zmq_msg_close(&frame);
    send_results(fleet);
}

/* Of those whose beats fall on the clock's step. */
static void send_beats(struct fleet *fleet, int64_t step)
{
    const long at = step % STEPS;
    for (long i = fleet->count * at / STEPS; i < fleet->count * (at + 1) / STEPS; i++)
        send_beat(fleet, &fleet->workers[i]);
}

/* Until stdin ends. */
static void work(struct fleet *fleet)
{
    zmq_pollitem_t items[2] = {{fleet->lanes, 0, ZMQ_POLLIN, 0}, {NULL, STDIN_FILENO, ZMQ_POLLIN, 0}};
    for (int64_t step = clock_wall_ms() / BEAT_STEP_MS; !items[1].revents;) {
        for (; step <= clock_wall_ms() / BEAT_STEP_MS; step++)
            send_beats(fleet, step);
        const int64_t wait_ms = step * BEAT_STEP_MS - clock_wall_ms();
        if (zmq_poll(items, 2, wait_ms < 0 ? 0 : wait_ms) < 0)
            raw_die("poll");
        hear_all(fleet);
    }
}

int main(int argc, char **argv)
{
    static struct fleet fleet;
    if (argc != 5 || atol(argv[2]) < 0 || atol(argv[3]) < 1 || atol(argv[4]) < 1) {
        fprintf(stderr, "usage: stand_ins SINK FIRST COUNT SLOTS\n");
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    fleet.context = raw_context();
    fleet.count = atol(argv[3]);
    fleet.slots = (uint64_t)atol(argv[4]);
    fleet.workers = calloc((size_t)fleet.count, sizeof(*fleet.workers));
    if (!fleet.workers)
        raw_die("out of memory");
    memset(fleet.by_port, 0xff, sizeof(fleet.by_port));
    memset(fleet.by_fd, 0xff, sizeof(fleet.by_fd));
    fleet.lanes = raw_unbounded_socket(fleet.context, ZMQ_PULL);
    for (long i = 0; i < fleet.count; i++)
        open_worker(&fleet, i, atol(argv[2]) + i, argv[1]);
    work(&fleet);
    for (long i = 0; i < fleet.count; i++)
        close_worker(&fleet.workers[i]);
    zmq_close(fleet.lanes);
    zmq_ctx_term(fleet.context);
    free(fleet.workers);
    buffer_finish(&fleet.out);
    return 0;
}
