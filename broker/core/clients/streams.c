#include "broker/core/state.h"

#include <stdlib.h>

struct slice stream_name(const struct stream *stream)
{
    return slice_of(stream->name, stream->name_len);
}

struct stream *stream_find(const struct core *core, struct slice name)
{
    return table_find(&core->streams_by_name, name);
}

struct stream *stream_intern(struct core *core, struct slice name, struct slice owner)
{
    struct stream *stream = stream_find(core, name);
    if (stream)
        return stream;
    struct client *client = client_intern(core, owner);
    stream = client ? core_alloc(core, 1, sizeof(*stream) + name.len + 1) : NULL;
    if (!stream)
        return NULL;
    stream->owner = client;
    memcpy(stream->name, name.data, name.len);
    stream->name_len = (uint32_t)name.len;
    stream->first = 1;
    list_init(&stream->live);
    if (!table_put(&core->streams_by_name, stream_name(stream), stream)) {
        core->failed = true;
        free(stream);
        return NULL;
    }
    list_push_back(&core->streams, &stream->link);
    core->stream_count++;
    client->stream_count++;
    return stream;
}

void stream_destroy(struct stream *stream)
{
    heap_finish(&stream->ended);
    free(stream->kept);
    free(stream);
}

void stream_remove(struct core *core, struct stream *stream)
{
    table_take(&core->streams_by_name, stream_name(stream));
    list_remove(&stream->link);
    core->stream_count--;
    stream->owner->stream_count--;
    stream_destroy(stream);
}

void stream_forget(struct core *core, struct stream *stream, uint64_t seq)
{
    struct heap_node *oldest;
    if (seq >= stream->first)
        retention_drop(core, stream, seq);
    while ((oldest = heap_peek(&stream->ended)) && (uint64_t)oldest->key < stream->first) {
        heap_remove(&stream->ended, oldest);
        group_forget(core, container_of(oldest, struct group, ended));
    }
}

/* ---- heads ------------------------------------------------------------------------- */

/* `stream` may be NULL: a stream nobody knows is an empty one. */
static struct slice encode_head(struct core *core, const struct stream *stream, struct slice name,
                                uint64_t tag)
{
    struct msg_stream_head head = {
        .tag = tag,
        .stream = name,
        .first = stream ? stream->first : 1,
        .head = stream ? stream->head : 0,
        .pending = stream ? stream->pending : 0,
        .epoch = core->epoch,
    };
    return effect_encode(core, MSG_stream_head, &head);
}

static void publish_head(struct core *core, struct stream *stream)
{
    struct slice bytes = encode_head(core, stream, stream_name(stream), 0);
    struct effect *publish = effect_push(core, PUBLISH_HEAD);
    publish->stream = stream_name(stream);
    publish->bytes = bytes;
    stream->fresh = false;
}

void streams_tick(struct core *core)
{
    if (core->now_ms < core->heads_ms)
        return;
    struct stream *stream;
    bool all = ++core->head_round % HEAD_ROUNDS == 0;
    LIST_EACH(stream, &core->streams, link)
        if (all || stream->fresh || stream->pending)
            publish_head(core, stream);
    LIST_EACH(stream, &core->streams, link)
        retention_tick(core, stream);
    core->heads_ms = core->now_ms + core->settings.head_period_ms;
}

/* ---- stream.fetch, stream.ack ------------------------------------------------------ */

void handle_stream_fetch(struct core *core, const struct call *call)
{
    const struct msg_stream_fetch *in = call->in;
    struct stream *stream = stream_find(core, in->stream);
    if (stream && !owners_allow(core, call, stream, "stream"))
        return;
    if (stream)
        stream_heard(core, call, stream);
    if (stream && in->from < stream->first) {
        struct slice words = retention_words(core, stream, in->from);
        send_refused(core, call, REFUSAL_FORGOTTEN, "from", 0,
                     "trajectories of %s below %llu were %.*s and are no longer kept; the "
                     "oldest is %llu", stream->name, (unsigned long long)stream->first,
                     SLICE_ARG(words), (unsigned long long)stream->first);
        return;
    }
    struct slice name = effect_copy(core, in->stream);
    struct slice client = effect_copy(core, call->client);
    struct slice head = encode_head(core, stream, in->stream, call->tag);
    struct effect *send = effect_push(core, SEND_RANGE);
    send->client = client;
    send->tag = call->tag;
    send->stream = name;
    send->seq = in->from;
    /* Nobody's yet: should it become another's in this very cycle, nothing of it is read. */
    send->limit = !stream ? 0 : in->has_limit ? in->limit : FETCH_LIMIT;
    send->bytes = head;
}

void handle_stream_ack(struct core *core, const struct call *call)
{
    const struct msg_stream_ack *in = call->in;
    struct stream *stream = owners_find(core, call, in->stream);
    if (!stream)
        return;
    if (in->seq > stream->head) {
        send_refused(core, call, REFUSAL_TOO_LARGE, "seq", 0,
                     "%s: the newest number is %llu, what has not ended cannot be acknowledged",
                     stream->name, (unsigned long long)stream->head);
        return;
    }
    stream_heard(core, call, stream);
    uint64_t count = in->seq >= stream->first ? in->seq - stream->first + 1 : 0;
    if (count) {
        struct effect *persist = effect_push(core, PERSIST_ACK);
        persist->stream = stream_name(stream);
        persist->seq = in->seq;
        stream_forget(core, stream, in->seq);
    }
    send_done(core, call, count);
}
