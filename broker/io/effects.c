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

static int make_frame(const struct effect *effect, zmq_msg_t *ret, struct fail *fail)
{
    return zmq_frame_init_copy(ret, effect->bytes) ? 0 : fail_set(fail, -ENOMEM, "out of memory");
}

static int do_publish_head(struct io *io, const struct effect *effect, struct fail *fail)
{
    zmq_msg_t body;
    int code = make_frame(effect, &body, fail);
    return code ? code : promise_send(io, PROMISE_FEED, effect->stream, &body, fail);
}

/* ---- lanes: what goes wrong with one is the core's to mend, by lanes_take_broken or a deadline -- */

static void refuse_lane(const struct effect *effect)
{
    log_event(LOG_WARN, "broker.lane-refused", "text=\"the lane of worker %.*s cannot be opened: %.*s\" action=no-jobs",
              SLICE_ARG(effect->worker), SLICE_ARG(effect->detail));
}

static void open_lane(struct io *io, const struct effect *effect)
{
    struct fail why;
    const struct lane_limits limits = {.messages_max = effect->limit, .bundles = effect->bundles};
    if (lanes_open(io->lanes, effect->worker, effect->endpoint, effect->peer, limits, clock_ms(), &why) != 0)
        log_event(LOG_WARN, "broker.lane-refused", "text=\"%s\" action=worker-lost", why.text);
}

static int do_lane_send(struct io *io, const struct effect *effect, struct fail *fail)
{
    zmq_msg_t frame;
    int code = make_frame(effect, &frame, fail);
    if (code == 0)
        io_send_lane(io, effect->worker, slice_of(NULL, 0), &frame);
    return code;
}

static int do_lane_promise(struct io *io, const struct effect *effect, struct fail *fail)
{
    zmq_msg_t frame;
    if (!effect->is_promise)
        return 0; /* io_send_lanes has sent it */
    int code = make_frame(effect, &frame, fail);
    return code ? code : promise_send(io, PROMISE_LANE, effect->worker, &frame, fail);
}

/* The message that was loaded for this effect, if there is one and it is next; the caller's. */
static struct loaded *take_loaded(struct loaded_list *list, size_t effect)
{
    struct loaded *loaded = STAILQ_FIRST(list);
    if (!loaded || loaded->effect != effect)
        return NULL;
    STAILQ_REMOVE_HEAD(list, link);
    return loaded;
}

static void send_job(struct io *io, struct batch *batch, size_t at)
{
    struct loaded *loaded = take_loaded(&batch->jobs, at);
    if (loaded)
        io_send_lane(io, batch->effects.items[at].worker, loaded->task, &loaded->body);
    free(loaded);
}

int io_send_lanes(struct io *io, struct batch *batch, struct fail *fail)
{
    int code = 0;
    for (size_t i = 0; code == 0 && i < batch->effects.count; i++) {
        const struct effect *effect = &batch->effects.items[i];
        switch (effect->kind) {
        case LANE_REFUSED: refuse_lane(effect); break;
        case LANE_OPEN: open_lane(io, effect); break;
        case LANE_CLOSE: lanes_close(io->lanes, effect->worker); break;
        case LANE_JOB: send_job(io, batch, i); break;
        case LANE_SEND: code = effect->is_promise ? 0 : do_lane_send(io, effect, fail); break;
        default: break;
        }
    }
    return code;
}

/* ---- what was loaded for others ---------------------------------------------------------------- */

static int send_loaded(struct io *io, const struct effect *effect, zmq_msg_t *body, struct fail *fail)
{
    switch (effect->kind) {
    case PUBLISH_TRAJECTORY: return promise_send(io, PROMISE_FEED, effect->stream, body, fail);
    case SEND_LIST: return promise_send(io, PROMISE_CLIENT, effect->list.client, body, fail);
    default: return promise_send(io, PROMISE_CLIENT, effect->client, body, fail);
    }
}

static int send_all_loaded(struct io *io, struct batch *batch, size_t at, struct fail *fail)
{
    struct loaded *loaded;
    int code = 0;
    while (code == 0 && (loaded = take_loaded(&batch->answers, at))) {
        code = send_loaded(io, &batch->effects.items[at], &loaded->body, fail);
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
        [LANE_SEND] = do_lane_promise,    [BACK_UP] = io_back_up,
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
