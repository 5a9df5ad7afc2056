/*
 * echo - a raw ROUTER that sends each message back to whom it came from, and a client that has messages sent back: what
 * others notice of a flood where there is nothing but libzmq and the machine.
 *
 *     echo serve ENDPOINT                    until SIGTERM; prints "ready"
 *     echo paced ENDPOINT COUNT RATE BYTES   COUNT messages, RATE a second, however soon they come back; prints how
 *                                            many us each took from when it was to be sent
 */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <zmq.h>

#include "bench/service/raw.h"
#include "common/base/clock.h"

enum { PATIENCE_MS = 60000 };

/* For who reads nothing they are dropped, once what waits for it has no room. */
static void serve(void *context, const char *endpoint)
{
    void *router = raw_socket(context, ZMQ_ROUTER);
    zmq_msg_t from, body;
    if (zmq_bind(router, endpoint))
        raw_die(endpoint);
    puts("ready");
    fflush(stdout);
    for (;;) {
        zmq_msg_init(&from);
        zmq_msg_init(&body);
        if (zmq_msg_recv(&from, router, 0) < 0 || zmq_msg_recv(&body, router, 0) < 0)
            raw_die("cannot receive");
        if (zmq_msg_send(&from, router, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0 ||
            zmq_msg_send(&body, router, ZMQ_DONTWAIT) < 0)
            raw_die("cannot send");
    }
}

/* How many came back. */
static long read_echoes(void *dealer, int64_t *due_us, long count)
{
    long came = 0;
    int64_t number;
    zmq_msg_t message;
    zmq_msg_init(&message);
    for (; zmq_msg_recv(&message, dealer, ZMQ_DONTWAIT) >= 0; came++) {
        memcpy(&number, zmq_msg_data(&message), sizeof(number));
        if (number >= 0 && number < count)
            due_us[number] = clock_us() - due_us[number];
    }
    zmq_msg_close(&message);
    return came;
}

static void pace(void *context, const char *endpoint, long count, long rate, size_t size)
{
    void *dealer = raw_socket(context, ZMQ_DEALER);
    char *bytes = calloc(1, size);
    int64_t *us = calloc((size_t)count, sizeof(*us));
    if (!bytes || !us || zmq_connect(dealer, endpoint))
        raw_die(endpoint);
    const int timer = raw_timer(rate);
    const int64_t start_us = clock_us();
    zmq_pollitem_t items[] = {{dealer, 0, ZMQ_POLLIN, 0}, {NULL, timer, ZMQ_POLLIN, 0}};
    uint64_t due = 0, ticks;
    int64_t sent = 0;
    for (long came = 0; came < count; came += read_echoes(dealer, us, count)) {
        items[1].events = sent < count ? ZMQ_POLLIN : 0;
        if (zmq_poll(items, 2, PATIENCE_MS) <= 0)
            raw_die("nothing came back for 60 s");
        if (sent < count && read(timer, &ticks, sizeof(ticks)) == sizeof(ticks))
            due += ticks;
        for (; sent < count && (uint64_t)sent < due; sent++) {
            us[sent] = start_us + (sent + 1) * 1000000 / rate;
            memcpy(bytes, &sent, sizeof(sent));
            if (zmq_send(dealer, bytes, size, 0) < 0)
                raw_die("cannot send");
        }
    }
    for (long i = 0; i < count; i++)
        printf("%lld\n", (long long)us[i]);
    free(us);
    free(bytes);
    close(timer);
    zmq_close(dealer);
}

int main(int argc, char **argv)
{
    const bool serves = argc == 3 && strcmp(argv[1], "serve") == 0, paces = argc == 6 && strcmp(argv[1], "paced") == 0;
    if (!serves && (!paces || atol(argv[3]) < 1 || atol(argv[4]) < 1 || atol(argv[5]) < (long)sizeof(int64_t))) {
        fprintf(stderr, "usage: echo serve ENDPOINT\n       echo paced ENDPOINT COUNT RATE BYTES, 8 bytes at least\n");
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    void *context = zmq_ctx_new();
    if (serves)
        serve(context, argv[2]);
    else
        pace(context, argv[2], atol(argv[3]), atol(argv[4]), (size_t)atol(argv[5]));
    zmq_ctx_term(context);
    return 0;
}
