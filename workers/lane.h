/*
 * lane.h - a worker's two sockets: its lane (PULL, bound: what the broker sends to this worker
 * alone) and the broker's SINK (PUSH, connected: beats and results). Neither call blocks.
 *
 * The SINK queues nothing while the broker is away (ZMQ_IMMEDIATE): lane_can_send is false then,
 * beats are skipped and results wait in the outbox. ZeroMQ's descriptors are edge-triggered:
 * after a turn of the loop, read and send until there is nothing more, as the calls here say.
 */
#ifndef SLUICE_WORKERS_LANE_H
#define SLUICE_WORKERS_LANE_H

#include <stdbool.h>
#include <zmq.h>

#include "common/fail.h"

struct lane_plan {
    const char *broker; /* FRONT: tcp://host:port (SINK: port + 1) or ipc://dir/front (dir/sink) */
    const char
        *advertise; /* the host others reach this one by; NULL: the address that faces the broker */
    unsigned port_first, port_last;
    const char *worker; /* its id, names the lane's file in ipc mode */
};

struct lane {
    void *pull, *push;
    char endpoint[256]; /* as the broker connects to it */
    char sink[256];
};

/* Negative errno with a sentence: -EINVAL for the plan, -EADDRINUSE when no port is free. */
int lane_open(struct lane *lane, void *zmq, const struct lane_plan *plan, struct fail *fail);
/* What was sent may take linger_ms longer to leave (at zmq_ctx_term). */
void lane_close(struct lane *lane, int linger_ms);

/* Two descriptors to watch for EPOLLIN. */
bool lane_fds(const struct lane *lane, int ret_fds[2]);

/*
 * The next message; false when there is none. One in several frames, which no peer of ours sends,
 * becomes an empty message. The caller closes it (zmq_msg_close).
 */
bool lane_receive(struct lane *lane, zmq_msg_t *ret);
bool lane_can_send(const struct lane *lane);
/* Takes the message; false when it could not be sent. */
bool lane_send(struct lane *lane, zmq_msg_t *message);

#endif
