#include "broker/net/zmq_frame.h"

#include <errno.h>
#include <stdlib.h>

enum { COPIED_MAX = 8192 };

struct handed {
    size_t len;
    atomic_size_t *held;
};

static void frame_let_go(void *data, void *hint)
{
    struct handed *handed = hint;
    if (handed->held)
        atomic_fetch_sub(handed->held, handed->len);
    free(handed);
    free(data);
}

bool zmq_frame_init_copy(zmq_msg_t *frame, struct slice bytes)
{
    if (zmq_msg_init_size(frame, bytes.len) != 0)
        return false;
    if (bytes.len)
        memcpy(zmq_msg_data(frame), bytes.data, bytes.len);
    return true;
}

bool zmq_frame_init(zmq_msg_t *frame, struct buffer *bytes, atomic_size_t *held)
{
    if (bytes->len <= COPIED_MAX)
        return zmq_frame_init_copy(frame, buffer_peek(bytes));
    struct handed *handed = malloc(sizeof(*handed));
    if (!handed)
        return false;
    *handed = (struct handed){bytes->len, held};
    if (zmq_msg_init_data(frame, bytes->data, bytes->len, frame_let_go, handed) != 0) {
        free(handed);
        return false;
    }
    if (held)
        atomic_fetch_add(held, bytes->len);
    *bytes = (struct buffer){0};
    return true;
}

bool zmq_frame_send(void *socket, zmq_msg_t *frame, int flags)
{
    int sent = zmq_msg_send(frame, socket, flags | ZMQ_DONTWAIT);
    if (sent < 0 && errno == EAGAIN) { /* libzmq looks at its mailbox when asked for events */
        int events;
        size_t size = sizeof(events);
        zmq_getsockopt(socket, ZMQ_EVENTS, &events, &size);
        sent = zmq_msg_send(frame, socket, flags | ZMQ_DONTWAIT);
    }
    if (sent >= 0)
        return true;
    int code = errno;
    zmq_msg_close(frame);
    errno = code;
    return false;
}

bool zmq_frame_send_copy(void *socket, struct slice bytes, int flags)
{
    zmq_msg_t frame;
    if (!zmq_frame_init_copy(&frame, bytes)) {
        errno = ENOMEM;
        return false;
    }
    return zmq_frame_send(socket, &frame, flags);
}
