#include "bench/service/raw.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <zmq.h>

#include "common/base/descriptors.h"

_Noreturn void raw_die(const char *what)
{
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, zmq_strerror(zmq_errno()));
    exit(1);
}

void *raw_context(void)
{
    void *context = zmq_ctx_new();
    descriptors_allow_all();
    zmq_ctx_set(context, ZMQ_MAX_SOCKETS, zmq_ctx_get(context, ZMQ_SOCKET_LIMIT));
    return context;
}

void *raw_socket(void *context, int type)
{
    const int none = 0;
    void *socket = zmq_socket(context, type);
    if (!socket || zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof(none)))
        raw_die("a socket");
    return socket;
}

void *raw_unbounded_socket(void *context, int type)
{
    const int none = 0;
    void *socket = raw_socket(context, type);
    if (zmq_setsockopt(socket, ZMQ_SNDHWM, &none, sizeof(none)) ||
        zmq_setsockopt(socket, ZMQ_RCVHWM, &none, sizeof(none)))
        raw_die("a socket");
    return socket;
}

int raw_timer(long rate)
{
    const long long period_ns = 1000000000LL / rate;
    const struct timespec period = {.tv_sec = period_ns / 1000000000, .tv_nsec = period_ns % 1000000000};
    const struct itimerspec times = {.it_interval = period, .it_value = period};
    const int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (fd < 0 || timerfd_settime(fd, 0, &times, NULL))
        raw_die("no timer");
    return fd;
}
