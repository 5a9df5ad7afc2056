/*
 * rollouts - a client that only measures: no-op rollouts through a running broker.
 *
 *     rollouts rate    FRONT FEED COUNT WINDOW BYTES     rollouts per second, WINDOW outstanding
 *     rollouts latency FRONT FEED COUNT BYTES            submit to published trajectory, one at a
 *                                                        time: p50 and p99 in milliseconds
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zmq.h>

#include "common/clock.h"
#include "schemas/message.h"

struct bench {
    void *front, *feed;
    char *task, prefix[64], stream[64];
    struct buffer out;
};

static void die(const char *what)
{
    fprintf(stderr, "rollouts: %s\n", what);
    exit(1);
}

static void *open_socket(void *context, int type, const char *endpoint)
{
    int none = 0;
    void *socket = zmq_socket(context, type);
    if (!socket || zmq_setsockopt(socket, ZMQ_SNDHWM, &none, sizeof(none)) ||
        zmq_setsockopt(socket, ZMQ_RCVHWM, &none, sizeof(none)) ||
        zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof(none)) || zmq_connect(socket, endpoint))
        die(endpoint);
    return socket;
}

static char *make_task(size_t bytes)
{
    static const char format[] = "{\"task\":\"noop\",\"kind\":\"noop\",\"metadata\":{\"pad\":\"%s\"}}";
    size_t fixed = sizeof(format) - 3;
    size_t pad = bytes > fixed ? bytes - fixed : 0;
    char *filler = calloc(1, pad + 1), *task = malloc(sizeof(format) + pad);
    if (!filler || !task)
        die("out of memory");
    memset(filler, 'x', pad);
    snprintf(task, sizeof(format) + pad, format, filler);
    free(filler);
    return task;
}

static void submit(struct bench *bench, uint64_t number)
{
    char group[96];
    snprintf(group, sizeof(group), "%s-%llu", bench->prefix, (unsigned long long)number);
    struct msg_group_submit message = {.tag = number,
                                       .group = slice_from_str(group),
                                       .stream = slice_from_str(bench->stream),
                                       .samples = 1,
                                       .task = slice_from_str(bench->task)};
    struct refusal no;
    buffer_clear(&bench->out);
    if (!message_encode(MSG_group_submit, &message, &bench->out, &no))
        die(no.text);
    if (zmq_send(bench->front, bench->out.data, bench->out.len, 0) < 0)
        die("cannot send");
}

/* A reply on FRONT may only be an acceptance. */
static void read_replies(struct bench *bench)
{
    zmq_msg_t frame;
    zmq_msg_init(&frame);
    while (zmq_msg_recv(&frame, bench->front, ZMQ_DONTWAIT) >= 0) {
        struct slice bytes = slice_of(zmq_msg_data(&frame), zmq_msg_size(&frame));
        struct msg_group_accepted accepted;
        struct msg_refused refused;
        struct refusal no;
        if (!message_decode(MSG_group_accepted, bytes, &accepted, &no)) {
            if (message_decode(MSG_refused, bytes, &refused, &no))
                fprintf(stderr, "%.*s\n", SLICE_ARG(refused.text));
            die("a submit was refused");
        }
    }
    zmq_msg_close(&frame);
}

/* How many trajectories came; waits for the first up to 30 s. */
static long read_feed(struct bench *bench)
{
    zmq_pollitem_t items[2] = {{bench->feed, 0, ZMQ_POLLIN, 0}, {bench->front, 0, ZMQ_POLLIN, 0}};
    if (zmq_poll(items, 2, 30000) <= 0)
        die("nothing came for 30 s; is the broker up with init, run and eval workers?");
    read_replies(bench);
    long count = 0;
    zmq_msg_t frame;
    zmq_msg_init(&frame);
    while (zmq_msg_recv(&frame, bench->feed, ZMQ_DONTWAIT) >= 0) {
        struct slice bytes = slice_of(zmq_msg_data(&frame), zmq_msg_size(&frame));
        enum message_id id;
        struct refusal no;
        bool is_topic = zmq_msg_more(&frame);
        if (!is_topic && message_peek(bytes, &id, &no) && id == MSG_trajectory)
            count++;
    }
    zmq_msg_close(&frame);
    return count;
}

static void measure_rate(struct bench *bench, long count, long window)
{
    int64_t start_us = clock_us();
    for (long sent = 0, ended = 0; ended < count;) {
        while (sent < count && sent - ended < window)
            submit(bench, (uint64_t)sent++);
        ended += read_feed(bench);
    }
    printf("%.0f\n", (double)count * 1e6 / (double)(clock_us() - start_us));
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure_latency(struct bench *bench, long count)
{
    double *ms = calloc((size_t)count, sizeof(*ms));
    if (!ms)
        die("out of memory");
    for (long i = 0; i < count; i++) {
        int64_t start_us = clock_us();
        submit(bench, (uint64_t)i);
        while (read_feed(bench) == 0)
            ;
        ms[i] = (double)(clock_us() - start_us) / 1000;
    }
    qsort(ms, (size_t)count, sizeof(*ms), compare);
    printf("%.2f %.2f\n", ms[count / 2], ms[count * 99 / 100]);
    free(ms);
}

int main(int argc, char **argv)
{
    bool rate = argc == 7 && strcmp(argv[1], "rate") == 0;
    if (!rate && !(argc == 6 && strcmp(argv[1], "latency") == 0)) {
        fprintf(stderr, "usage: rollouts rate FRONT FEED COUNT WINDOW BYTES\n"
                        "       rollouts latency FRONT FEED COUNT BYTES\n");
        return 2;
    }
    void *context = zmq_ctx_new();
    struct bench bench = {.front = open_socket(context, ZMQ_DEALER, argv[2]),
                          .feed = open_socket(context, ZMQ_SUB, argv[3]),
                          .task = make_task((size_t)atol(argv[argc - 1]))};
    snprintf(bench.prefix, sizeof(bench.prefix), "b%lld-%d", (long long)clock_wall_ms(), getpid());
    snprintf(bench.stream, sizeof(bench.stream), "bench-%d", getpid());
    char topic[80];
    snprintf(topic, sizeof(topic), "t/%s/", bench.stream);
    if (zmq_setsockopt(bench.feed, ZMQ_SUBSCRIBE, topic, strlen(topic)))
        die("cannot subscribe");
    usleep(300000); /* a PUB drops what it sends before the subscription has arrived */
    if (rate)
        measure_rate(&bench, atol(argv[4]), atol(argv[5]));
    else
        measure_latency(&bench, atol(argv[4]));
    buffer_finish(&bench.out);
    free(bench.task);
    zmq_close(bench.front);
    zmq_close(bench.feed);
    zmq_ctx_term(context);
    return 0;
}
