/*
 * flood - a client that sends as fast as it is read and reads nothing, until SIGTERM; then it prints how many it sent.
 *
 *     flood submits FRONT FROM     submits of one group, again and again
 *     flood asks FRONT FROM        status.get
 *
 * FROM is the address that it comes from: to a broker without keys who comes from another address is another peer.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <zmq.h>

#include "bench/service/raw.h"
#include "schemas/messages/message.h"

static volatile sig_atomic_t is_over;

static void end(int number)
{
    (void)number;
    is_over = 1;
}

static void make_ask(struct buffer *out, uint64_t number)
{
    const struct msg_status_get message = {.tag = number};
    struct refusal no;
    if (!message_encode(MSG_status_get, &message, out, &no))
        raw_die(no.text);
}

static void make_submit(struct buffer *out, uint64_t number)
{
    static const char task[] = "{\"task\":\"noop\",\"kind\":\"noop\"}";
    char name[64];
    snprintf(name, sizeof(name), "flood-%d", (int)getpid());
    const struct msg_group_submit message = {.tag = number,
                                             .group = slice_from_str(name),
                                             .stream = slice_from_str(name),
                                             .samples = 1,
                                             .task = slice_from_str(task)};
    struct refusal no;
    if (!message_encode(MSG_group_submit, &message, out, &no))
        raw_die(no.text);
}

/* The broker's endpoint, tcp://HOST:PORT, as one that is connected to from another address. */
static void format_endpoint(char *ret, size_t size, const char *front, const char *from)
{
    snprintf(ret, size, "tcp://%s:0;%s", from, front + strlen("tcp://"));
}

int main(int argc, char **argv)
{
    if (argc != 4 || (strcmp(argv[1], "submits") != 0 && strcmp(argv[1], "asks") != 0) ||
        strncmp(argv[2], "tcp://", 6) != 0) {
        fprintf(stderr, "usage: flood submits FRONT FROM\n       flood asks FRONT FROM\n");
        return 2;
    }
    const bool submits = strcmp(argv[1], "submits") == 0;
    const struct sigaction action = {.sa_handler = end};
    char endpoint[160];
    sigaction(SIGTERM, &action, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    format_endpoint(endpoint, sizeof(endpoint), argv[2], argv[3]);
    void *context = zmq_ctx_new(), *front = raw_socket(context, ZMQ_DEALER);
    if (zmq_connect(front, endpoint))
        raw_die(endpoint);
    struct buffer out = {0};
    uint64_t sent = 0;
    while (!is_over) {
        buffer_clear(&out);
        (submits ? make_submit : make_ask)(&out, sent);
        if (zmq_send(front, out.data, out.len, 0) >= 0)
            sent++;
        else if (zmq_errno() != EINTR)
            raw_die("cannot send");
    }
    printf("%llu\n", (unsigned long long)sent);
    buffer_finish(&out);
    zmq_close(front);
    zmq_ctx_term(context);
    return 0;
}
