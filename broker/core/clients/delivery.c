/*
 * How trajectories leave a stream: its head is published, they are fetched, acknowledged, and forgotten then, or by
 * retention.
 */
#include "broker/core/clients/delivery.h"
#include "broker/core/streams/owners.h"
#include "broker/core/queue/forgetting.h"
#include "broker/core/sampled/sampled.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"
#include "broker/core/streams/retention.h"

/* ---- heads ------------------------------------------------------------------------- */

/* `stream` may be NULL: a stream nobody knows is an empty one. */
static struct slice encode_head(struct core *core, const struct stream *stream, struct slice name, uint64_t tag)
{
    struct msg_stream_head head = {
        .tag = tag,
        .stream = name,
        .first = stream ? stream->first : 1,
        .head = stream ? stream->head : 0,
        .pending = stream ? stream->pending : 0,
        .epoch = core->epoch,
        .start_id = core->start_id,
        .has_start_id = core->start_id != 0,
    };
    return effect_encode(core, MSG_stream_head, &head);
}

static void publish_head(struct core *core, struct stream *stream)
{
    struct slice bytes = encode_head(core, stream, stream_name(stream), 0);
    struct effect *publish = effect_push(core, PUBLISH_HEAD);
    publish->stream = effect_copy(core, stream_name(stream));
    publish->bytes = bytes;
    stream->fresh = false;
}

/* Forgets what the settings do not let the stream keep. */
static void expire(struct core *core, struct stream *stream)
{
    uint64_t seq = retention_excess(core, stream);
    if (seq < stream->first)
        return;
    core->counters.expired += seq + 1 - stream->first;
    stream->expired += seq + 1 - stream->first;
    stream->expired_to = seq;
    sampled_note_forgotten(core, stream, seq);
    stream_acknowledge(core, stream, seq);
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
        expire(core, stream);
    core->heads_ms = core->now_ms + core->settings.head_period_ms;
}

/* ---- stream.fetch, stream.ack ------------------------------------------------------ */

/*
 * How many trajectories answer it: none behind the head that ends the answer, though more may have ended by the time
 * they are loaded. Nobody's stream has none: should it become another's in this very cycle, nothing of it is read.
 */
static uint64_t fetch_limit(const struct stream *stream, const struct msg_stream_fetch *in)
{
    if (!stream || in->from > stream->head)
        return 0;
    const uint64_t asked = in->has_limit ? in->limit : FETCH_LIMIT, there = stream->head - in->from + 1;
    return asked < there ? asked : there;
}

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
                     "oldest is %llu",
                     stream->name, (unsigned long long)stream->first, SLICE_ARG(words),
                     (unsigned long long)stream->first);
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
    send->limit = fetch_limit(stream, in);
    send->bytes = head;
}

void handle_stream_ack(struct core *core, const struct call *call)
{
    const struct msg_stream_ack *in = call->in;
    struct stream *stream = owners_find(core, call, in->stream);
    if (!stream)
        return;
    if (stream->sampler) {
        send_refused(core, call, REFUSAL_NOT_ALLOWED, "stream", 0,
                     "%s has a sampler, which acknowledges by itself what no batch needs: ask for the next batch",
                     stream->name);
        return;
    }
    if (in->seq > stream->head) {
        send_refused(core, call, REFUSAL_TOO_LARGE, "seq", 0,
                     "%s: the newest number is %llu; what has not ended cannot be acknowledged", stream->name,
                     (unsigned long long)stream->head);
        return;
    }
    stream_heard(core, call, stream);
    uint64_t count = in->seq >= stream->first ? in->seq - stream->first + 1 : 0;
    if (count)
        stream_acknowledge(core, stream, in->seq);
    send_done(core, call, count);
}

void handle_stream_renew(struct core *core, const struct call *call)
{
    const struct msg_stream_renew *in = call->in;
    struct stream *stream = owners_find(core, call, in->stream);
    if (!stream)
        return;
    stream_renew(core, stream);
    send_done(core, call, stream->under_lease);
}
