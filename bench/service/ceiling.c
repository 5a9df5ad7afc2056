/*
 * ceiling - what raw libzmq and a group-committed file can do: the limit that the broker is
 * measured against. One process passes jobs through three stages of no-op workers over tcp,
 * one PUSH per worker with credits down, one PUSH/PULL up; every submit and every stage result
 * is appended to a file, and nothing is passed on before fdatasync of all that had arrived.
 *
 *     ceiling WORKERS JOBS WINDOW CREDIT BYTES FILE        prints jobs per second; "-": without a file
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include "bench/service/raw.h"
#include "common/base/clock.h"

enum { STAGES = 3, WORKERS_MAX = 64, BATCH = 4096 };

struct job {
    uint64_t id;
    uint32_t stage, worker;
};

struct shared {
    atomic_int ready;
    atomic_long rate;
};

static int first_port; /* of those up to first_port + WORKERS_MAX + 1 */
static long workers, jobs, window, credit, job_bytes;
static struct shared *shared;

#define check(call)                                                                                                    \
    do {                                                                                                               \
        if ((call) < 0) {                                                                                              \
            fprintf(stderr, "ceiling: %s: %s\n", #call, zmq_strerror(errno));                                          \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

static void *open_socket(void *context, int type, int port, bool binds)
{
    char endpoint[64];
    void *socket = raw_unbounded_socket(context, type);
    snprintf(endpoint, sizeof(endpoint), "tcp://127.0.0.1:%d", port);
    check(binds ? zmq_bind(socket, endpoint) : zmq_connect(socket, endpoint));
    return socket;
}

static void be_worker(int index)
{
    void *context = zmq_ctx_new();
    void *lane = open_socket(context, ZMQ_PULL, first_port + 2 + index, true);
    void *sink = open_socket(context, ZMQ_PUSH, first_port, false);
    atomic_fetch_add(&shared->ready, 1);
    for (;;) {
        zmq_msg_t message;
        zmq_msg_init(&message);
        check(zmq_msg_recv(&message, lane, 0));
        check(zmq_msg_send(&message, sink, 0));
    }
}

static void be_client(void)
{
    void *context = zmq_ctx_new();
    void *submit = open_socket(context, ZMQ_PUSH, first_port, false);
    void *feed = open_socket(context, ZMQ_PULL, first_port + 1, true);
    char *bytes = calloc(1, (size_t)job_bytes);
    if (!bytes)
        _exit(1);
    while (atomic_load(&shared->ready) < STAGES * workers + 1)
        usleep(1000);
    int64_t start_us = clock_us();
    for (long sent = 0, ended = 0; ended < jobs;) {
        for (; sent < jobs && sent - ended < window; sent++) {
            struct job job = {.id = (uint64_t)sent, .stage = STAGES};
            memcpy(bytes, &job, sizeof(job));
            check(zmq_send(submit, bytes, (size_t)job_bytes, 0));
        }
        zmq_msg_t message;
        zmq_msg_init(&message);
        check(zmq_msg_recv(&message, feed, 0));
        do
            ended++;
        while (zmq_msg_recv(&message, feed, ZMQ_DONTWAIT) >= 0);
        zmq_msg_close(&message);
    }
    atomic_store(&shared->rate, (long)(jobs * 1e6 / (double)(clock_us() - start_us)));
    _exit(0);
}

struct queue {
    zmq_msg_t *items;
    size_t head, tail, size;
};

static struct queue queues[STAGES];
static void *lanes[WORKERS_MAX];
static long free_slots[WORKERS_MAX];

static void hand_out(uint32_t stage)
{
    struct queue *queue = &queues[stage];
    for (long i = 0; i < workers && queue->head != queue->tail; i++) {
        long worker = (long)stage * workers + i;
        while (free_slots[worker] > 0 && queue->head != queue->tail) {
            zmq_msg_t *message = &queue->items[queue->head++ % queue->size];
            ((struct job *)zmq_msg_data(message))->worker = (uint32_t)worker;
            check(zmq_msg_send(message, lanes[worker], 0));
            free_slots[worker]--;
        }
    }
}

/* After the commit: the job goes to its next stage, or is done. */
static void pass_on(zmq_msg_t *message, void *feed)
{
    struct job *job = zmq_msg_data(message);
    if (job->stage < STAGES)
        free_slots[job->worker]++;
    job->stage = job->stage == STAGES ? 0 : job->stage + 1;
    if (job->stage == STAGES) {
        check(zmq_msg_send(message, feed, 0));
        return;
    }
    struct queue *queue = &queues[job->stage];
    zmq_msg_t *slot = &queue->items[queue->tail++ % queue->size];
    zmq_msg_init(slot);
    zmq_msg_move(slot, message);
}

/* Waits for one message, then takes what else is there. */
static int take_batch(void *sink, zmq_msg_t *batch)
{
    int count = 0;
    zmq_msg_init(&batch[0]);
    check(zmq_msg_recv(&batch[0], sink, 0));
    for (count = 1; count < BATCH; count++) {
        zmq_msg_init(&batch[count]);
        if (zmq_msg_recv(&batch[count], sink, ZMQ_DONTWAIT) < 0)
            break;
    }
    return count;
}

/* Until they are on disk. */
static void commit(int file, zmq_msg_t *batch, int count, char *log)
{
    size_t len = 0;
    for (int i = 0; i < count; i++, len += (size_t)job_bytes)
        memcpy(log + len, zmq_msg_data(&batch[i]), (size_t)job_bytes);
    check(write(file, log, len) == (ssize_t)len ? 0 : -1);
    check(fdatasync(file));
}

static void be_broker(const char *path)
{
    int file = -1;
    if (strcmp(path, "-") != 0)
        check(file = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600));
    void *context = zmq_ctx_new();
    void *sink = open_socket(context, ZMQ_PULL, first_port, true);
    void *feed = open_socket(context, ZMQ_PUSH, first_port + 1, false);
    for (int i = 0; i < STAGES * workers; i++) {
        lanes[i] = open_socket(context, ZMQ_PUSH, first_port + 2 + i, false);
        free_slots[i] = credit;
    }
    for (int i = 0; i < STAGES; i++) {
        queues[i].size = (size_t)window + 1;
        queues[i].items = calloc(queues[i].size, sizeof(zmq_msg_t));
    }
    zmq_msg_t *batch = calloc(BATCH, sizeof(zmq_msg_t));
    char *log = malloc((size_t)BATCH * (size_t)job_bytes);
    if (!batch || !log)
        _exit(1);
    atomic_fetch_add(&shared->ready, 1);
    for (;;) {
        int count = take_batch(sink, batch);
        if (file >= 0)
            commit(file, batch, count, log);
        for (int i = 0; i < count; i++)
            pass_on(&batch[i], feed);
        for (uint32_t stage = 0; stage < STAGES; stage++)
            hand_out(stage);
    }
}

static pid_t child(void)
{
    pid_t pid = fork();
    if (pid == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    return pid;
}

int main(int argc, char **argv)
{
    if (argc != 7) {
        fprintf(stderr, "usage: ceiling WORKERS JOBS WINDOW CREDIT BYTES FILE\n");
        return 2;
    }
    first_port = 10000 + getpid() % 200 * (WORKERS_MAX + 2);
    workers = atol(argv[1]), jobs = atol(argv[2]), window = atol(argv[3]);
    credit = atol(argv[4]), job_bytes = atol(argv[5]);
    if (workers < 1 || workers * STAGES > WORKERS_MAX || jobs < 1 || window < 1 || credit < 1 ||
        job_bytes < (long)sizeof(struct job)) {
        fprintf(stderr, "ceiling: at most %d workers in all, the rest positive\n", WORKERS_MAX);
        return 2;
    }
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    pid_t pids[WORKERS_MAX + 2];
    int count = 0;
    for (int i = 0; i < STAGES * workers; i++)
        if (!(pids[count++] = child()))
            be_worker(i);
    if (!(pids[count++] = child()))
        be_broker(argv[6]);
    if (!(pids[count++] = child()))
        be_client();
    int status;
    waitpid(pids[count - 1], &status, 0);
    for (int i = 0; i < count - 1; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
    if (strcmp(argv[6], "-") != 0)
        unlink(argv[6]);
    printf("%ld\n", atomic_load(&shared->rate));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
}
