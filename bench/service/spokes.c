/*
 * spokes - what many connections cost raw libzmq: one process sends messages by the PUSH of each connection in turn,
 * and two others send each back by a PUSH of their own for that connection, as workers do.
 *
 *     spokes CONNECTIONS COUNT WINDOW BYTES    prints the first one's CPU for a message there and back, us
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include "bench/service/raw.h"

enum { RIMS = 2, ENDPOINT_SIZE = 64, BATCH = 4096 };

struct rim {
    int from_hub, to_hub; /* pipes, for endpoints */
    char lanes[ENDPOINT_SIZE];
    pid_t pid;
};

static void *bind_any(void *context, char ret_endpoint[ENDPOINT_SIZE])
{
    void *pull = raw_unbounded_socket(context, ZMQ_PULL);
    size_t size = ENDPOINT_SIZE;
    if (zmq_bind(pull, "tcp://127.0.0.1:*") || zmq_getsockopt(pull, ZMQ_LAST_ENDPOINT, ret_endpoint, &size))
        raw_die("cannot bind");
    return pull;
}

static void **connect_all(void *context, long count)
{
    void **all = calloc((size_t)count, sizeof(*all));
    for (long i = 0; all && i < count; i++)
        all[i] = raw_unbounded_socket(context, ZMQ_PUSH);
    return all ? all : (raw_die("out of memory"), NULL);
}

static void connect_to(void *push, const char *endpoint)
{
    if (zmq_connect(push, endpoint))
        raw_die(endpoint);
}

static void pass(int fd, char endpoint[ENDPOINT_SIZE], ssize_t (*by)(int, void *, size_t))
{
    if (by(fd, endpoint, ENDPOINT_SIZE) != ENDPOINT_SIZE)
        raw_die("a pipe");
}

static ssize_t give(int fd, void *bytes, size_t size) { return write(fd, bytes, size); }

/* Sends each message back by the connection whose number it says. */
static void be_rim(const struct rim *rim, long count)
{
    char hub[ENDPOINT_SIZE], mine[ENDPOINT_SIZE] = "";
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    void *context = raw_context(), *pull = bind_any(context, mine), **back = connect_all(context, count);
    pass(rim->to_hub, mine, give);
    pass(rim->from_hub, hub, read);
    for (long i = 0; i < count; i++)
        connect_to(back[i], hub);
    for (;;) {
        uint32_t number;
        zmq_msg_t message;
        zmq_msg_init(&message);
        if (zmq_msg_recv(&message, pull, 0) < 0)
            raw_die("cannot receive");
        memcpy(&number, zmq_msg_data(&message), sizeof(number));
        if (zmq_msg_send(&message, back[number], 0) < 0)
            raw_die("cannot send");
    }
}

static void start(struct rim *rim, long connections)
{
    int there[2], back[2];
    if (pipe(there) || pipe(back) || (rim->pid = fork()) < 0)
        raw_die("a process");
    if (rim->pid == 0)
        be_rim(&(struct rim){.from_hub = there[0], .to_hub = back[1]}, connections);
    close(there[0]);
    close(back[1]);
    rim->from_hub = there[1];
    rim->to_hub = back[0];
}

struct hub {
    void *sink, **lanes;
    long connections, next;
    char *bytes;
    size_t size;
};

static void send_next(struct hub *hub)
{
    const uint32_t number = (uint32_t)(hub->next / RIMS); /* among its rim's */
    memcpy(hub->bytes, &number, sizeof(number));
    if (zmq_send(hub->lanes[hub->next], hub->bytes, hub->size, 0) < 0)
        raw_die("cannot send");
    hub->next = (hub->next + 1) % hub->connections;
}

/* Waits for one, then takes what else is there. */
static long take(struct hub *hub)
{
    long count = 0;
    zmq_msg_t message;
    zmq_msg_init(&message);
    while (count < BATCH && zmq_msg_recv(&message, hub->sink, count ? ZMQ_DONTWAIT : 0) >= 0)
        count++;
    zmq_msg_close(&message);
    return count;
}

static void flow(struct hub *hub, long count, long window)
{
    for (long sent = 0, came = 0; came < count; came += take(hub))
        for (; sent < count && sent - came < window; sent++)
            send_next(hub);
}

static double cpu_us(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

int main(int argc, char **argv)
{
    struct rim rims[RIMS] = {0};
    char mine[ENDPOINT_SIZE] = "";
    if (argc != 5 || atol(argv[1]) < RIMS || atol(argv[2]) < 1 || atol(argv[3]) < 1 || atol(argv[4]) < 4) {
        fprintf(stderr, "usage: spokes CONNECTIONS COUNT WINDOW BYTES, %d connections and 4 bytes at least\n", RIMS);
        return 2;
    }
    struct hub hub = {.connections = atol(argv[1]), .size = (size_t)atol(argv[4])};
    for (int i = 0; i < RIMS; i++)
        start(&rims[i], (hub.connections - i + RIMS - 1) / RIMS);
    void *context = raw_context();
    hub.sink = bind_any(context, mine);
    hub.lanes = connect_all(context, hub.connections);
    hub.bytes = calloc(1, hub.size);
    if (!hub.bytes)
        raw_die("out of memory");
    for (int i = 0; i < RIMS; i++) {
        pass(rims[i].to_hub, rims[i].lanes, read);
        pass(rims[i].from_hub, mine, give);
    }
    for (long i = 0; i < hub.connections; i++)
        connect_to(hub.lanes[i], rims[i % RIMS].lanes);
    flow(&hub, 2 * hub.connections, hub.connections); /* all are connected, and warm */
    const double before = cpu_us();
    flow(&hub, atol(argv[2]), atol(argv[3]));
    printf("%.2f\n", (cpu_us() - before) / (double)atol(argv[2]));
    for (int i = 0; i < RIMS; i++) {
        kill(rims[i].pid, SIGKILL);
        waitpid(rims[i].pid, NULL, 0);
    }
    for (long i = 0; i < hub.connections; i++)
        zmq_close(hub.lanes[i]);
    zmq_close(hub.sink);
    zmq_ctx_term(context);
    free(hub.lanes);
    free(hub.bytes);
    return 0;
}
