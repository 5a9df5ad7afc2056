/* Carrying out what the core asks for: on disk first, then on the wire. */
#include "broker/shell/inner.h"

#include <errno.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/log.h"

/* ---- sending -------------------------------------------------------------------------- */

/* A client that is gone, or does not read, gets nothing: it asks again when it is back. */
static void send_client(struct shell *shell, struct slice client, zmq_msg_t *body)
{
    if (!zmq_frame_send_copy(shell->front, client, ZMQ_SNDMORE)) {
        zmq_msg_close(body);
        if (errno != EHOSTUNREACH)
            shell_complain(&shell->undeliverable, "broker.client-not-reading",
                           "an answer was dropped: its client does not read");
        return;
    }
    zmq_frame_send(shell->front, body, 0);
}

static int do_send_client(struct shell *shell, const struct effect *effect, struct fail *fail)
{
    zmq_msg_t body;
    if (!zmq_frame_init_copy(&body, effect->bytes))
        return fail_set(fail, -ENOMEM, "out of memory");
    send_client(shell, effect->client, &body);
    return 0;
}

/*
 * Makes shell->out the trajectory's message. 1: done, 0: it is not there (any more), negative:
 * the ledger failed. `tag` NULL for the feed.
 */
static int make_trajectory(struct shell *shell, struct slice stream, uint64_t seq, const uint64_t *tag,
                           struct fail *fail)
{
    struct msg_trajectory message;
    struct refusal no;
    int code = ledger_load_trajectory(shell->ledger, stream, seq, &message, fail);
    if (code)
        return code == -ENOENT ? 0 : code;
    message.has_tag = tag != NULL;
    message.tag = tag ? *tag : 0;
    buffer_clear(&shell->out);
    if (message_encode(MSG_trajectory, &message, &shell->out, &no))
        return 1;
    log_event(LOG_ERROR, "broker.trajectory-unsendable", "stream=%.*s seq=%llu text=\"%s\"", SLICE_ARG(stream),
              (unsigned long long)seq, no.text);
    return 0;
}

static int send_made(struct shell *shell, struct slice client, struct fail *fail)
{
    zmq_msg_t body;
    if (!zmq_frame_init(&body, &shell->out, &shell->front_held))
        return fail_set(fail, -ENOMEM, "out of memory");
    send_client(shell, client, &body);
    return 0;
}

int shell_answer(struct shell *shell, struct slice client, enum message_id id, const void *message, struct fail *fail)
{
    struct refusal no;
    buffer_clear(&shell->out);
    if (!message_encode(id, message, &shell->out, &no))
        return fail_set(fail, -ENOMEM, "%s", no.text);
    return send_made(shell, client, fail);
}

static int refuse_send(struct shell *shell, const struct effect *effect, enum refusal_reason reason, const char *text,
                       struct fail *fail)
{
    struct msg_refused refused = {.tag = effect->tag,
                                  .request = slice_from_str(message_get(MSG_rollout_get)->wire),
                                  .reason = slice_from_str(refusal_wire(reason)),
                                  .text = slice_from_str(text),
                                  .has_retry_after_ms = reason == REFUSAL_QUEUE_FULL,
                                  .retry_after_ms = 1000};
    return shell_answer(shell, effect->client, MSG_refused, &refused, fail);
}

static int do_send_trajectory(struct shell *shell, const struct effect *effect, struct fail *fail)
{
    if (atomic_load(&shell->front_held) > FRONT_HELD_MAX)
        return refuse_send(shell, effect, REFUSAL_QUEUE_FULL,
                           "clients have asked for more than they read; try again later", fail);
    int code = make_trajectory(shell, effect->stream, effect->seq, &effect->tag, fail);
    if (code == 0)
        return refuse_send(shell, effect, REFUSAL_FORGOTTEN, "the trajectory was acknowledged and is no longer kept",
                           fail);
    return code < 0 ? code : send_made(shell, effect->client, fail);
}

/* What clients have asked for and do not read ends a range early: they ask again from there. */
static int do_send_range(struct shell *shell, const struct effect *effect, struct fail *fail)
{
    size_t bytes = 0;
    for (uint64_t i = 0; i < effect->limit && bytes <= RANGE_BYTES_MAX; i++) {
        if (atomic_load(&shell->front_held) > FRONT_HELD_MAX)
            break;
        int code = make_trajectory(shell, effect->stream, effect->seq + i, &effect->tag, fail);
        if (code < 0)
            return code;
        bytes += i == 0 ? 0 : shell->out.len;
        if (code == 0 || bytes > RANGE_BYTES_MAX)
            break;
        code = send_made(shell, effect->client, fail);
        if (code)
            return code;
    }
    return do_send_client(shell, effect, fail);
}

/* ---- the feed ------------------------------------------------------------------------------ */

static int publish(struct shell *shell, struct slice stream, zmq_msg_t *body, struct fail *fail)
{
    int code = feed_publish(shell->feed, stream, body);
    return code ? fail_set(fail, code, "cannot publish: %s", zmq_strerror(-code)) : 0;
}

/* Beyond what subscribers may leave unread, the next head tells them that there is more to fetch. */
static int do_publish_trajectory(struct shell *shell, const struct effect *effect, struct fail *fail)
{
    if (atomic_load(&shell->feed_held) > FEED_HELD_MAX)
        return 0;
    int code = make_trajectory(shell, effect->stream, effect->seq, NULL, fail);
    if (code <= 0)
        return code;
    zmq_msg_t body;
    if (!zmq_frame_init(&body, &shell->out, &shell->feed_held))
        return fail_set(fail, -ENOMEM, "out of memory");
    return publish(shell, effect->stream, &body, fail);
}

static int do_publish_head(struct shell *shell, const struct effect *effect, struct fail *fail)
{
    zmq_msg_t body;
    if (!zmq_frame_init_copy(&body, effect->bytes))
        return fail_set(fail, -ENOMEM, "out of memory");
    return publish(shell, effect->stream, &body, fail);
}

/* ---- lanes: what goes wrong with one is the core's to mend, by lanes_take_broken or a deadline -- */

static int do_lane_refused(struct shell *shell, const struct effect *effect, struct fail *fail)
{
    (void)shell, (void)fail;
    log_event(LOG_WARN, "broker.lane-refused", "text=\"the lane of worker %.*s cannot be opened: %.*s\" action=no-jobs",
              SLICE_ARG(effect->worker), SLICE_ARG(effect->detail));
    return 0;
}

static int do_lane_open(struct shell *shell, const struct effect *effect, struct fail *fail)
{
    (void)fail;
    struct fail why;
    if (lanes_open(shell->lanes, effect->worker, effect->endpoint, effect->peer, effect->limit, clock_ms(), &why) != 0)
        log_event(LOG_WARN, "broker.lane-refused", "text=\"%s\" action=worker-lost", why.text);
    return 0;
}

static int send_lane(struct shell *shell, struct slice worker, zmq_msg_t *frame)
{
    struct fail why;
    int code = lanes_send(shell->lanes, worker, frame, &why);
    if (code && code != -ENOENT && code != -EAGAIN) /* a lane that is gone or full is known to be */
        log_event(LOG_WARN, "broker.lane-send", "text=\"%s\"", why.text);
    return 0;
}

static int do_lane_send(struct shell *shell, const struct effect *effect, struct fail *fail)
{
    zmq_msg_t frame;
    if (!zmq_frame_init_copy(&frame, effect->bytes))
        return fail_set(fail, -ENOMEM, "out of memory");
    return send_lane(shell, effect->worker, &frame);
}

static int do_lane_job(struct shell *shell, const struct effect *effect, struct fail *fail)
{
    struct msg_job_start message;
    struct refusal no;
    int code = ledger_load_job(shell->ledger, effect, &message, fail);
    if (code && code != -ENOENT)
        return code;
    zmq_msg_t frame;
    buffer_clear(&shell->out);
    if (code == 0 && message_encode(MSG_job_start, &message, &shell->out, &no))
        return zmq_frame_init(&frame, &shell->out, NULL) ? send_lane(shell, effect->worker, &frame)
                                                         : fail_set(fail, -ENOMEM, "out of memory");
    log_event(LOG_ERROR, "broker.job-unsendable", "job=%.*s text=\"%s\" action=handed-out-again",
              SLICE_ARG(effect->job), code ? fail->text : no.text);
    return 0;
}

static int do_lane_close(struct shell *shell, const struct effect *effect, struct fail *fail)
{
    (void)fail;
    lanes_close(shell->lanes, effect->worker);
    return 0;
}

/* ---- in order ---------------------------------------------------------------------------------- */

static bool is_persist(const struct effect *effect) { return effect->kind <= PERSIST_EPOCH; }

static bool loads(const struct effect *effect)
{
    return effect->kind == LANE_JOB || effect->kind == SEND_TRAJECTORY || effect->kind == SEND_RANGE ||
           effect->kind == PUBLISH_TRAJECTORY;
}

static int persist(struct shell *shell, struct effects effects, struct fail *fail)
{
    bool begun = false;
    int code = 0;
    for (size_t i = 0; code == 0 && i < effects.count; i++) {
        if (!is_persist(&effects.items[i]))
            continue;
        if (!begun)
            code = ledger_begin(shell->ledger, fail);
        begun = true;
        if (code == 0)
            code = ledger_apply(shell->ledger, &effects.items[i], fail);
    }
    return code == 0 && begun ? ledger_commit(shell->ledger, fail) : code;
}

static int send_all(struct shell *shell, struct effects effects, struct fail *fail)
{
    static int (*const performers[])(struct shell *, const struct effect *, struct fail *) = {
        [SEND_CLIENT] = do_send_client,   [SEND_TRAJECTORY] = do_send_trajectory,
        [SEND_RANGE] = do_send_range,     [PUBLISH_TRAJECTORY] = do_publish_trajectory,
        [PUBLISH_HEAD] = do_publish_head, [LANE_REFUSED] = do_lane_refused,
        [LANE_OPEN] = do_lane_open,       [LANE_SEND] = do_lane_send,
        [LANE_JOB] = do_lane_job,         [LANE_CLOSE] = do_lane_close,
        [BACK_UP] = shell_back_up,
    };
    bool reading = false;
    int code = 0;
    for (size_t i = 0; code == 0 && i < effects.count; i++) {
        const struct effect *effect = &effects.items[i];
        if (is_persist(effect))
            continue;
        if (loads(effect) && !reading) {
            code = ledger_read_begin(shell->ledger, fail);
            reading = true;
        }
        if (code == 0)
            code = performers[effect->kind](shell, effect, fail);
    }
    return code == 0 && reading ? ledger_read_end(shell->ledger, fail) : code;
}

int shell_carry_out(struct shell *shell, struct fail *fail)
{
    if (core_failed(shell->core))
        return fail_set(fail, -ENOMEM,
                        "out of memory; nothing acknowledged is lost: give the "
                        "broker more, or lower --rollouts-max, and start it again");
    struct effects effects = core_effects(shell->core);
    int code = persist(shell, effects, fail);
    if (code == 0)
        code = send_all(shell, effects, fail);
    core_effects_clear(shell->core);
    return code;
}
