/* What leaves, now: to a client, to subscribers, to a worker. Who does not read, or is gone, gets nothing. */
#include "broker/io/inner.h"

#include <errno.h>

#include "common/base/log.h"

void io_send(struct io *io, struct slice client, zmq_msg_t *body)
{
    if (!zmq_frame_send_copy(io->front, client, ZMQ_SNDMORE)) {
        zmq_msg_close(body);
        if (errno != EHOSTUNREACH)
            io_complain(&io->undeliverable, "broker.client-not-reading",
                        "an answer was dropped: its client does not read");
        return;
    }
    zmq_frame_send(io->front, body, 0);
}

void io_send_event(struct io *io, struct slice client, zmq_msg_t *body)
{
    if (zmq_frame_send_copy(io->front, client, ZMQ_SNDMORE)) {
        zmq_frame_send(io->front, body, 0);
        return;
    }
    core_tell_live_dropped(io->core, errno != EHOSTUNREACH); /* who has gone misses nothing */
    zmq_msg_close(body);
}

int io_publish(struct io *io, struct slice stream, zmq_msg_t *body, struct fail *fail)
{
    int code = feed_publish(io->feed, stream, body);
    return code ? fail_set(fail, code, "cannot publish: %s", zmq_strerror(-code)) : 0;
}

void io_send_lane(struct io *io, struct slice worker, zmq_msg_t *frame)
{
    struct fail why;
    int code = lanes_send(io->lanes, worker, frame, &why);
    if (code && code != -ENOENT && code != -EAGAIN) /* a lane that is gone or full is known to be */
        log_event(LOG_WARN, "broker.lane-send", "text=\"%s\"", why.text);
}
