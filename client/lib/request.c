#include "client/lib/request.h"

#include <errno.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"

/* ---- answers ------------------------------------------------------------------------ */

static bool is_answer(enum message_id id)
{
    return id == MSG_refused || id == MSG_done || id == MSG_group_accepted || id == MSG_stream_head ||
           id == MSG_rollout_state || id == MSG_status || id == MSG_rollouts || id == MSG_trajectory ||
           id == MSG_sampler_state || id == MSG_sampler_batch || id == MSG_sampler_waits || id == MSG_session_state ||
           id == MSG_rollout_events || id == MSG_metrics;
}

uint64_t answer_tag(const struct answer *answer)
{
    switch (answer->id) {
    case MSG_refused: return answer->as.refused.tag;
    case MSG_done: return answer->as.done.tag;
    case MSG_group_accepted: return answer->as.group_accepted.tag;
    case MSG_stream_head: return answer->as.stream_head.tag;
    case MSG_rollout_state: return answer->as.rollout_state.tag;
    case MSG_status: return answer->as.status.tag;
    case MSG_rollouts: return answer->as.rollouts.tag;
    case MSG_sampler_state: return answer->as.sampler_state.tag;
    case MSG_sampler_batch: return answer->as.sampler_batch.tag;
    case MSG_sampler_waits: return answer->as.sampler_waits.tag;
    case MSG_metrics: return answer->as.metrics.tag;
    case MSG_session_state: return answer->as.session_state.tag;
    case MSG_rollout_events: return answer->as.rollout_events.tag;
    case MSG_trajectory: return answer->as.trajectory.has_tag ? answer->as.trajectory.tag : 0;
    default: return 0;
    }
}

bool answer_read(struct answer *answer, zmq_msg_t *frame)
{
    struct refusal no;
    answer_finish(answer);
    zmq_msg_init(&answer->frame);
    zmq_msg_move(&answer->frame, frame);
    answer->has_frame = true;
    struct slice bytes = slice_of(zmq_msg_data(&answer->frame), zmq_msg_size(&answer->frame));
    if (message_peek(bytes, &answer->id, &no) && is_answer(answer->id) &&
        message_decode(answer->id, bytes, &answer->as, &no))
        return true;
    answer_finish(answer);
    return false;
}

void answer_finish(struct answer *answer)
{
    if (answer->has_frame)
        zmq_msg_close(&answer->frame);
    answer->has_frame = false;
}

/* A small frame's bytes live inside zmq_msg_t and move with it: then it is decoded again. */
void answer_move(struct answer *to, struct answer *from)
{
    const void *before = zmq_msg_data(&from->frame);
    *to = *from;
    zmq_msg_init(&to->frame);
    zmq_msg_move(&to->frame, &from->frame);
    answer_finish(from);
    struct slice bytes = slice_of(zmq_msg_data(&to->frame), zmq_msg_size(&to->frame));
    struct refusal no;
    if (bytes.data != before)
        message_decode(to->id, bytes, &to->as, &no);
}

/* ---- FRONT ---------------------------------------------------------------------------- */

int front_open(struct sluice_client *client) { return link_open_front(client); }

/* Reading ZMQ_EVENTS first makes libzmq look at its mailbox: else EAGAIN may be stale. */
static bool can_send(void *socket)
{
    int events = 0;
    size_t size = sizeof(events);
    return zmq_getsockopt(socket, ZMQ_EVENTS, &events, &size) == 0 && (events & ZMQ_POLLOUT);
}

bool front_try_send(struct sluice_client *client, struct slice bytes)
{
    return can_send(client->front) && zmq_send(client->front, bytes.data, bytes.len, ZMQ_DONTWAIT) >= 0;
}

bool front_send_due(struct sluice_client *client, struct request *request, int64_t now_ms)
{
    if (request->answered || now_ms < request->send_at_ms)
        return true;
    if (!front_try_send(client, buffer_peek(&request->bytes)))
        return false;
    request->send_at_ms = now_ms + request->again_ms;
    if (request->again_ms < REQUEST_AGAIN_LAST_MS)
        request->again_ms *= 2;
    return true;
}

bool front_read(struct sluice_client *client, struct answer *ret)
{
    zmq_msg_t frame;
    link_mend(client, clock_ms());
    zmq_msg_init(&frame);
    while (zmq_msg_recv(&frame, client->front, ZMQ_DONTWAIT) >= 0)
        if (answer_read(ret, &frame))
            return true;
    zmq_msg_close(&frame);
    return false;
}

/* ---- requests -------------------------------------------------------------------------- */

int request_make(struct sluice_client *client, struct request *request, enum message_id id, const void *in)
{
    struct refusal no;
    buffer_clear(&request->bytes);
    if (!message_encode(id, in, &request->bytes, &no))
        return client_fail(client, -EINVAL, "%s", no.text);
    if (request->bytes.failed)
        return client_fail(client, -ENOMEM, "out of memory");
    request->send_at_ms = 0;
    request->again_ms = REQUEST_AGAIN_FIRST_MS;
    request->answered = false;
    return 0;
}

void request_finish(struct request *request) { buffer_finish(&request->bytes); }

/* Reads what is there; returns how many of the requests it answered. */
static size_t take_answers(struct sluice_client *client, struct request *requests, size_t count, request_taker *take,
                           void *arg)
{
    size_t taken = 0;
    AUTO_ANSWER answer = {0};
    while (front_read(client, &answer)) {
        uint64_t tag = answer_tag(&answer);
        size_t i = 0;
        if (answer.id == MSG_rollout_events) /* of a watch, whose tag it has: no answer */
            i = count;
        while (i < count && (requests[i].answered || requests[i].tag != tag))
            i++;
        if (i < count) {
            requests[i].answered = true;
            taken++;
            take(arg, i, &answer);
        } else {
            client_offer(client, &answer);
        }
        answer_finish(&answer);
    }
    return taken;
}

static int64_t earlier(int64_t a, int64_t b) { return a < b ? a : b; }

/* Polls FRONT until wake_ms; returns for how long this process stood still meanwhile. */
static int64_t poll_front(struct sluice_client *client, int64_t now_ms, int64_t wake_ms, bool away)
{
    zmq_pollitem_t front = {client->front, 0, (short)(ZMQ_POLLIN | (away ? ZMQ_POLLOUT : 0)), 0};
    zmq_poll(&front, 1, wake_ms > now_ms ? wake_ms - now_ms : 0);
    int64_t late_ms = clock_ms() - (wake_ms > now_ms ? wake_ms : now_ms);
    return late_ms > STOPPED_MS ? late_ms : 0;
}

int requests_run(struct sluice_client *client, struct request *requests, size_t count, request_taker *take, void *arg)
{
    int opened = front_open(client);
    if (opened)
        return opened;
    int64_t now_ms = clock_ms(), deadline_ms = now_ms + client->timeout_ms;
    for (size_t left = count; left > 0; now_ms = clock_ms()) {
        int64_t wake_ms = deadline_ms;
        bool away = false;
        for (size_t i = 0; i < count && !away; i++) {
            away = !front_send_due(client, &requests[i], now_ms);
            if (!away && !requests[i].answered)
                wake_ms = earlier(wake_ms, requests[i].send_at_ms);
        }
        if (away)
            wake_ms = earlier(wake_ms, now_ms + LINK_AGAIN_MS);
        deadline_ms += poll_front(client, now_ms, wake_ms, away);
        size_t taken = take_answers(client, requests, count, take, arg);
        left -= taken;
        if (taken)
            deadline_ms = clock_ms() + client->timeout_ms;
        else if (clock_ms() >= deadline_ms)
            return link_fail(client);
    }
    return 0;
}

static void take_one(void *arg, size_t index, struct answer *answer)
{
    (void)index;
    answer_move(arg, answer);
}

static int call(struct sluice_client *client, enum message_id id, const void *in, uint64_t tag, int64_t again_ms,
                struct answer *ret)
{
    client->error[0] = '\0';
    AUTO_REQUEST request = {.tag = tag};
    int failed = request_make(client, &request, id, in);
    request.again_ms = again_ms;
    if (!failed)
        failed = requests_run(client, &request, 1, take_one, ret);
    if (!failed && ret->id == MSG_refused)
        failed = client_refused(client, &ret->as.refused);
    return failed;
}

int request_call(struct sluice_client *client, enum message_id id, const void *in, uint64_t tag, struct answer *ret)
{
    return call(client, id, in, tag, REQUEST_AGAIN_FIRST_MS, ret);
}

int request_call_once(struct sluice_client *client, enum message_id id, const void *in, uint64_t tag,
                      struct answer *ret)
{
    return call(client, id, in, tag, INT64_MAX / 2, ret);
}

int request_done(struct sluice_client *client, enum message_id id, const void *in, uint64_t tag, uint64_t *ret_count)
{
    AUTO_ANSWER answer = {0};
    int failed = request_call(client, id, in, tag, &answer);
    if (failed)
        return failed;
    if (answer.id != MSG_done)
        return client_unexpected(client, &answer);
    if (ret_count)
        *ret_count = answer.as.done.count;
    return 0;
}

int client_unexpected(struct sluice_client *client, const struct answer *answer)
{
    return client_fail(client, -EPROTO, "the broker answered with %s", message_get(answer->id)->wire);
}
