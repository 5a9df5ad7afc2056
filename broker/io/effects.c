/* Carrying out what the core asks for: committed first, then sent; what promises something, by way of promises.c. */
#include "broker/io/inner.h"

#include <errno.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/log.h"

/* ---- sending -------------------------------------------------------------------------- */

/* A large answer is dropped while as many bytes of such are unread as may be: who asked asks again. */
static int do_send_client(struct io *io, const struct effect *effect, struct fail *fail)
{
    zmq_msg_t body;
    if (effect->bytes.len > ANSWER_LARGE && atomic_load(&io->answers_held) > FRONT_HELD_MAX) {
        io_complain(&io->undeliverable, "broker.client-not-reading", "a large answer was dropped: clients do not read");
        return 0;
    }
    buffer_clear(&io->out);
    if (!buffer_append(&io->out, effect->bytes.data, effect->bytes.len) ||
        !zmq_frame_init(&body, &io->out, &io->answers_held))
        return fail_set(fail, -ENOMEM, "out of memory");
    return promise_send(io, PROMISE_CLIENT, effect->client, &body, fail);
}

/*
 * Makes io->out the trajectory's message. 1: done, 0: it is not there (any more), negative:
 * the ledger failed. `tag` NULL for the feed.
 */
static int make_trajectory(struct io *io, struct slice stream, uint64_t seq, const uint64_t *tag, struct fail *fail)
{
    struct msg_trajectory message;
    struct refusal no;
    int code = ledger_load_trajectory(io->ledger, stream, seq, &message, fail);
    if (code)
        return code == -ENOENT ? 0 : code;
    message.has_tag = tag != NULL;
    message.tag = tag ? *tag : 0;
    buffer_clear(&io->out);
    if (message_encode(MSG_trajectory, &message, &io->out, &no))
        return 1;
    log_event(LOG_ERROR, "broker.trajectory-unsendable", "stream=%.*s seq=%llu text=\"%s\"", SLICE_ARG(stream),
              (unsigned long long)seq, no.text);
    return 0;
}

static int refuse_send(struct io *io, const struct effect *effect, enum refusal_reason reason, const char *text,
                       struct fail *fail)
{
    struct msg_refused refused = {.tag = effect->tag,
                                  .request = slice_from_str(message_get(MSG_rollout_get)->wire),
                                  .reason = slice_from_str(refusal_wire(reason)),
                                  .text = slice_from_str(text),
                                  .has_retry_after_ms = reason == REFUSAL_QUEUE_FULL,
                                  .retry_after_ms = 1000};
    return io_answer(io, effect->client, MSG_refused, &refused, fail);
}

static int do_send_trajectory(struct io *io, const struct effect *effect, struct fail *fail)
{
    if (atomic_load(&io->front_held) > FRONT_HELD_MAX)
        return refuse_send(io, effect, REFUSAL_QUEUE_FULL,
                           "clients have asked for more than they read; try again later", fail);
    int code = make_trajectory(io, effect->stream, effect->seq, &effect->tag, fail);
    if (code == 0)
        return refuse_send(io, effect, REFUSAL_FORGOTTEN, "the trajectory was acknowledged and is no longer kept",
                           fail);
    return code < 0 ? code : io_send_made(io, effect->client, fail);
}

/* What clients have asked for and do not read ends a range early: they ask again from there. */
static int do_send_range(struct io *io, const struct effect *effect, struct fail *fail)
{
    size_t bytes = 0;
    for (uint64_t i = 0; i < effect->limit && bytes <= RANGE_BYTES_MAX; i++) {
        if (atomic_load(&io->front_held) > FRONT_HELD_MAX)
            break;
        int code = make_trajectory(io, effect->stream, effect->seq + i, &effect->tag, fail);
        if (code < 0)
            return code;
        bytes += i == 0 ? 0 : io->out.len;
        if (code == 0 || bytes > RANGE_BYTES_MAX)
            break;
        code = io_send_made(io, effect->client, fail);
        if (code)
            return code;
    }
    return do_send_client(io, effect, fail);
}

/* ---- the feed ------------------------------------------------------------------------------ */

/* Beyond what subscribers may leave unread, the next head tells them that there is more to fetch. */
static int do_publish_trajectory(struct io *io, const struct effect *effect, struct fail *fail)
{
    if (atomic_load(&io->feed_held) > FEED_HELD_MAX)
        return 0;
    int code = make_trajectory(io, effect->stream, effect->seq, NULL, fail);
    if (code <= 0)
        return code;
    zmq_msg_t body;
    if (!zmq_frame_init(&body, &io->out, &io->feed_held))
        return fail_set(fail, -ENOMEM, "out of memory");
    return promise_send(io, PROMISE_FEED, effect->stream, &body, fail);
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

static int do_lane_job(struct io *io, const struct effect *effect, struct fail *fail)
{
    struct msg_job_start message;
    struct refusal no;
    int code = ledger_load_job(io->ledger, effect, &message, fail);
    if (code && code != -ENOENT)
        return code;
    zmq_msg_t frame;
    buffer_clear(&io->out);
    if (code == 0 && message_encode(MSG_job_start, &message, &io->out, &no)) {
        if (!zmq_frame_init(&frame, &io->out, NULL))
            return fail_set(fail, -ENOMEM, "out of memory");
        io_send_lane(io, effect->worker, &frame);
        return 0;
    }
    log_event(LOG_ERROR, "broker.job-unsendable", "job=%.*s text=\"%s\" action=handed-out-again",
              SLICE_ARG(effect->job), code ? fail->text : no.text);
    return 0;
}

static int do_lane_close(struct io *io, const struct effect *effect, struct fail *fail)
{
    (void)fail;
    lanes_close(io->lanes, effect->worker);
    return 0;
}

/* ---- in order ---------------------------------------------------------------------------------- */

static bool is_persist(const struct effect *effect) { return effect->kind <= PERSIST_EPOCH; }

static bool loads(const struct effect *effect)
{
    return effect->kind == LANE_JOB || effect->kind == SEND_TRAJECTORY || effect->kind == SEND_LIST ||
           effect->kind == SEND_RANGE || effect->kind == PUBLISH_TRAJECTORY;
}

static int persist(struct io *io, struct effects effects, struct fail *fail)
{
    bool begun = false;
    int code = 0;
    for (size_t i = 0; code == 0 && i < effects.count; i++) {
        if (!is_persist(&effects.items[i]))
            continue;
        if (!begun)
            code = ledger_begin(io->ledger, fail);
        begun = true;
        if (code == 0)
            code = ledger_apply(io->ledger, &effects.items[i], fail);
    }
    return code == 0 && begun ? ledger_commit(io->ledger, fail) : code;
}

static int send_all(struct io *io, struct effects effects, struct fail *fail)
{
    static int (*const performers[])(struct io *, const struct effect *, struct fail *) = {
        [SEND_CLIENT] = do_send_client,
        [SEND_EVENTS] = io_send_events,
        [SEND_TRAJECTORY] = do_send_trajectory,
        [SEND_LIST] = io_send_list,
        [SEND_RANGE] = do_send_range,
        [PUBLISH_TRAJECTORY] = do_publish_trajectory,
        [PUBLISH_HEAD] = do_publish_head,
        [HEALTH_CHANGED] = io_log_health,
        [LANE_REFUSED] = do_lane_refused,
        [LANE_OPEN] = do_lane_open,
        [LANE_SEND] = do_lane_send,
        [LANE_JOB] = do_lane_job,
        [LANE_CLOSE] = do_lane_close,
        [BACK_UP] = io_back_up,
    };
    bool reading = false;
    int code = 0;
    io_log_ends(io, effects, clock_ms());
    for (size_t i = 0; code == 0 && i < effects.count; i++) {
        const struct effect *effect = &effects.items[i];
        if (is_persist(effect))
            continue;
        if (loads(effect) && !reading) {
            code = ledger_read_begin(io->ledger, fail);
            reading = true;
        }
        if (code == 0)
            code = performers[effect->kind](io, effect, fail);
    }
    return code == 0 && reading ? ledger_read_end(io->ledger, fail) : code;
}

int io_carry_out(struct io *io, struct fail *fail)
{
    if (core_failed(io->core))
        return fail_set(fail, -ENOMEM,
                        "out of memory; nothing acknowledged is lost: give the "
                        "broker more, or lower --rollouts-max, and start it again");
    struct effects effects = core_effects(io->core);
    int code = persist(io, effects, fail);
    if (code == 0)
        code = send_all(io, effects, fail);
    core_effects_clear(io->core);
    return code;
}
