/*
 * Whose a stream is. It belongs to the client that first names it in a submit or to
 * subscribe; an admin may do with every stream what its owner may. A rollout or a group
 * of another client is refused as not-allowed, not as unknown: group ids are one
 * namespace for all, so that it exists is no secret, and its data is.
 */
#include "broker/core/state.h"

#include <stdlib.h>

struct slice client_name(const struct client *client)
{
    return slice_of(client->name, client->name_len);
}

struct client *client_find(const struct core *core, struct slice name)
{
    return table_find(&core->clients_by_name, name);
}

struct client *client_intern(struct core *core, struct slice name)
{
    struct client *client = client_find(core, name);
    if (client)
        return client;
    client = core_alloc(core, 1, sizeof(*client) + name.len + 1);
    if (!client)
        return NULL;
    if (name.len)
        memcpy(client->name, name.data, name.len);
    client->name_len = (uint32_t)name.len;
    if (!table_put(&core->clients_by_name, client_name(client), client)) {
        core->failed = true;
        free(client);
        return NULL;
    }
    list_push_back(&core->clients, &client->link);
    return client;
}

void client_destroy(struct client *client)
{
    for (unsigned stage = 0; stage < STAGE_COUNT; stage++)
        heap_finish(&client->queues[stage].streams.heap);
    free(client);
}

/* ---- who may what -------------------------------------------------------------------- */

static bool owns(const struct caller *caller, const struct stream *stream)
{
    return caller->is_admin || slice_equal(caller->name, client_name(stream->owner));
}

bool caller_owns(const struct call *call, const struct stream *stream)
{
    return owns(call->caller, stream);
}

bool owners_allow(struct core *core, const struct call *call, const struct stream *stream,
                  const char *field)
{
    if (caller_owns(call, stream))
        return true;
    send_refused(core, call, REFUSAL_NOT_ALLOWED, field, 0,
                 "%s: this %s belongs to another client", message_get(call->id)->wire, field);
    return false;
}

struct stream *owners_find(struct core *core, const struct call *call, struct slice name)
{
    struct stream *stream = stream_find(core, name);
    if (!stream)
        send_refused(core, call, REFUSAL_UNKNOWN_STREAM, "stream", 0, "there is no stream %.*s",
                     SLICE_ARG(name));
    return stream && owners_allow(core, call, stream, "stream") ? stream : NULL;
}

uint64_t owners_percent(const struct core *core, struct slice name)
{
    return name.len ? core->settings.client_percent : 100;
}

bool owners_have_room(const struct core *core, struct slice name)
{
    const struct client *client = client_find(core, name);
    size_t share = STREAMS_MAX * owners_percent(core, name) / 100;
    return core->stream_count < STREAMS_MAX && (client ? client->stream_count : 0) < share;
}

bool core_may_read(struct core *core, const struct caller *caller, struct slice name)
{
    if (!core_begin(core, core->now_ms))
        return false;
    const struct stream *stream = stream_find(core, name);
    if (stream || caller->is_admin)
        return !stream || owns(caller, stream);
    return name_is_valid(name) && name.len <= STREAM_NAME_MAX &&
           owners_have_room(core, caller->name) && stream_intern(core, name, caller->name);
}

bool core_is_owner(const struct core *core, const struct caller *caller, struct slice name)
{
    const struct stream *stream = stream_find(core, name);
    return stream && owns(caller, stream);
}

void core_nobody_reads(struct core *core, struct slice name)
{
    struct stream *stream = stream_find(core, name);
    if (core_begin(core, core->now_ms) && stream && !stream->is_used)
        stream_remove(core, stream);
}
