/*
 * Whose a stream is. It belongs to the client that first names it in a submit or to
 * subscribe; an admin may do with every stream what its owner may. A rollout or a group
 * of another client is refused as not-allowed, not as unknown: group ids are one
 * namespace for all, so that it exists is no secret, and its data is.
 */
#include "broker/core/streams/owners.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"
#include "broker/core/streams/quotas.h"
#include "broker/core/streams/streams.h"

bool caller_owns(const struct caller *caller, const struct stream *stream)
{
    return caller->is_admin || slice_equal(caller->name, client_name(stream->owner));
}

bool owners_allow(struct core *core, const struct call *call, const struct stream *stream, const char *field)
{
    if (caller_owns(call->caller, stream))
        return true;
    send_refused(core, call, REFUSAL_NOT_ALLOWED, field, 0, "%s: this %s belongs to another client",
                 message_get(call->id)->wire, field);
    return false;
}

struct stream *owners_find(struct core *core, const struct call *call, struct slice name)
{
    struct stream *stream = stream_find(core, name);
    if (!stream)
        send_refused(core, call, REFUSAL_UNKNOWN_STREAM, "stream", 0, "there is no stream %.*s", SLICE_ARG(name));
    return stream && owners_allow(core, call, stream, "stream") ? stream : NULL;
}

bool owners_have_room(const struct core *core, struct slice name)
{
    const struct client *client = client_find(core, name);
    size_t share = STREAMS_MAX * quota_share_percent(core, name) / 100;
    return core->stream_count < STREAMS_MAX && (client ? client->stream_count : 0) < share;
}

bool owners_may_read(struct core *core, const struct caller *caller, struct slice name)
{
    const struct stream *stream = stream_find(core, name);
    if (stream || caller->is_admin)
        return !stream || caller_owns(caller, stream);
    return name_is_valid(name) && name.len <= STREAM_NAME_MAX && owners_have_room(core, caller->name) &&
           stream_intern(core, name, caller->name);
}
