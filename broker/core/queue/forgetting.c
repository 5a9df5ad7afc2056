#include "broker/core/queue/forgetting.h"
#include "broker/core/queue/groups.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"
#include "broker/core/streams/retention.h"

void stream_acknowledge(struct core *core, struct stream *stream, uint64_t seq)
{
    struct heap_node *oldest;
    struct effect *persist = effect_push(core, PERSIST_ACK);
    persist->stream = effect_copy(core, stream_name(stream));
    persist->seq = seq;
    if (seq >= stream->first)
        retention_drop(core, stream, seq);
    while ((oldest = heap_peek(&stream->ended)) && (uint64_t)oldest->key < stream->first) {
        heap_remove(&stream->ended, oldest);
        group_forget(core, container_of(oldest, struct group, ended));
    }
}
