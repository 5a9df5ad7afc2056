#include "client/lib/stream/stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/lib/request.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"

/* The sentence just set waits for the next sluice_next: other calls may come between. */
static void stream_fail(struct sluice_client *client, int code)
{
    client->stream->failed = code;
    snprintf(client->stream->failed_text, sizeof(client->stream->failed_text), "%s", client->error);
}

/* ---- what came --------------------------------------------------------------------------- */

static uint64_t expected(const struct stream *stream) { return stream->next + (stream->ready_end - stream->ready_at); }

/* Takes the trajectory over if it is the one expected. */
static bool keep_ready(struct stream *stream, struct answer *answer)
{
    if (answer->as.trajectory.seq != expected(stream) || stream->ready_end == FETCH_LIMIT)
        return false;
    if (answer->as.trajectory.seq > stream->head)
        stream->head = answer->as.trajectory.seq;
    answer_move(&stream->ready[stream->ready_end++], answer);
    return true;
}

static void drop_ready(struct stream *stream)
{
    while (stream->ready_at < stream->ready_end)
        answer_finish(&stream->ready[stream->ready_at++]);
    stream->ready_at = stream->ready_end = 0;
}

/* Reading cannot go on here: this failure stays. */
static void stream_end(struct sluice_client *client, int code, uint64_t first)
{
    drop_ready(client->stream);
    client->stream->first = first;
    stream_fail(client, code);
}

static bool is_new_start(const struct stream *stream, const struct msg_stream_head *head)
{
    return head->epoch != stream->seen.epoch || seen_is_new_start(&stream->seen, head);
}

/* A head from FEED only ever makes us look: it may have waited in a queue for long. */
static void hear_head(struct stream *stream, const struct msg_stream_head *head)
{
    if (head->head < stream->head || head->head >= expected(stream) || (stream->pending && !head->pending) ||
        is_new_start(stream, head))
        stream->wanted = true;
    if (head->epoch < stream->seen.epoch || head->head < stream->head)
        return;
    stream->head = head->head;
    stream->first = head->first;
    if (head->pending)
        stream->pending = head->pending;
}

void stream_expect_more(struct stream *stream, uint64_t samples)
{
    stream->submits++;
    stream->pending += samples;
    stream->wanted = true;
}

static void hear_trajectory(struct stream *stream, struct answer *answer)
{
    if (answer->as.trajectory.seq > expected(stream))
        stream->wanted = true;
    else
        keep_ready(stream, answer);
}

static void fail_stale(struct sluice_client *client, const struct msg_stream_head *head)
{
    const struct stream *stream = client->stream;
    client_fail(client, -ESTALE,
                "stream %s: the broker has another ledger than before: it is at start %llu and number %llu of %llu "
                "accepted, and was at %llu and %llu of %llu; the oldest number of this one is %llu",
                stream->name, (unsigned long long)head->epoch, (unsigned long long)head->head,
                (unsigned long long)(head->head + head->pending), (unsigned long long)stream->seen.epoch,
                (unsigned long long)stream->head, (unsigned long long)(stream->head + stream->pending),
                (unsigned long long)head->first);
    stream_end(client, -ESTALE, head->first);
}

static void fail_forgotten(struct sluice_client *client, const struct msg_stream_head *head)
{
    const struct stream *stream = client->stream;
    client_fail(client, -ENODATA, "stream %s: number %llu is no longer kept; the oldest is %llu", stream->name,
                (unsigned long long)expected(stream), (unsigned long long)head->first);
    stream_end(client, -ENODATA, head->first);
}

/* Where nothing was accepted nothing can be missed. */
static bool is_other_ledger(const struct stream *stream, const struct msg_stream_head *head)
{
    const bool is_empty = stream->seen.accepted == 0 && stream->submits == 0 && !*stream->last.rollout;
    return !is_empty && (stream->differs || head->head < stream->head || seen_is_other_ledger(&stream->seen, head));
}

void stream_end_fetch(struct sluice_client *client, const struct msg_stream_head *head)
{
    struct stream *stream = client->stream;
    bool is_new = seen_is_new_start(&stream->seen, head);
    bool was_checked = stream->checks && !stream->asks_head;
    stream->fetching = stream->checks = stream->asks_head = false;
    stream->heard_ms = clock_ms();
    if (is_other_ledger(stream, head)) {
        fail_stale(client, head);
        return;
    }
    if (head->first > expected(stream)) {
        fail_forgotten(client, head);
        return;
    }
    if (is_new && !was_checked && *stream->last.rollout && head->first < stream->next) {
        drop_ready(stream);
        stream->checks = true;
    }
    seen_note(&stream->seen, head);
    stream->head = head->head;
    stream->first = head->first;
    bool is_of_now = stream->fetch_submits == stream->submits;
    if (is_of_now)
        stream->pending = head->pending;
    stream->wanted = stream->checks || stream->head >= expected(stream) || !is_of_now;
    stream->not_before_ms = stream->fetched || stream->checks ? 0 : clock_ms() + FETCH_PAUSE_MS;
}

static void refuse_fetch(struct sluice_client *client, const struct msg_refused *refused)
{
    struct stream *stream = client->stream;
    bool asked_head = stream->asks_head;
    stream->fetching = stream->wanted = stream->checks = stream->asks_head = false;
    stream->heard_ms = clock_ms();
    if (slice_is(refused->reason, refusal_wire(REFUSAL_UNKNOWN_STREAM))) {
        const struct msg_stream_head none = {.first = 1, .epoch = stream->seen.epoch};
        if (stream->seen.accepted || stream->head)
            fail_stale(client, &none);
        return; /* else nothing was submitted to it yet */
    }
    if (slice_is(refused->reason, refusal_wire(REFUSAL_FORGOTTEN)) && !asked_head)
        stream->asks_head = stream->wanted = true; /* from where, then? */
    else
        stream_fail(client, client_refused(client, refused));
}

/* The number before `next` again: is it what was given out? */
static void check_last(struct stream *stream, const struct msg_trajectory *in)
{
    stream->differs = !slice_is(in->rollout, stream->last.rollout) || in->ended_ms != stream->last.ended_ms;
    stream->fetched++;
}

bool stream_offer(struct sluice_client *client, struct answer *answer)
{
    struct stream *stream = client->stream;
    if (!stream || !stream->fetching || answer_tag(answer) != stream->fetch.tag)
        return false;
    if (answer->id == MSG_trajectory) {
        stream->fetch.send_at_ms = clock_ms() + stream->fetch.again_ms;
        if (stream->checks && answer->as.trajectory.seq == stream->next - 1)
            check_last(stream, &answer->as.trajectory);
        else
            stream->fetched += keep_ready(stream, answer);
    } else if (answer->id == MSG_stream_head) {
        stream_end_fetch(client, &answer->as.stream_head);
    } else if (answer->id == MSG_refused) {
        refuse_fetch(client, &answer->as.refused);
    }
    return true;
}

/* ---- FEED ---------------------------------------------------------------------------------- */

/* Reads one message of exactly two frames [topic][message]; false when there is none now. */
static bool read_feed(struct stream *stream, struct answer *ret)
{
    zmq_msg_t frame;
    bool found = false;
    zmq_msg_init(&frame);
    while (!found && zmq_msg_recv(&frame, stream->feed, ZMQ_DONTWAIT) >= 0) {
        bool ours = slice_is(slice_of(zmq_msg_data(&frame), zmq_msg_size(&frame)), stream->topic);
        bool more = zmq_msg_more(&frame);
        for (unsigned nr = 1; more && zmq_msg_recv(&frame, stream->feed, ZMQ_DONTWAIT) >= 0; nr++) {
            more = zmq_msg_more(&frame);
            if (nr == 1 && !more && ours)
                found = answer_read(ret, &frame);
        }
    }
    zmq_msg_close(&frame);
    return found;
}

int stream_open_feed(struct sluice_client *client)
{
    struct stream *stream = client->stream;
    void *feed = link_socket(client, ZMQ_SUB, client->feed_url);
    if (!feed)
        return -errno;
    if (zmq_setsockopt(feed, ZMQ_SUBSCRIBE, stream->topic, strlen(stream->topic)) != 0) {
        zmq_close(feed);
        return client_fail(client, -errno, "cannot subscribe: %s", zmq_strerror(errno));
    }
    if (stream->feed)
        zmq_close(stream->feed);
    stream->feed = feed;
    stream->made = client->link.made;
    return 0;
}

static void take_feed(struct stream *stream)
{
    AUTO_ANSWER answer = {0};
    if (!read_feed(stream, &answer))
        return;
    stream->heard_ms = clock_ms();
    if (answer.id == MSG_trajectory && slice_is(answer.as.trajectory.stream, stream->name))
        hear_trajectory(stream, &answer);
    else if (answer.id == MSG_stream_head && slice_is(answer.as.stream_head.stream, stream->name))
        hear_head(stream, &answer.as.stream_head);
}

/* ---- fetching -------------------------------------------------------------------------------- */

static int start_fetch(struct sluice_client *client)
{
    struct stream *stream = client->stream;
    drop_ready(stream);
    stream->fetch.tag = ++client->last_tag;
    struct msg_stream_fetch message = {.tag = stream->fetch.tag,
                                       .stream = slice_from_str(stream->name),
                                       .from = stream->asks_head ? INT64_MAX : stream->next - stream->checks,
                                       .limit = FETCH_LIMIT,
                                       .has_limit = true};
    int failed = request_make(client, &stream->fetch, MSG_stream_fetch, &message);
    if (failed)
        return failed;
    stream->fetching = true;
    stream->fetch_submits = stream->submits;
    stream->wanted = stream->differs = false;
    stream->fetched = 0;
    stream->asked_ms = clock_ms();
    return 0;
}

/* A lease that this client asked for is renewed three times while it runs. */
static int64_t renew_period_ms(const struct sluice_client *client)
{
    int64_t third_ms = (int64_t)(client->lease_ms / 3);
    return client->lease_ms && third_ms < RENEW_MS ? third_ms : RENEW_MS;
}

/* Its answer is nobody's and is dropped; the next one is due soon. */
static void renew_due(struct sluice_client *client, int64_t now_ms)
{
    struct stream *stream = client->stream;
    if (now_ms < stream->renew_ms)
        return;
    AUTO_BUFFER bytes = {0};
    struct refusal no;
    struct msg_stream_renew message = {.tag = ++client->last_tag, .stream = slice_from_str(stream->name)};
    if (message_encode(MSG_stream_renew, &message, &bytes, &no))
        front_try_send(client, buffer_peek(&bytes));
    stream->renew_ms = now_ms + renew_period_ms(client);
}

static bool has_ready(const struct stream *stream) { return !stream->fetching && stream->ready_at < stream->ready_end; }

/* One round: send what is due, read what is there. Returns until when to wait (monotonic). */
static int64_t work(struct sluice_client *client, int64_t now_ms, bool *away)
{
    struct stream *stream = client->stream;
    AUTO_ANSWER answer = {0};
    while (front_read(client, &answer))
        client_offer(client, &answer);
    if (stream->made != client->link.made)
        stream_open_feed(client);
    if (!stream->fetching && !stream->wanted && stream->ready_at == stream->ready_end)
        take_feed(stream);
    if (now_ms - stream->heard_ms >= SILENCE_MS && !stream->fetching)
        stream->wanted = true;
    bool idle = !stream->fetching && !stream->failed && stream->ready_at == stream->ready_end;
    if (stream->wanted && idle && now_ms >= stream->not_before_ms)
        if (start_fetch(client))
            stream_fail(client, -ENOMEM);
    *away = stream->fetching && !front_send_due(client, &stream->fetch, now_ms);
    renew_due(client, now_ms);
    if (stream->fetching)
        return stream->fetch.send_at_ms;
    int64_t wake_ms = stream->wanted ? stream->not_before_ms : stream->heard_ms + SILENCE_MS;
    return wake_ms < stream->renew_ms ? wake_ms : stream->renew_ms;
}

/* Waits for something to read, or until wake_ms. -EINTR when a signal came. */
static int wait_for_more(struct sluice_client *client, int64_t wait_ms, bool away)
{
    struct stream *stream = client->stream;
    zmq_pollitem_t items[] = {
        {client->front, 0, (short)(ZMQ_POLLIN | (away ? ZMQ_POLLOUT : 0)), 0},
        {stream->feed, 0, ZMQ_POLLIN, 0},
    };
    bool reads_feed = !stream->fetching && !stream->wanted;
    int64_t began_ms = clock_ms();
    int got = zmq_poll(items, reads_feed ? 2 : 1, wait_ms);
    int64_t late_ms = clock_ms() - began_ms - wait_ms;
    if (late_ms > STOPPED_MS)
        stream->asked_ms += late_ms;
    return got < 0 && errno == EINTR ? client_fail(client, -EINTR, "a signal came") : 0;
}

/* What there is to say, other than a trajectory; 0 for nothing. */
static int find_end(struct sluice_client *client, int64_t now_ms, int64_t deadline_ms)
{
    struct stream *stream = client->stream;
    if (stream->failed) {
        int failed = stream->failed;
        if (failed != -ENODATA && failed != -ESTALE)
            stream->failed = 0;
        return client_fail(client, failed, "%s", stream->failed_text);
    }
    int64_t silent_ms = stream->fetching ? now_ms - stream->asked_ms : 0;
    if (client->patience_ms >= 0 && silent_ms > client->patience_ms && silent_ms > SILENCE_MS) {
        stream->asked_ms = now_ms;
        return link_fail(client);
    }
    if (deadline_ms >= 0 && now_ms >= deadline_ms)
        return client_fail(client, -EAGAIN, "no trajectory of stream %s came", stream->name);
    return 0;
}

int stream_await(struct sluice_client *client, int64_t deadline_ms)
{
    for (;;) {
        bool away;
        int64_t now_ms = clock_ms(), wake_ms = work(client, now_ms, &away);
        if (has_ready(client->stream))
            return 0;
        now_ms = clock_ms();
        int failed = find_end(client, now_ms, deadline_ms);
        if (failed)
            return failed;
        if (away)
            wake_ms = now_ms + SILENCE_MS / 4;
        if (deadline_ms >= 0 && deadline_ms < wake_ms)
            wake_ms = deadline_ms;
        failed = wait_for_more(client, wake_ms > now_ms ? wake_ms - now_ms : 0, away);
        if (failed)
            return failed;
    }
}

void stream_close(struct stream **handle)
{
    struct stream *stream = *handle;
    if (!stream)
        return;
    *handle = NULL;
    drop_ready(stream);
    request_finish(&stream->fetch);
    trajectory_view_finish(&stream->view);
    if (stream->feed)
        zmq_close(stream->feed);
    free(stream->cursor_path);
    free(stream);
}
