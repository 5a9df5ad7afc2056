/*
 * core/streams/owners.h - whose a stream is, and what others may not do with it.
 */
#ifndef SLUICE_BROKER_CORE_STREAMS_OWNERS_H
#define SLUICE_BROKER_CORE_STREAMS_OWNERS_H

#include "broker/core/state/interface.h"

struct call;
struct stream;

/* Whether the caller may read, acknowledge, cancel and feed this stream. */
bool caller_owns(const struct caller *caller, const struct stream *stream);
/* The same; refuses, not-allowed, if not. `field` is what named the stream, or a thing of it. */
bool owners_allow(struct core *core, const struct call *call, const struct stream *stream, const char *field);
/* The stream of this name; refuses, NULL, if there is none or it is not the caller's to use. */
struct stream *owners_find(struct core *core, const struct call *call, struct slice name);
/* Whether one more stream fits, and is within what the client of this name may have. */
bool owners_have_room(const struct core *core, struct slice name);
/* May this client read that stream's feed? It becomes the caller's by asking if nobody has named it yet. */
bool owners_may_read(struct core *core, const struct caller *caller, struct slice name);

#endif
