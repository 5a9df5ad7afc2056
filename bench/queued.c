/*
 * queued - fills a broker's queues: COUNT rollouts in groups of SAMPLES, each group's task of BYTES.
 *
 *     queued FRONT COUNT SAMPLES BYTES      prints the seconds until the last was accepted
 */
#include <stdio.h>
#include <stdlib.h>
#include <zmq.h>

#include "common/clock.h"
#include "schemas/message.h"

enum { WINDOW = 2000 };

static void die(const char *what)
{
    fprintf(stderr, "queued: %s\n", what);
    exit(1);
}

static void submit(void *front, uint64_t number, uint64_t samples, const char *task)
{
    static struct buffer out;
    char group[32];
    snprintf(group, sizeof(group), "q-%llu", (unsigned long long)number);
    struct msg_group_submit message = {.tag = number, .group = slice_from_str(group),
                                       .stream = slice_from_str("queued"), .samples = samples,
                                       .task = slice_from_str(task)};
    struct refusal no;
    buffer_clear(&out);
    if (!message_encode(MSG_group_submit, &message, &out, &no))
        die(no.text);
    if (zmq_send(front, out.data, out.len, 0) < 0)
        die("cannot send");
}

static void await_acceptance(void *front)
{
    zmq_msg_t frame;
    zmq_msg_init(&frame);
    if (zmq_msg_recv(&frame, front, 0) < 0)
        die("cannot receive");
    struct slice bytes = slice_of(zmq_msg_data(&frame), zmq_msg_size(&frame));
    struct msg_group_accepted accepted;
    struct refusal no;
    if (!message_decode(MSG_group_accepted, bytes, &accepted, &no))
        die("a submit was refused");
    zmq_msg_close(&frame);
}

int main(int argc, char **argv)
{
    if (argc != 5)
        die("usage: queued FRONT COUNT SAMPLES BYTES");
    uint64_t samples = strtoull(argv[3], NULL, 10), groups = strtoull(argv[2], NULL, 10) / samples;
    static const char head[] = "{\"task\":\"noop\",\"kind\":\"noop\",\"metadata\":{\"pad\":\"";
    size_t bytes = strtoull(argv[4], NULL, 10);
    char *task = calloc(1, bytes + sizeof(head) + 4);
    void *front = zmq_socket(zmq_ctx_new(), ZMQ_DEALER);
    if (!task || !front || zmq_connect(front, argv[1]) != 0)
        die(argv[1]);
    size_t fixed = sizeof(head) - 1 + 3;
    memcpy(task, head, sizeof(head) - 1);
    memset(task + sizeof(head) - 1, 'x', bytes > fixed ? bytes - fixed : 0);
    strcat(task, "\"}}");
    int64_t begin_us = clock_us();
    for (uint64_t sent = 0, accepted = 0; accepted < groups; accepted++) {
        for (; sent < groups && sent < accepted + WINDOW; sent++)
            submit(front, sent, samples, task);
        await_acceptance(front);
    }
    printf("%.1f\n", (double)(clock_us() - begin_us) / 1e6);
    return 0;
}
