#include "broker/net/lane_options.h"

#include <errno.h>
#include <limits.h>
#include <zmq.h>

static const struct {
    int option, value;
} push_options[] = {
    {ZMQ_RCVHWM, 1},    /* nothing comes by a lane, and nobody reads it */
    {ZMQ_LINGER, 0},    /* what is in a closed lane is revoked */
    {ZMQ_IMMEDIATE, 0}, /* the first lane.hello waits for the connection */
    {ZMQ_CONNECT_TIMEOUT, 5000},
    {ZMQ_HANDSHAKE_IVL, 5000},
    {ZMQ_RECONNECT_IVL, 100},
    {ZMQ_RECONNECT_IVL_MAX, 5000},
    {ZMQ_TCP_KEEPALIVE, 1},
    {ZMQ_TCP_KEEPALIVE_IDLE, 30},
    {ZMQ_TCP_KEEPALIVE_INTVL, 10},
    {ZMQ_TCP_KEEPALIVE_CNT, 3},
    {ZMQ_TCP_MAXRT, 30000},
};

int lane_options_set(void *socket, uint64_t messages_max)
{
    const int most = messages_max < INT_MAX ? (int)messages_max : INT_MAX;
    static const int64_t message_max = 4096; /* a greeting's commands */
    if (zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &message_max, sizeof(message_max)) != 0 ||
        zmq_setsockopt(socket, ZMQ_SNDHWM, &most, sizeof(most)) != 0)
        return -errno;
    for (size_t i = 0; i < sizeof(push_options) / sizeof(*push_options); i++)
        if (zmq_setsockopt(socket, push_options[i].option, &push_options[i].value, sizeof(int)))
            return -errno;
    return 0;
}
