/*
 * Any bytes, as a worker's message, read of a real socket: each turn gives a message or is refused in words, and what
 * was given, put together again, is what came, as far as it could be read.
 */
#include <zmq.h>

#include "broker/io/waiting.h"
#include "broker/net/zmq_frame.h"
#include "common/base/cleanup.h"
#include "common/net/bundle.h"
#include "tests/fuzz.h"

static void *push, *pull;

static void open_sockets(void)
{
    void *context = zmq_ctx_new();
    push = zmq_socket(context, ZMQ_PUSH);
    pull = zmq_socket(context, ZMQ_PULL);
    must(zmq_bind(pull, "inproc://sink") == 0 && zmq_connect(push, "inproc://sink") == 0);
}

/* Now and then another message at its end, or its end cut off, so that it stays a bundle. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    AUTO_BUFFER bundle = {0};
    const struct slice last = slice_of(data, size < 16 ? size : 16);
    if (seed % 4 != 0 || (size > 0 && !is_bundle(slice_of(data, size))))
        return LLVMFuzzerMutate(data, size, max_size);
    if (seed % 8 == 0)
        return size > 1 ? size - 1 : size;
    must(buffer_append(&bundle, data, size) && bundle_add(&bundle, last));
    if (bundle.len > max_size)
        return size;
    memcpy(data, bundle.data, bundle.len);
    return bundle.len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!push)
        open_sockets();
    must(zmq_send(push, data, size, 0) >= 0);
    struct waiting *waiting = waiting_read(pull, false);
    must(waiting && waiting->turn.count > 0 && waiting->turn.count <= BUNDLE_COUNT_MAX + 1);
    const bool is_live = waiting_is(waiting, MSG_rollout_live);
    unsigned refused = 0, given = 0, live = 0;
    AUTO_BUFFER again = {0};
    while (waiting->turn.count > 0) {
        struct slice message;
        struct refusal no = {0};
        waiting->turn.count--;
        if (!waiting_next(waiting, zmq_frame_peek(&waiting->body), &message, &no)) {
            must(no.reason == REFUSAL_MALFORMED && no.text[0]);
            refused++;
        } else {
            given++;
            live += message_is(MSG_rollout_live, message);
        }
        must(!waiting->is_bundle || refused || bundle_add(&again, message));
    }
    must(is_live == (refused == 0 && given > 0 && live == given));
    must(!waiting->is_bundle || refused || slice_equal(buffer_peek(&again), slice_of(data, size)));
    waiting_drop(waiting);
    return 0;
}
