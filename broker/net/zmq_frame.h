/*
 * zmq_frame.h - bytes as ZeroMQ frames. Small ones are copied, large ones are handed over
 * without a copy and counted while a socket still holds them, so that somebody who
 * does not read cannot make the broker hold more than it wants to.
 */
#ifndef SLUICE_BROKER_NET_ZMQ_FRAME_H
#define SLUICE_BROKER_NET_ZMQ_FRAME_H

#include <stdatomic.h>
#include <zmq.h>

#include "common/base/buffer.h"

/*
 * Makes a frame of what the buffer holds. A large buffer is taken and left empty; a small
 * one is copied and kept for the next message. `held` may be NULL; else it grows by the
 * bytes handed over and shrinks when the last socket lets go (on any thread).
 * False when out of memory.
 */
bool zmq_frame_init(zmq_msg_t *frame, struct buffer *bytes, atomic_size_t *held);

bool zmq_frame_init_copy(zmq_msg_t *frame, struct slice bytes);

/* Both send without waiting; false with errno as zmq_msg_send. The frame is gone either way. */
bool zmq_frame_send(void *socket, zmq_msg_t *frame, int flags);
bool zmq_frame_send_copy(void *socket, struct slice bytes, int flags);

static inline struct slice zmq_frame_peek(zmq_msg_t *frame)
{
    return slice_of(zmq_msg_data(frame), zmq_msg_size(frame));
}

#endif
