/* subscribe.c - what sluice.h says of reading a stream. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/lib/stream/cursor.h"
#include "client/lib/expect.h"
#include "client/lib/request.h"
#include "client/lib/stream/stream.h"
#include "common/base/clock.h"

static int stream_open(struct sluice_client *client, const char *name)
{
    stream_close(&client->stream);
    struct stream *stream = client->stream = calloc(1, sizeof(*stream));
    if (!stream)
        return client_fail(client, -ENOMEM, "out of memory");
    snprintf(stream->name, sizeof(stream->name), "%s", name);
    snprintf(stream->topic, sizeof(stream->topic), "t/%s/", name);
    stream->first = 1;
    client->offer_stream = stream_offer;
    int failed = front_open(client);
    return failed ? failed : stream_open_feed(client);
}

/* Asks where the stream stands; what is missing is fetched by sluice_next. */
static int ask_head(struct sluice_client *client, struct answer *ret)
{
    struct msg_stream_fetch message = {.tag = ++client->last_tag,
                                       .stream = slice_from_str(client->stream->name),
                                       .from = INT64_MAX,
                                       .limit = 1,
                                       .has_limit = true};
    return request_call(client, MSG_stream_fetch, &message, message.tag, ret);
}

static int begin(struct sluice_client *client, uint64_t from)
{
    struct stream *stream = client->stream;
    bool has_cursor = stream->next > 0; /* it says where to begin */
    AUTO_ANSWER answer = {0};
    int failed = ask_head(client, &answer);
    if (failed && failed != -ENOENT)
        return failed;
    client->error[0] = '\0';
    stream->heard_ms = clock_ms();
    stream->renew_ms = stream->heard_ms;
    const struct msg_stream_head *head = &answer.as.stream_head;
    if (!failed && answer.id != MSG_stream_head)
        return client_unexpected(client, &answer);
    if (failed == -ENOENT || (head->head == 0 && head->pending == 0)) /* or who listens made it known */
        snprintf(
            client->warning, sizeof(client->warning),
            "nothing has been submitted to the stream %s yet: waiting for its first rollout (`sluice status` lists the "
            "streams)",
            stream->name);
    if (failed == -ENOENT)
        answer.as.stream_head = (struct msg_stream_head){.first = 1, .epoch = stream->seen.epoch};
    if (!has_cursor)
        stream->next = from ? from : answer.as.stream_head.first;
    stream_end_fetch(client, &answer.as.stream_head);
    stream->not_before_ms = 0;
    return 0;
}

int sluice_follow(struct sluice_client *client, const char *name, uint64_t from, const char *cursor_path)
{
    client->error[0] = client->warning[0] = '\0';
    if (!name_is_valid(slice_from_str(name)) || strlen(name) > sizeof(client->stream->name) - 1)
        return client_fail(client, -EINVAL, "'%s' is not a stream's name: 1 to 64 bytes without '/' and blanks", name);
    int failed = stream_open(client, name);
    if (!failed && cursor_path && !(client->stream->cursor_path = strdup(cursor_path)))
        failed = client_fail(client, -ENOMEM, "out of memory");
    if (!failed && cursor_path)
        failed = cursor_read(client, client->stream);
    if (!failed)
        failed = begin(client, from);
    if (failed)
        stream_close(&client->stream);
    return failed;
}

int sluice_subscribe(struct sluice_client *client, const char *name, uint64_t from)
{
    return sluice_follow(client, name, from, NULL);
}

int sluice_cursor_save(struct sluice_client *client)
{
    struct stream *stream = client->stream;
    if (!stream || !stream->cursor_path || !stream->moved)
        return 0;
    int failed = cursor_write(client, stream);
    stream->moved = failed != 0;
    return failed;
}

static void move_on(struct stream *stream, const struct msg_trajectory *given)
{
    snprintf(stream->last.rollout, sizeof(stream->last.rollout), "%.*s", SLICE_ARG(given->rollout));
    stream->last.ended_ms = given->ended_ms;
    stream->next++;
    stream->moved = true;
}

int sluice_next(struct sluice_client *client, int64_t timeout_ms, const struct sluice_trajectory **ret)
{
    *ret = NULL;
    client->error[0] = '\0';
    struct stream *stream = client->stream;
    if (!stream)
        return client_fail(client, -EINVAL, "sluice_next comes after sluice_subscribe");
    trajectory_view_finish(&stream->view);
    int failed = sluice_cursor_save(client);
    if (!failed)
        failed = stream_await(client, timeout_ms < 0 ? -1 : clock_ms() + timeout_ms);
    if (failed)
        return failed;
    struct answer *answer = &stream->ready[stream->ready_at++];
    struct refusal no;
    bool good = trajectory_view_read(&stream->view, &answer->as.trajectory, &no);
    move_on(stream, &answer->as.trajectory);
    answer_finish(answer);
    if (stream->ready_at == stream->ready_end)
        stream->ready_at = stream->ready_end = 0;
    if (!good)
        return client_fail(client, -EBADMSG, "trajectory %llu of stream %s cannot be read: %s",
                           (unsigned long long)(stream->next - 1), stream->name, no.text);
    int unlike = client_check_expected(client, &stream->view.out);
    if (!unlike)
        *ret = &stream->view.out;
    return unlike;
}

void sluice_stream_state(const struct sluice_client *client, uint64_t *head, uint64_t *pending)
{
    const struct stream *stream = client->stream;
    if (head)
        *head = stream ? stream->head : 0;
    if (pending)
        *pending = stream ? stream->pending : 0;
}

uint64_t sluice_stream_first(const struct sluice_client *client) { return client->stream ? client->stream->first : 1; }
