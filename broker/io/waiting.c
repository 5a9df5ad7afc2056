#include "broker/io/waiting.h"

#include <stdlib.h>

#include "broker/net/zmq_frame.h"
#include "common/net/bundle.h"

/* Reads frames until the message's end: what comes beyond its place is dropped as it comes. */
static bool drain_rest(void *socket, zmq_msg_t *last)
{
    bool alone = !zmq_msg_more(last);
    zmq_msg_t frame;
    for (bool more = !alone; more; zmq_msg_close(&frame)) {
        zmq_msg_init(&frame);
        more = zmq_msg_recv(&frame, socket, ZMQ_DONTWAIT) >= 0 && zmq_msg_more(&frame);
    }
    return alone;
}

void waiting_drop(struct waiting *waiting)
{
    zmq_msg_close(&waiting->from);
    zmq_msg_close(&waiting->body);
    free(waiting);
}

/* How many turns a bundle needs. */
static uint32_t count_turns(struct slice bundle)
{
    struct slice message;
    size_t at = 0;
    uint32_t count = 0;
    int code;
    while ((code = bundle_next(bundle, &at, &message)) == 1 && count < BUNDLE_COUNT_MAX)
        count++;
    return count + (code != 0 || count == 0);
}

struct waiting *waiting_read(void *socket, bool is_client)
{
    struct waiting *waiting = calloc(1, sizeof(*waiting));
    if (!waiting)
        return NULL;
    zmq_msg_init(&waiting->from);
    zmq_msg_init(&waiting->body);
    bool got = !is_client || zmq_msg_recv(&waiting->from, socket, ZMQ_DONTWAIT) >= 0;
    if (!got || zmq_msg_recv(&waiting->body, socket, ZMQ_DONTWAIT) < 0) {
        waiting_drop(waiting);
        return NULL;
    }
    const struct slice body = zmq_frame_peek(&waiting->body);
    waiting->alone = drain_rest(socket, &waiting->body);
    waiting->is_bundle = !is_client && waiting->alone && is_bundle(body);
    waiting->turn.bytes = body.len;
    waiting->turn.count = waiting->is_bundle ? count_turns(body) : 1;
    return waiting;
}

bool waiting_is(struct waiting *waiting, enum message_id id)
{
    const struct slice body = zmq_frame_peek(&waiting->body);
    struct slice message;
    size_t at = 0;
    int code;
    if (!waiting->is_bundle)
        return message_is(id, body);
    while ((code = bundle_next(body, &at, &message)) == 1)
        if (!message_is(id, message))
            return false;
    return code == 0 && at > 1;
}

bool waiting_next(struct waiting *waiting, struct slice body, struct slice *ret, struct refusal *no)
{
    *ret = body;
    if (!waiting->is_bundle)
        return true;
    const int code = bundle_next(body, &waiting->at, ret);
    if (code == 0)
        return refuse(no, REFUSAL_MALFORMED, "", "a bundle holds no message");
    if (code < 0)
        return refuse(no, REFUSAL_MALFORMED, "", "the end of a bundle of %zu bytes is cut short", body.len);
    if (waiting->turn.count == 0 && waiting->at < body.len)
        return refuse(no, REFUSAL_MALFORMED, "", "a bundle holds more than %d messages", BUNDLE_COUNT_MAX);
    return !is_bundle(*ret) || refuse(no, REFUSAL_MALFORMED, "", "a bundle holds another one");
}
