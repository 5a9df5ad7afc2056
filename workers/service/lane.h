/*
 * lane.h - a worker's two sockets: its lane (PULL, bound: what the broker sends to this worker
 * alone) and the broker's SINK (PUSH, connected: beats and results). Neither call blocks.
 *
 * With a key both are CURVE clients of the broker, although the lane is bound: a job comes from the
 * broker whose key the file names, and the broker takes results of workers it knows. Without one a
 * lane is bound to this machine only, unless `allow_plaintext`. When a handshake is refused, the
 * SINK is connected again, every LANE_AGAIN_MS, by lane_mend.
 *
 * The SINK queues nothing while the broker is away (ZMQ_IMMEDIATE): lane_can_send is false then,
 * beats are skipped and results wait in the outbox. ZeroMQ's descriptors are edge-triggered:
 * after a turn of the loop, read and send until there is nothing more, as the calls here say.
 *
 * What is small is bundled (common/net/bundle.h) where the broker reads bundles, and leaves with lane_flush, which is
 * to be called before each wait, or before what is sent next by itself: so the order is that of the calls.
 */
#ifndef SLUICE_WORKERS_SERVICE_LANE_H
#define SLUICE_WORKERS_SERVICE_LANE_H

#include <stdbool.h>
#include <zmq.h>

#include "common/base/buffer.h"
#include "common/net/curve.h"

enum { LANE_AGAIN_MS = 2000 };

struct lane_plan {
    const char *broker;    /* FRONT: tcp://host:port (SINK: port + 1) or ipc://dir/front (dir/sink) */
    const char *advertise; /* the host others reach this one by; NULL: the address that faces the broker */
    unsigned port_first, port_last;
    const char *worker;    /* its id, names the lane's file in ipc mode */
    const struct key *key; /* NULL: plaintext; must live as long as the lane */
    bool allow_plaintext;
};

struct lane {
    void *pull, *push;
    char endpoint[256]; /* as the broker connects to it */
    char sink[256];
    struct handshakes handshakes; /* of the SINK */
    bool has_key, is_refused;
    int64_t again_ms;
    bool bundles;         /* the broker reads them; whoever owns the lane says so */
    struct buffer bundle; /* that is being made */
};

/* Negative errno with a sentence: -EINVAL for the plan, -EADDRINUSE when no port is free. */
int lane_open(struct lane *lane, void *zmq, const struct lane_plan *plan, struct fail *fail);
/* What was sent may take linger_ms longer to leave (at zmq_ctx_term). */
void lane_close(struct lane *lane, int linger_ms);

/*
 * Call it now and then. A sentence when the broker and this worker cannot come to speak to each
 * other, each time it is found out; NULL otherwise.
 */
const char *lane_mend(struct lane *lane, int64_t now_ms);

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
/* Sends it, or bundles it until lane_flush. False: nor when out of memory. */
bool lane_send_copy(struct lane *lane, struct slice bytes);
/* False when what was bundled is lost, because the broker went away since. */
bool lane_flush(struct lane *lane);

#endif
