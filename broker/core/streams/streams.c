#include "broker/core/streams/streams.h"
#include "broker/core/state/state.h"

#include <stdlib.h>

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
    list_init(&stream->lines);
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
