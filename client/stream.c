#include "client/stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"

/* The sentence just set waits for the next sluice_next: other calls may come between. */
static void stream_fail(struct sluice_client *client, int code)
{
    client->stream->failed = code;
    snprintf(client->stream->failed_text, sizeof(client->stream->failed_text), "%s", client->error);
}

/* ---- what came --------------------------------------------------------------------------- */

static uint64_t expected(const struct stream *stream)
{
    return stream->next + (stream->ready_end - stream->ready_at);
}

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

/* A head from FEED only ever makes us look: it may have waited in a queue for long. */
static void hear_head(struct stream *stream, const struct msg_stream_head *head)
{
    if (head->epoch < stream->epoch || head->head < stream->head || head->head >= expected(stream))
        stream->wanted = true;
    if (head->epoch < stream->epoch || head->head < stream->head)
        return;
    stream->head = head->head;
    stream->first = head->first;
    stream->pending = head->pending;
}

static void hear_trajectory(struct stream *stream, struct answer *answer)
{
    if (answer->as.trajectory.seq > expected(stream))
        stream->wanted = true;
    else
        keep_ready(stream, answer);
}

/* The head that ends a fetch's answer was made for it: what it says is so. */
static void end_fetch(struct sluice_client *client, const struct msg_stream_head *head)
{
    struct stream *stream = client->stream;
    stream->fetching = false;
    stream->heard_ms = clock_ms();
    if (head->epoch < stream->epoch || head->head < stream->head) {
        stream_fail(client, client_fail(client, -ESTALE,
                                        "stream %s: the broker has another ledger than before: it is "
                                        "at start %llu and number %llu, and was at %llu and %llu",
                                        stream->name, (unsigned long long)head->epoch,
                                        (unsigned long long)head->head,
                                        (unsigned long long)stream->epoch,
                                        (unsigned long long)stream->head));
        return;
    }
    if (head->first > expected(stream)) {
        stream_fail(client, client_fail(client, -ENODATA,
                                        "stream %s: number %llu is no longer kept; the oldest is %llu",
                                        stream->name, (unsigned long long)expected(stream),
                                        (unsigned long long)head->first));
        return;
    }
    stream->epoch = head->epoch;
    stream->head = head->head;
    stream->first = head->first;
    stream->pending = head->pending;
    stream->wanted = stream->head >= expected(stream);
    stream->not_before_ms = stream->fetched ? 0 : clock_ms() + FETCH_PAUSE_MS;
}

static void refuse_fetch(struct sluice_client *client, const struct msg_refused *refused)
{
    struct stream *stream = client->stream;
    stream->fetching = stream->wanted = false;
    stream->heard_ms = clock_ms();
    if (slice_is(refused->reason, refusal_wire(REFUSAL_UNKNOWN_STREAM)))
        return; /* nothing was submitted to it yet */
    stream_fail(client, client_refused(client, refused));
}

bool stream_offer(struct sluice_client *client, struct answer *answer)
{
    struct stream *stream = client->stream;
    if (!stream || !stream->fetching || answer_tag(answer) != stream->fetch.tag)
        return false;
    if (answer->id == MSG_trajectory) {
        stream->fetch.send_at_ms = clock_ms() + stream->fetch.again_ms;
        stream->fetched += keep_ready(stream, answer);
    } else if (answer->id == MSG_stream_head) {
        end_fetch(client, &answer->as.stream_head);
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

static int start_fetch(struct sluice_client *client, uint64_t from, uint64_t limit)
{
    struct stream *stream = client->stream;
    drop_ready(stream);
    stream->fetch.tag = ++client->last_tag;
    struct msg_stream_fetch message = {.tag = stream->fetch.tag,
                                       .stream = slice_from_str(stream->name),
                                       .from = from,
                                       .limit = limit,
                                       .has_limit = true};
    int failed = request_make(client, &stream->fetch, MSG_stream_fetch, &message);
    if (failed)
        return failed;
    stream->fetching = true;
    stream->wanted = false;
    stream->fetched = 0;
    return 0;
}

/* One round: send what is due, read what is there. Returns until when to wait (monotonic). */
static int64_t work(struct sluice_client *client, int64_t now_ms, bool *away)
{
    struct stream *stream = client->stream;
    AUTO_ANSWER answer = {0};
    while (front_read(client, &answer))
        stream_offer(client, &answer);
    if (!stream->fetching && !stream->wanted && stream->ready_at == stream->ready_end)
        take_feed(stream);
    if (now_ms - stream->heard_ms >= SILENCE_MS && !stream->fetching)
        stream->wanted = true;
    bool idle = !stream->fetching && !stream->failed && stream->ready_at == stream->ready_end;
    if (stream->wanted && idle && now_ms >= stream->not_before_ms)
        if (start_fetch(client, stream->next, FETCH_LIMIT))
            stream_fail(client, -ENOMEM);
    *away = stream->fetching && !front_send_due(client, &stream->fetch, now_ms);
    if (stream->fetching)
        return stream->fetch.send_at_ms;
    return stream->wanted ? stream->not_before_ms : stream->heard_ms + SILENCE_MS;
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
    int got = zmq_poll(items, reads_feed ? 2 : 1, wait_ms);
    return got < 0 && errno == EINTR ? client_fail(client, -EINTR, "a signal came") : 0;
}

/* Works until something is ready, the stream failed or deadline_ms (-1: never) has passed. */
static int await_ready(struct sluice_client *client, int64_t deadline_ms)
{
    struct stream *stream = client->stream;
    for (;;) {
        bool away;
        int64_t now_ms = clock_ms(), wake_ms = work(client, now_ms, &away);
        if (stream->ready_at < stream->ready_end)
            return 0;
        if (stream->failed) {
            int failed = stream->failed;
            stream->failed = 0;
            return client_fail(client, failed, "%s", stream->failed_text);
        }
        now_ms = clock_ms();
        if (deadline_ms >= 0 && now_ms >= deadline_ms)
            return client_fail(client, -EAGAIN, "no trajectory of stream %s came", stream->name);
        if (away)
            wake_ms = now_ms + SILENCE_MS;
        if (deadline_ms >= 0 && deadline_ms < wake_ms)
            wake_ms = deadline_ms;
        int failed = wait_for_more(client, wake_ms > now_ms ? wake_ms - now_ms : 0, away);
        if (failed)
            return failed;
    }
}

/* ---- public ------------------------------------------------------------------------------------ */

void stream_destroy(struct stream **handle)
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
    free(stream);
}

static int stream_open(struct sluice_client *client, const char *name)
{
    stream_destroy(&client->stream);
    struct stream *stream = client->stream = calloc(1, sizeof(*stream));
    if (!stream)
        return client_fail(client, -ENOMEM, "out of memory");
    snprintf(stream->name, sizeof(stream->name), "%s", name);
    snprintf(stream->topic, sizeof(stream->topic), "t/%s", name);
    stream->feed = client_socket(client, ZMQ_SUB, client->feed_url);
    if (!stream->feed)
        return -errno;
    if (zmq_setsockopt(stream->feed, ZMQ_SUBSCRIBE, stream->topic, strlen(stream->topic)) != 0)
        return client_fail(client, -errno, "cannot subscribe: %s", zmq_strerror(errno));
    return front_open(client);
}

/* Asks where the stream stands; what is missing is fetched by sluice_next. */
static int ask_head(struct sluice_client *client, uint64_t from, struct answer *ret)
{
    struct msg_stream_fetch message = {.tag = ++client->last_tag,
                                       .stream = slice_from_str(client->stream->name),
                                       .from = from,
                                       .limit = 1,
                                       .has_limit = true};
    return request_call(client, MSG_stream_fetch, &message, message.tag, ret);
}

int sluice_subscribe(struct sluice_client *client, const char *name, uint64_t from)
{
    client->error[0] = '\0';
    if (!name_is_valid(slice_from_str(name)) || strlen(name) > sizeof(client->stream->name) - 1)
        return client_fail(client, -EINVAL,
                           "'%s' is no stream's name: 1 to 64 bytes without '/' and blanks", name);
    int failed = stream_open(client, name);
    if (failed) {
        stream_destroy(&client->stream);
        return failed;
    }
    struct stream *stream = client->stream;
    AUTO_ANSWER answer = {0};
    stream->next = from ? from : 1;
    failed = ask_head(client, INT64_MAX, &answer);
    if (failed && failed != -ENOENT) {
        stream_destroy(&client->stream);
        return failed;
    }
    client->error[0] = '\0';
    stream->heard_ms = clock_ms();
    if (failed == -ENOENT) /* nothing was submitted to it yet */
        return 0;
    if (answer.id != MSG_stream_head)
        return client_unexpected(client, &answer);
    if (from == 0)
        stream->next = answer.as.stream_head.first;
    end_fetch(client, &answer.as.stream_head);
    stream->not_before_ms = 0;
    return 0;
}

int sluice_next(struct sluice_client *client, int64_t timeout_ms,
                const struct sluice_trajectory **ret)
{
    *ret = NULL;
    client->error[0] = '\0';
    struct stream *stream = client->stream;
    if (!stream)
        return client_fail(client, -EINVAL, "sluice_next comes after sluice_subscribe");
    trajectory_view_finish(&stream->view);
    int failed = await_ready(client, timeout_ms < 0 ? -1 : clock_ms() + timeout_ms);
    if (failed)
        return failed;
    struct answer *answer = &stream->ready[stream->ready_at++];
    struct refusal no;
    bool good = trajectory_view_read(&stream->view, &answer->as.trajectory, &no);
    answer_finish(answer);
    if (stream->ready_at == stream->ready_end)
        stream->ready_at = stream->ready_end = 0;
    stream->next++;
    if (!good)
        return client_fail(client, -EBADMSG, "trajectory %llu of stream %s cannot be read: %s",
                           (unsigned long long)(stream->next - 1), stream->name, no.text);
    *ret = &stream->view.out;
    return 0;
}

void sluice_stream_state(const struct sluice_client *client, uint64_t *head, uint64_t *pending)
{
    const struct stream *stream = client->stream;
    if (head)
        *head = stream ? stream->head : 0;
    if (pending)
        *pending = stream ? stream->pending : 0;
}
