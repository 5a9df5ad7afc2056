/*
 * core/streams/streams.h - streams, and the clients that own them. Both live as long as the core, but for streams that
 * were only ever asked for on FEED: they go with the last who listens.
 */
#ifndef SLUICE_BROKER_CORE_STREAMS_STREAMS_H
#define SLUICE_BROKER_CORE_STREAMS_STREAMS_H

#include "broker/core/state/stream.h"

struct core;

struct client *client_intern(struct core *core, struct slice name); /* NULL: out of memory */
void client_destroy(struct client *client);

/* A new one belongs to `owner`. NULL when out of memory. */
struct stream *stream_intern(struct core *core, struct slice name, struct slice owner);
void stream_destroy(struct stream *stream);
/* One that nothing was ever submitted to. */
void stream_remove(struct core *core, struct stream *stream);

#endif
