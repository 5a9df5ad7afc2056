/*
 * core/clients/streams.h - streams, and the clients that own them. Both live as long as the core, but for streams that were
 * only ever asked for on FEED: they go with the last who listens.
 */
#ifndef SLUICE_BROKER_CORE_CLIENTS_STREAMS_H
#define SLUICE_BROKER_CORE_CLIENTS_STREAMS_H

#include "broker/core/core.h"
#include "broker/core/clients/limits.h"
#include "broker/core/queue/fair_queue.h"

struct call;
struct core;
struct kept;

/* ---- clients: who owns streams; known for as long as they are ------------------------- */

struct client {
    struct list link; /* in core->clients */
    struct client_queue queues[STAGE_COUNT];
    uint64_t used[LIMIT_COUNT];
    uint64_t accepted, ended[OUTCOME_COUNT]; /* since the start */
    size_t stream_count;
    uint32_t name_len;
    char name[]; /* of its key; empty where nobody is asked for one */
};

struct slice client_name(const struct client *client);
struct client *client_find(const struct core *core, struct slice name);
struct client *client_intern(struct core *core, struct slice name); /* NULL: out of memory */
void client_destroy(struct client *client);
/* Whether the caller may read, acknowledge, cancel and feed this stream. */
bool caller_owns(const struct call *call, const struct stream *stream);
/* The same; refuses, not-allowed, if not. `field` is what named the stream, or a thing of it. */
bool owners_allow(struct core *core, const struct call *call, const struct stream *stream,
                  const char *field);
/* The stream of this name; refuses, NULL, if there is none or it is not the caller's to use. */
struct stream *owners_find(struct core *core, const struct call *call, struct slice name);
/* Of what all may have, what one client of this name may: where nobody has a name, there is but one. */
uint64_t owners_percent(const struct core *core, struct slice name);
/* Whether one more stream fits, and is within what the client of this name may have. */
bool owners_have_room(const struct core *core, struct slice name);

/* ---- streams ----------------------------------------------------------------------- */

struct stream {
    struct list link; /* in core->streams */
    struct client *owner;
    struct stream_queue queues[STAGE_COUNT];
    struct list live; /* groups with rollouts that have not ended, oldest first */
    struct heap ended; /* groups without, by their last number, until it is acknowledged */
    uint64_t first, head, pending;
    struct kept *kept;        /* a ring of those from first to head ... */
    size_t kept_capacity;     /* ... 0 or a power of two */
    uint64_t kept_bytes;      /* what they weigh */
    uint64_t ripe;            /* up to here they were there at the last head period */
    uint64_t expired, expired_to; /* forgotten by retention since the start; up to here */
    uint64_t under_lease; /* of those pending */
    int64_t renewed_ms;   /* when its trainer was heard of last */
    bool fresh;       /* something is new since its head was last published */
    bool is_used;     /* it was submitted to: it is kept, and not only asked for on FEED */
    uint32_t name_len;
    char name[];
};

struct slice stream_name(const struct stream *stream);
struct stream *stream_find(const struct core *core, struct slice name);
/* A new one belongs to `owner`. NULL when out of memory. */
struct stream *stream_intern(struct core *core, struct slice name, struct slice owner);
/* Numbers up to `seq` are acknowledged. */
void stream_forget(struct core *core, struct stream *stream, uint64_t seq);
void stream_destroy(struct stream *stream);
/* One that nothing was ever submitted to. */
void stream_remove(struct core *core, struct stream *stream);
/* What is kept: a number's weight and time is noted, and, but for restored ones, counted. */
void retention_note(struct core *core, struct stream *stream, uint64_t seq, uint64_t bytes,
                    uint64_t ended_ms);
/* The newest number, just ended, with so many bytes of record. */
void retention_keep(struct core *core, struct stream *stream, uint64_t bytes);
/* Counts what was noted while the stream was restored. */
void retention_restore(struct core *core, struct stream *stream);
/* Numbers up to `seq` are no longer kept; seq is not beyond the head. */
void retention_drop(struct core *core, struct stream *stream, uint64_t seq);
/* Forgets what the settings do not let a stream keep. Once a head period. */
void retention_tick(struct core *core, struct stream *stream);
/* What is kept, weighed again; for checks. */
uint64_t retention_weigh(const struct stream *stream);
/* What became of a number that is no longer kept: "acknowledged", or why not. */
struct slice retention_words(struct core *core, const struct stream *stream, uint64_t seq);
void streams_tick(struct core *core);

#endif
