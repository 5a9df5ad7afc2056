/*
 * Sending what the core asks for, once the ledger has done its part of a batch (batch.c); what promises something, by
 * way of promises.c.
 */
#include "broker/io/inner.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/log.h"

/* ---- clients and the feed -------------------------------------------------------------- */

/* The bytes of a large answer are counted while they are unread. */
static bool make_answer(struct io *io, struct slice bytes, zmq_msg_t *ret)
{
    if (bytes.len <= ANSWER_LARGE)
        return zmq_frame_init_copy(ret, bytes);
    buffer_clear(&io->out);
    return buffer_append(&io->out, bytes.data, bytes.len) && zmq_frame_init(ret, &io->out, &io->held.answers);
}

/* A large answer is dropped while as many bytes of such are unread as may be: who asked asks again. */
static int do_send_client(struct io *io, const struct effect *effect, struct fail *fail)
{
    zmq_msg_t body;
    if (effect->bytes.len > ANSWER_LARGE && atomic_load(&io->held.answers) > FRONT_HELD_MAX) {
        io_complain(&io->undeliverable, "broker.client-not-reading", "a large answer was dropped: clients do not read");
        return 0;
    }
    if (!make_answer(io, effect->bytes, &body))
        return fail_set(fail, -ENOMEM, "out of memory");
    return promise_send(io, PROMISE_CLIENT, effect->client, &body, fail);
}

static int do_publish_head(struct io *io, const struct effect *effect, struct fail *fail)
{
    zmq_msg_t body;
    if (!zmq_frame_init_copy(&body, effect->bytes))
        return fail_set(fail, -ENOMEM, "out of memory");
    return promise_send(io, PROMISE_FEED, effect->stream, &body, fail);
}

/* ---- lanes: what goes wrong with one is the core's to mend, by lanes_take_broken or a deadline -- */

static int do_lane_refused(struct io *io, const struct effect *effect, struct fail *fail)
{
    (void)io, (void)fail;
    log_event(LOG_WARN, "broker.lane-refused", "text=\"the lane of worker %.*s cannot be opened: %.*s\" action=no-jobs",
              SLICE_ARG(effect->worker), SLICE_ARG(effect->detail));
    return 0;
}

static int do_lane_open(struct io *io, const struct effect *effect, struct fail *fail)
{
    (void)fail;
    struct fail why;
    const struct lane_limits limits = {.messages_max = effect->limit, .bundles = effect->bundles};
    if (lanes_open(io->lanes, effect->worker, effect->endpoint, effect->peer, limits, clock_ms(), &why) != 0)
        log_event(LOG_WARN, "broker.lane-refused", "text=\"%s\" action=worker-lost", why.text);
    return 0;
}

static int do_lane_send(struct io *io, const struct effect *effect, struct fail *fail)
{
    zmq_msg_t frame;
    if (!zmq_frame_init_copy(&frame, effect->bytes))
        return fail_set(fail, -ENOMEM, "out of memory");
    if (effect->is_promise)
        return promise_send(io, PROMISE_LANE, effect->worker, &frame, fail);
    io_send_lane(io, effect->worker, &frame);
    return 0;
}

static int do_lane_close(struct io *io, const struct effect *effect, struct fail *fail)
{
    (void)fail;
    lanes_close(io->lanes, effect->worker);
    return 0;
}

/* ---- what was loaded --------------------------------------------------------------------------- */

static int send_loaded(struct io *io, const struct effect *effect, zmq_msg_t *body, struct fail *fail)
{
    switch (effect->kind) {
    case LANE_JOB: io_send_lane(io, effect->worker, body); return 0;
    case PUBLISH_TRAJECTORY: return promise_send(io, PROMISE_FEED, effect->stream, body, fail);
    case SEND_LIST: return promise_send(io, PROMISE_CLIENT, effect->list.client, body, fail);
    default: return promise_send(io, PROMISE_CLIENT, effect->client, body, fail);
    }
}

/* All of that effect, which is next of what was loaded. */
static int send_all_loaded(struct io *io, struct batch *batch, size_t at, struct fail *fail)
{
    struct loaded *loaded;
    int code = 0;
    while (code == 0 && (loaded = STAILQ_FIRST(&batch->loaded)) && loaded->effect == at) {
        code = send_loaded(io, &batch->effects.items[at], &loaded->body, fail);
        STAILQ_REMOVE_HEAD(&batch->loaded, link);
        free(loaded);
    }
    return code;
}

/* ---- in order ---------------------------------------------------------------------------------- */

int io_send_batch(struct io *io, struct batch *batch, struct fail *fail)
{
    static int (*const performers[BACK_UP + 1])(struct io *, const struct effect *, struct fail *) = {
        [SEND_CLIENT] = do_send_client,   [SEND_EVENTS] = io_send_events,
        [SEND_RANGE] = do_send_client, /* the head, behind the trajectories */
        [PUBLISH_HEAD] = do_publish_head, [HEALTH_CHANGED] = io_log_health,
        [LANE_REFUSED] = do_lane_refused, [LANE_OPEN] = do_lane_open,
        [LANE_SEND] = do_lane_send,       [LANE_CLOSE] = do_lane_close,
        [BACK_UP] = io_back_up,
    };
    int code = 0;
    io_log_ends(io, (struct effects){batch->effects.items, batch->effects.count}, clock_ms());
    for (size_t i = 0; code == 0 && i < batch->effects.count; i++) {
        const struct effect *effect = &batch->effects.items[i];
        code = send_all_loaded(io, batch, i, fail);
        if (code == 0 && performers[effect->kind])
            code = performers[effect->kind](io, effect, fail);
    }
    return code;
}
