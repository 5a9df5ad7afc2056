/* What leaves, now: to a client, to subscribers, to a worker. Who does not read, or is gone, gets nothing. */
#include "broker/io/inner.h"

#include <errno.h>

#include "common/base/clock.h"
#include "common/base/log.h"

enum { ACK_COMPANY_MS = 20 }; /* a beat that comes meanwhile lists the job again, and is answered */

/* False: it was dropped for want of room. Who has gone misses nothing. */
static bool send_front(struct io *io, struct slice client, zmq_msg_t *body)
{
    if (zmq_frame_send_copy(io->front, client, ZMQ_SNDMORE)) {
        zmq_frame_send(io->front, body, 0);
        return true;
    }
    const bool is_gone = errno == EHOSTUNREACH;
    zmq_msg_close(body);
    return is_gone;
}

void io_send(struct io *io, struct slice client, zmq_msg_t *body)
{
    if (!send_front(io, client, body))
        io_complain(&io->undeliverable, "broker.client-not-reading", "an answer was dropped: its client does not read");
}

void io_send_event(struct io *io, struct slice client, zmq_msg_t *body)
{
    if (!send_front(io, client, body))
        core_tell_live_dropped(io->core, 1);
}

int io_publish(struct io *io, struct slice stream, zmq_msg_t *body, struct fail *fail)
{
    int code = feed_publish(io->feed, stream, body);
    return code ? fail_set(fail, code, "cannot publish: %s", zmq_strerror(-code)) : 0;
}

/* An acknowledgement may go with the next job: all that the worker does meanwhile is keep the result. */
void io_send_lane(struct io *io, struct slice worker, struct slice task, zmq_msg_t *frame)
{
    struct fail why;
    const bool may_wait = message_is(MSG_result_ack, zmq_frame_peek(frame));
    int code = lanes_send(io->lanes, worker, task, frame, may_wait ? clock_ms() + ACK_COMPANY_MS : 0, &why);
    if (code && code != -ENOENT && code != -EAGAIN) /* a lane that is gone or full is known to be */
        log_event(LOG_WARN, "broker.lane-send", "text=\"%s\"", why.text);
}
